package verbs_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/verbs"
)

// placedRoster is a roster whose task type settle has its items in data databases; regions has names.
func placedRoster(t *testing.T) *ops.Client {
	t.Helper()
	c := centertest.Served(t, testdb.URL(t, testdb.SQLite))
	centertest.Exec(t, c, "UPDATE schedule_task_type SET data_database = '0-1=a,2-3=b' WHERE task_type = 'settle'",
		"UPDATE schedule_task_type SET data_database = 'north=a,south=b' WHERE task_type = 'regions'")
	return ops.New(c)
}

// A queue for which the setting database names no data database is refused, and the roster stays as it is.
func TestQueuesWithoutADataDatabase(t *testing.T) {
	t.Parallel()
	c := placedRoster(t)
	refused := func(what string, err error, want string) {
		t.Helper()
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", what, err, want)
		}
	}
	const none = "must name the data database of each queue: it names no database for queue "
	_, err := verbs.AddQueue{TaskType: "regions", Queue: "west"}.Prepare(t.Context(), c)
	refused("queue add", err, `regions: database ("north=a,south=b") `+none+`"west"`)
	s, err := c.Tasks().Settings(t.Context(), "settle")
	must(t, err)
	s.Queues = 5
	_, err = c.Tasks().Compare(t.Context(), "settle", s)
	refused("more queues", err, `task settle: database ("0-1=a,2-3=b") `+none+`"4"`)
	s.Database = ""
	_, err = c.Tasks().CompareGiven(t.Context(), "settle", s, []string{"queues"}) // a file that leaves out database
	refused("more queues of a file", err, `task settle: database ("0-1=a,2-3=b") `+none+`"4"`)

	place := func(database string) {
		t.Helper()
		centertest.Exec(t, c.Center, "UPDATE schedule_task_type SET data_database = '"+database+"' WHERE task_type = 'regions'")
	}
	place("north=a,south=b,east=b")
	change, err := verbs.AddQueue{TaskType: "regions", Queue: "east"}.Prepare(t.Context(), c)
	must(t, err)
	place("north=a,south=b")
	_, err = change.Do(t.Context(), "test")
	if want := `it names no database for queue "east"`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the setting has changed meanwhile: got %v, want %s", err, want)
	}
}

// The previews say what a forced drain and a deletion leave in data databases, and only there.
func TestPreviewsNameDataDatabases(t *testing.T) {
	t.Parallel()
	c := placedRoster(t)
	drain := func(force bool) []string {
		change, err := verbs.DrainServers{Servers: []string{centertest.Web1}, Force: force}.Prepare(t.Context(), c)
		must(t, err)
		return change.Warnings
	}
	const late = "The items of settle are in the data databases a, b. There the fence rejects its late writes only when the next owner of a queue begins."
	if got := drain(true); !slices.Equal(got, []string{late}) {
		t.Errorf("drain --force: got %q, want %s", got, late)
	}
	if got := drain(false); got != nil {
		t.Errorf("drain: got %q, want nothing", got)
	}
	says := func() string {
		change, err := verbs.DeleteTask{TaskType: "settle"}.Prepare(t.Context(), c)
		must(t, err)
		return strings.Join(change.Says, " ")
	}
	centertest.Exec(t, c.Center, "UPDATE schedule_server SET heartbeat_time = '2020-01-01 00:00:00.000000'") // else it refuses
	const stay = "Its items and its rows of rota_fence stay in the data databases a, b."
	if got := says(); !strings.HasSuffix(got, stay) {
		t.Errorf("task delete: got %s, want %s", got, stay)
	}
	centertest.Exec(t, c.Center, "UPDATE schedule_task_type SET data_database = '' WHERE task_type = 'settle'")
	if got := drain(true); got != nil {
		t.Errorf("drain --force without data databases: got %q", got)
	}
	if got := says(); strings.Contains(got, "rota_fence") {
		t.Errorf("task delete without data databases: got %s", got)
	}
}

// The preview of another database says that workers must be stopped, and nothing about their next heartbeats. While a
// worker is registered, the change is refused before.
func TestPreviewOfAnotherDatabase(t *testing.T) {
	t.Parallel()
	c := placedRoster(t)
	prepare := func(change func(*center.Settings)) (*verbs.Change, error) {
		s, err := c.Tasks().Settings(t.Context(), "settle")
		must(t, err)
		change(&s)
		return verbs.ApplyTasks{Tasks: []ops.TaskSettings{{Name: "settle", Settings: s}}, Reset: true}.Prepare(t.Context(), c)
	}
	says := func(change func(*center.Settings)) string {
		p, err := prepare(change)
		must(t, err)
		return strings.Join(p.Objects[0].Says, " ")
	}
	_, err := prepare(func(s *center.Settings) { s.Database = "a" })
	if want := "database (a) takes effect when the worker starts again"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("beside a worker: got %v, want %s", err, want)
	}
	centertest.Exec(t, c.Center, "DELETE FROM schedule_server")
	const stop, adopt = "Stop all workers of all environments before: database changes only while none serves it.", "Workers of all environments adopt the settings with their next heartbeats."
	if got := says(func(s *center.Settings) { s.Database = "a" }); got != stop {
		t.Errorf("another database: got %s", got)
	}
	if got := says(func(s *center.Settings) { s.Database, s.ThreadNumber = "a", 3 }); got != stop+" "+adopt {
		t.Errorf("another database and more: got %s", got)
	}
	if got := says(func(s *center.Settings) { s.ThreadNumber = 3 }); got != adopt {
		t.Errorf("another setting: got %s", got)
	}
}
