package runs

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// TickResult is what a tick has read, after its changes.
type TickResult struct {
	Now      time.Time // the database's clock
	Open     string    // the id of the run that is RUNNING, "" if none is; sweeps of any other run are over
	Paused   bool      // that run is paused: the server suspends its sweeps
	Opened   time.Time // when that run was opened
	NextFire time.Time // when the next trigger is due; zero if none is
	// NextBegin is when the next run may begin that waits for its time; zero if none does.
	NextBegin time.Time
	// LastSuccess is the slot of the newest run that has succeeded and is still kept; zero if there is none.
	LastSuccess time.Time
	More        bool // more work may be due already
}

// tickState is the result of the one statement that a tick runs when nothing is due.
type tickState struct {
	TickResult
	mustStop    bool // the RUNNING run was cancelled, or its deadline has passed
	allFinished bool // all queues of the RUNNING run are finished
	canOpen     bool // a run is READY, and neither a pause nor a repartition stops it
	mustEnd     bool // a run was cancelled before it was opened, or has waited for too long
	canResolve  bool // the upstreams of a WAITING run decide its next state
	canBackfill bool // a backfill may make a run, or nothing is left of it
}

// Scheduler does what is due for runs: it fires triggers, opens and ends runs, and lets dependants start.
type Scheduler struct {
	core
	closer     *closer
	runTimeout time.Duration // for task types whose row leaves it open
}

// Tick does what is due for the runs of a task type: it fires triggers, makes the runs of backfills, opens a run, ends
// a run that was cancelled or has passed its deadline, closes a run whose queues are finished, and lets dependants
// start or fail. Every server of the task type calls it once a second while any run has not ended, beside those whose
// time has not come; there is no leader.
// When nothing is due, a tick is one statement. Otherwise the work of a call is bounded, and More reports whether more
// may be due. When a server crashes between two commits, the next tick of any other server continues its work. Tick
// returns ErrUnknownTask if the task type has no lock row in this own_sign.
func (s *Scheduler) Tick(ctx context.Context, taskType string) (TickResult, error) {
	p, err := s.readState(ctx, taskType)
	if err != nil {
		return TickResult{}, fmt.Errorf("tick %s$%s: %w", taskType, s.ownSign, err)
	}
	did, err := s.tick(ctx, taskType, &p)
	if err != nil {
		return p.TickResult, fmt.Errorf("tick %s$%s: %w", taskType, s.ownSign, err)
	}
	if !did {
		return p.TickResult, nil
	}
	after, err := s.readState(ctx, taskType)
	if err != nil {
		return p.TickResult, fmt.Errorf("tick %s$%s: %w", taskType, s.ownSign, err)
	}
	after.More = after.due()
	return after.TickResult, nil
}

// due reports whether the tick has anything to do.
func (p tickState) due() bool {
	return p.mustStop || p.allFinished || p.mustEnd || p.canResolve || p.canBackfill || p.fires() || p.canOpen && p.Open == ""
}

func (p tickState) fires() bool { return !p.NextFire.IsZero() && !p.NextFire.After(p.Now) }

// tick does what is due, and reports whether it did anything.
func (s *Scheduler) tick(ctx context.Context, taskType string, p *tickState) (did bool, err error) {
	if !p.due() {
		return false, nil
	}
	if p.mustStop {
		err = s.closer.stopRun(ctx, p.Open)
	} else if p.allFinished {
		err = s.closer.closeRun(ctx, p.Open)
	}
	if err == nil && p.mustEnd {
		err = s.endWaiting(ctx, taskType)
	}
	if err == nil && p.canResolve {
		err = s.resolveDue(ctx, taskType)
	}
	if err == nil && p.fires() {
		err = s.fireDue(ctx, taskType)
	}
	if err == nil && p.canBackfill {
		err = s.moveBackfills(ctx, taskType)
	}
	if err != nil {
		return true, err
	}
	ended, err := s.openNext(ctx, taskType)
	for _, id := range ended {
		if err == nil {
			err = s.closer.resolveDependants(ctx, id)
		}
	}
	return true, err
}

