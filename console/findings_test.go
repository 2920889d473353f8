package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

// A finding whose hint is a command has a button for it, for people who may do that.
func TestFindingsHaveButtons(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Access: allowed})
	centertest.Exec(t, s.center, "UPDATE schedule_task_type SET balance = 'LOAD' WHERE task_type = 'settle'")
	var counts []ops.QueueBacklog
	for queue, demand := range map[string]float64{"0": 0.1, "1": 8, "2": 0.1, "3": 0.1} {
		counts = append(counts, ops.QueueBacklog{QueueID: queue, Items: 10, Trend: ops.BacklogSteady, Demand: &demand})
	}
	s.must(ops.New(s.center).Queues().SaveBacklogs(t.Context(), "settle", counts))
	const split, resume = `<a class="button" href="queue-split?queue=1&amp;task=settle">Split</a>`,
		`<a class="button" href="task-resume?task=regions">Resume</a>`
	for actor, want := range map[string][2]bool{
		"": {true, true}, "bob:operate/regions": {false, true}, "eve:operate/settle change/settle": {true, false},
	} {
		r := request(http.MethodGet, "/")
		r.Header.Set("Test-Actor", actor)
		body := s.await(r).body
		if !strings.Contains(body, "queue 1 has more load than a worker should have") {
			t.Fatalf("no finding about queue 1: %s", body)
		}
		if got := [2]bool{strings.Contains(body, split), strings.Contains(body, resume)}; got != want {
			t.Errorf("%s: buttons to split and to resume: %v, want %v:\n%s", actor, got, want, body)
		}
	}
	for _, page := range []string{"/queue-split?queue=1&task=settle", "/task-resume?task=regions"} {
		if got := s.get(page); got.code != http.StatusOK {
			t.Errorf("%s: status %d", page, got.code)
		}
	}
}
