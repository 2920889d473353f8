package console_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/internal/testdb"
)

// The page of a task type shows its data databases, their states and last raises, and no others.
func TestDataDatabases(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{})
	if body := s.get("/task?task=settle").body; strings.Contains(body, "Data databases") {
		t.Error("a task type without data databases shows some")
	}
	centertest.Exec(t, s.center, "UPDATE schedule_task_type SET data_database = '0=east,1-2=west,3=away' WHERE task_type = 'settle'",
		"UPDATE schedule_queue SET cur_server = '"+web1+"', epoch = 9 WHERE task_type = 'settle' AND queue_id = '0'")
	var east *center.Data
	for name, url := range map[string]string{
		"east": testdb.URL(t, testdb.SQLite), "other": testdb.URL(t, testdb.SQLite), "away": "postgres://app:secret@127.0.0.1:1/shop",
	} {
		d, err := s.center.FenceIn(name, anydb.URL(url))
		s.must(err)
		if name == "east" {
			east = d
		}
	}
	_, err := east.Enter(t.Context(), center.Entry{TaskType: "settle", Server: web1, Queue: center.QueueEpoch{ID: "0", Epoch: 9}})
	s.must(err)
	_, err = s.center.Roster().Alert(t.Context(), condition.Condition{Kind: condition.Unreachable.Name, TaskType: "settle", Subject: "east", Text: evil}, time.Hour)
	s.must(err)
	rows := func() (rows []string) {
		body := s.get("/task?task=settle").body
		s.check("/task?task=settle", body)
		_, body, found := strings.Cut(body, `<caption class="hidden">Data databases of settle</caption>`)
		if !found {
			return nil // the settings were read before
		}
		body, _, _ = strings.Cut(body, "</table>")
		for _, row := range strings.Split(body, "<tr")[2:] {
			text := regexp.MustCompile(`<[^>]*>`).ReplaceAllString("<tr"+row, " ")
			rows = append(rows, strings.Join(strings.Fields(text), " "))
		}
		return rows
	}
	wants := []string{
		`^away new from here: cannot connect: .* postgres://app@127.0.0.1:1/shop$`,
		`^east unreachable \S.*&lt;script&gt;.* 1 \S.* sqlite:/`,
		`^west new$`,
	}
	var got []string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if got = rows(); len(got) == len(wants) && !strings.Contains(got[0], "being read") {
			break
		}
	}
	for i, want := range wants {
		if len(got) != len(wants) || !regexp.MustCompile(want).MatchString(got[i]) {
			t.Errorf("rows\n%s\nwant %s", strings.Join(got, "\n"), want)
		}
	}
}
