package doctor_test

import (
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
	"github.com/dutyrota/rota/runs"
)

// R21: the doctor tells of submissions whose transactions committed when their task type had no runs any more, or was
// gone, and of no others.
func TestDiagnoseReportsUnmadeRuns(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		c := centertest.Open(t, url, center.Options{})
		client := ops.New(c)
		for _, task := range []string{"changed", "deleted", "waits"} {
			_, err := client.Tasks().Define(t.Context(), task, center.Settings{Mode: center.ModeRun, Queues: 1})
			must(t, err)
			tx, err := c.DB().BeginTx(t.Context(), nil)
			must(t, err)
			_, _, err = client.Runs().SubmitTx(t.Context(), tx, task, runs.Submission{})
			must(t, err)
			must(t, tx.Commit())
		}
		centertest.Exec(t, c, `UPDATE schedule_task_type SET mode = 'CONTINUOUS' WHERE task_type = 'changed'`,
			`DELETE FROM schedule_task_type WHERE task_type = 'deleted'`)
		found, err := doctor.Diagnose(t.Context(), client, "")
		must(t, err)
		var tasks []string
		for _, f := range found {
			if f.Kind == condition.RunUnmade.Name {
				tasks = append(tasks, f.TaskType+": "+f.Text)
			}
		}
		const text = ": 1 run was submitted in transactions and will not be made: the task type has no runs"
		if len(tasks) != 2 || tasks[0] != "changed"+text || tasks[1] != "deleted"+text {
			t.Errorf("findings %q", tasks)
		}
	})
}
