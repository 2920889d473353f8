package roster

import (
	"slices"
	"time"
)

// RunsReply is what a heartbeat's reply says to a server that works in runs.
type RunsReply struct {
	Open      bool      // a run or a backfill has not ended; a run that waits for its time does not count
	NextFire  time.Time // when the next trigger of the task type is due
	NextBegin time.Time // when the next run may begin that waits for its time
}

// columns implements replyOption. They are constants if no server of the process works in runs.
func (RunsReply) columns(b Heartbeat) string {
	if !slices.ContainsFunc(b.Servers, func(s ServerReport) bool { return s.InRuns }) {
		return `0, NULL, NULL`
	}
	const runs, sleeps = `FROM schedule_run w WHERE w.task_type = s.task_type AND w.own_sign = s.own_sign
		AND w.state `, `w.not_before > {now} AND NOT w.cancel_requested`
	return `CASE WHEN EXISTS (SELECT 1 ` + runs + `IN ('WAITING', 'RUNNING')) OR EXISTS (SELECT 1 ` + runs +
		`= 'READY' AND (w.not_before IS NULL OR NOT (` + sleeps + `)))
			OR EXISTS (SELECT 1 FROM schedule_submission u WHERE u.task_type = s.task_type AND u.own_sign = s.own_sign)
			OR EXISTS (SELECT 1 FROM schedule_backfill b WHERE b.task_type = s.task_type
			AND b.own_sign = s.own_sign AND b.state = 'RUNNING' AND (NOT b.paused OR b.next_slot_at IS NULL))
			THEN 1 ELSE 0 END,
		(SELECT MIN(g.next_fire_at) FROM schedule_trigger g WHERE g.own_sign = s.own_sign AND g.target = s.task_type
		AND g.status = 'ACTIVE'),
		(SELECT MIN(w.not_before) ` + runs + `= 'READY' AND ` + sleeps + `)`
}
