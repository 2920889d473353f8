package manager_test

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/manager"
)

// R12: runs of many queues leave more rows than one step of a clean-up deletes between two audits.
func TestRetentionKeepsUp(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		cl.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150)
			INSERT INTO schedule_run (run_id, task_type, own_sign, run_key, root_run_id, state, scheduled_at, created_at, finished_at)
			SELECT '00000000-' || i, 'settle', 'BASE', i, '00000000-' || i, 'SUCCESS', '1990-01-01 00:00:00.000000', '1990-01-01 00:00:00.000000',
				'1990-01-01 00:00:00.000000' FROM n`)
		cl.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
			INSERT INTO schedule_run_queue (run_id, queue_id, state) SELECT r.run_id, n.i, 'DONE' FROM schedule_run r, n`)
		cl.serve(&store{}, manager.Settings{Queues: 1})
		time.Sleep(2 * time.Minute)
		var left int
		if cl.scan("SELECT COUNT(*) FROM schedule_run", &left); left != 0 {
			cl.Errorf("%d runs are left after four audits, want none", left)
		}
	})
}