func (s *Scheduler) readState(ctx context.Context, taskType string) (p tickState, err error) {
	found := false
	open := `FROM schedule_run w WHERE w.task_type = k.task_type AND w.own_sign = k.own_sign AND w.state `
	err = s.db.Each(ctx, func(rows *sql.Rows) error {
		found = true
		err := rows.Scan((*sqldb.Instant)(&p.Now), (*sqldb.Text)(&p.Open), (*sqldb.Instant)(&p.Opened), (*sqldb.Flag)(&p.Paused), (*sqldb.Flag)(&p.mustStop), (*sqldb.Flag)(&p.allFinished),
			(*sqldb.Flag)(&p.canOpen), (*sqldb.Flag)(&p.mustEnd), (*sqldb.Flag)(&p.canResolve), (*sqldb.Flag)(&p.canBackfill), (*sqldb.Instant)(&p.NextFire), (*sqldb.Instant)(&p.NextBegin), (*sqldb.Instant)(&p.LastSuccess))
		p.allFinished = p.allFinished && p.Open != ""
		return err
	}, `SELECT {now}, r.run_id, r.started_at, COALESCE(r.paused, FALSE),
		CASE WHEN r.cancel_requested OR r.deadline_at < {now} THEN TRUE ELSE FALSE END,
		CASE WHEN EXISTS (SELECT 1 FROM schedule_run_queue q WHERE q.run_id = r.run_id AND q.state IN ('`+RunQueuePending+`', '`+RunQueueRunning+`')) THEN FALSE ELSE TRUE END,
		CASE WHEN NOT k.paused AND k.requested_total IS NULL AND EXISTS (SELECT 1 `+open+`= '`+RunReady+`' AND NOT w.paused AND NOT w.cancel_requested AND `+mayBegin+`) THEN TRUE ELSE FALSE END,
		CASE WHEN EXISTS (SELECT 1 `+open+`IN ('`+RunWaiting+`', '`+RunReady+`') AND (w.cancel_requested OR w.deadline_at < {now})) THEN TRUE ELSE FALSE END,
		CASE WHEN EXISTS (SELECT 1 `+open+`= '`+RunWaiting+`' AND `+resolvable+`) THEN TRUE ELSE FALSE END,
		CASE WHEN EXISTS (SELECT 1 FROM schedule_backfill b WHERE b.task_type = k.task_type AND b.own_sign = k.own_sign AND `+backfillDue+`) THEN TRUE ELSE FALSE END,
		(SELECT MIN(next_fire_at) FROM schedule_trigger g WHERE g.own_sign = k.own_sign AND g.target = k.task_type AND g.status = '`+TriggerActive+`'),
		(SELECT MIN(w.not_before) `+open+`= '`+RunReady+`' AND w.not_before > {now}),
		(SELECT w.scheduled_at `+open+`= '`+RunSuccess+`' ORDER BY w.scheduled_at DESC LIMIT 1)
		FROM schedule_task_running k
		LEFT JOIN schedule_run r ON r.task_type = k.task_type AND r.own_sign = k.own_sign AND r.state = '`+RunRunning+`'
		WHERE k.task_type = ? AND k.own_sign = ? ORDER BY r.run_id`, taskType, s.ownSign)
	if err == nil && !found {
		err = roster.ErrUnknownTask
	}
	return p, err
}

// maxPerTick bounds the runs that one tick ends before they are opened, and the runs that it resolves.
const maxPerTick = 100

// endWaiting ends the runs that were cancelled before they were opened, and the runs that have waited for too long
// (R13).
func (s *Scheduler) endWaiting(ctx context.Context, taskType string) error {
	runs, err := sqldb.Records[taskRun](ctx, s.db, fmt.Sprintf(`SELECT run_id, task_type FROM schedule_run WHERE task_type = ? AND own_sign = ?
		AND state IN ('`+RunWaiting+`', '`+RunReady+`') AND (cancel_requested OR deadline_at < {now}) ORDER BY run_id LIMIT %d`, maxPerTick), taskType, s.ownSign)
	for _, r := range runs {
		if err == nil {
			err = s.closer.stopRun(ctx, r.ID)
		}
	}
	return err
}

// resolveDue resolves the WAITING runs of a task type whose upstreams have all ended, or that have a failed upstream.
func (s *Scheduler) resolveDue(ctx context.Context, taskType string) error {
	runs, err := sqldb.Records[taskRun](ctx, s.db, fmt.Sprintf(`SELECT w.run_id, w.task_type FROM schedule_run w WHERE w.task_type = ? AND w.own_sign = ?
		AND w.state = '`+RunWaiting+`' AND `+resolvable+` ORDER BY w.run_id LIMIT %d`, maxPerTick), taskType, s.ownSign)
	if err != nil {
		return err
	}
	return s.closer.resolveAll(ctx, runs)
}
