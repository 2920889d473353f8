package runs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/runs"
)

// The newest run of the graphs with a name is found through an index.
func TestGraphIsFoundThroughAnIndex(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Open(t, url, center.Options{})
		defineRunTasks(t, c, "sweep")
		var rows []string
		for i := range 2000 {
			name := ""
			if i%400 == 0 {
				name = fmt.Sprint("graph-", i/400)
			}
			rows = append(rows, fmt.Sprintf("('run-%04[1]d', 'sweep', '%[1]d', 'run-%04[1]d', '%[2]s', '2026-11-21 00:00:00.000000', 'SUCCESS')", i, name))
		}
		centertest.Exec(t, c, "INSERT INTO schedule_run (run_id, task_type, run_key, root_run_id, graph_name, scheduled_at, state) VALUES "+strings.Join(rows, ", "))
		centertest.Exec(t, c, map[bool]string{true: "ANALYZE TABLE schedule_run", false: "ANALYZE"}[strings.HasPrefix(url, "mysql:")])
		plan, err := c.Engine().Runs.ExplainList(t.Context(), runs.Filter{Name: "graph-2"}, 2)
		must(t, err)
		if !strings.Contains(plan, "idx_schedule_run_graph") {
			t.Errorf("plan of List by a name:\n%s", plan)
		}
		if r, err := c.Engine().Runs.Find(t.Context(), "graph-2"); err != nil || r.ID != "run-0800" {
			t.Errorf("the run of graph-2 is %q, %v", r.ID, err)
		}
	})
}
