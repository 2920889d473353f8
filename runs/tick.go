package runs

import (
	"context"
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
	More        bool `db:"-"` // more work may be due already
}

// tickState is the result of the one statement that a tick runs when nothing is due.
type tickState struct {
	TickResult
	MustStop    bool // the RUNNING run was cancelled, or its deadline has passed
	AllFinished bool // all queues of the RUNNING run are finished
	CanOpen     bool // a run is READY, and neither a pause nor a repartition stops it
	MustEnd     bool // a run was cancelled before it was opened, or has waited for too long
	CanResolve  bool // the upstreams of a WAITING run decide its next state
	Submitted   bool // a transaction has submitted a run
	CanBackfill bool // a backfill may make a run, or nothing is left of it
}

// Scheduler does what is due for runs: it fires triggers, opens and ends runs, and lets dependants start.
type Scheduler struct {
	core
	closer     *closer
	runTimeout time.Duration // for task types whose row leaves it open
}

// Tick does what is due for the runs of a task type: it makes the runs that were submitted, fires triggers, makes the
// runs of backfills, opens a run, ends a run that was cancelled or has passed its deadline, closes a run whose queues
// are finished, and lets dependants start or fail. Every server of the task type calls it once a second while any run
// has not ended. A run that waits for its NotBefore does not count. There is no leader.
//
// When nothing is due, a tick is one statement. Otherwise the work of a call is bounded, and More reports whether more
// may be due. When a server crashes between two commits, the next tick of any other server continues its work. Tick
// returns ErrUnknownTask if the task type has no lock row in this own_sign.
func (s *Scheduler) Tick(ctx context.Context, taskType string) (TickResult, error) {
	p, err := s.readState(ctx, taskType)
	if err == nil && p.due() {
		if err = s.tick(ctx, taskType, p); err == nil {
			p, err = s.readState(ctx, taskType)
			p.Submitted = false // the next tick takes what is held
			p.More = p.due()
		}
	}
	return p.TickResult, sqldb.Wrap(err, "tick %s$%s", taskType, s.ownSign)
}

// due reports whether the tick has anything to do.
func (p tickState) due() bool {
	return p.MustStop || p.AllFinished || p.MustEnd || p.CanResolve || p.Submitted || p.CanBackfill || p.fires() ||
		p.CanOpen && p.Open == ""
}

func (p tickState) fires() bool { return !p.NextFire.IsZero() && !p.NextFire.After(p.Now) }

// tick does what is due.
func (s *Scheduler) tick(ctx context.Context, taskType string, p tickState) (err error) {
	if p.MustStop {
		err = s.closer.stopRun(ctx, p.Open)
	} else if p.AllFinished {
		err = s.closer.closeRun(ctx, p.Open)
	}
	if err == nil && p.MustEnd {
		err = s.endWaiting(ctx, taskType)
	}
	if err == nil && p.CanResolve {
		err = s.resolveDue(ctx, taskType)
	}
	if err == nil && p.Submitted {
		err = s.takeSubmissions(ctx, taskType)
	}
	if err == nil && p.fires() {
		err = s.fireDue(ctx, taskType)
	}
	if err == nil && p.CanBackfill {
		err = s.moveBackfills(ctx, taskType)
	}
	if err != nil {
		return err
	}
	ended, err := s.openNext(ctx, taskType)
	for _, id := range ended {
		if err == nil {
			err = s.closer.resolveDependants(ctx, id)
		}
	}
	return err
}

func (s *Scheduler) readState(ctx context.Context, taskType string) (p tickState, err error) {
	const open = `FROM schedule_run w WHERE w.task_type = k.task_type AND w.own_sign = k.own_sign AND w.state `
	truth := func(condition string) string { return `, CASE WHEN ` + condition + ` THEN TRUE ELSE FALSE END` }
	query := `SELECT {now}, r.run_id, COALESCE(r.paused, FALSE), r.started_at,
		(SELECT MIN(next_fire_at) FROM schedule_trigger g WHERE g.own_sign = k.own_sign AND g.target = k.task_type
			AND g.status = '` + TriggerActive + `'),
		(SELECT MIN(w.not_before) ` + open + `= '` + Ready + `' AND w.not_before > {now}),
		(SELECT w.scheduled_at ` + open + `= '` + Success + `' AND w.scheduled_at <= {now}
			ORDER BY w.scheduled_at DESC LIMIT 1)` +
		truth(`r.cancel_requested OR r.deadline_at < {now}`) +
		truth(`r.run_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM schedule_run_queue q
			WHERE q.run_id = r.run_id AND q.state IN `+unfinished+`)`) +
		truth(`NOT k.paused AND NOT `+roster.DividesAnew("k")+` AND EXISTS (SELECT 1 `+open+`= '`+Ready+`'
			AND NOT w.paused AND NOT w.cancel_requested AND `+mayBegin+`)`) +
		truth(`EXISTS (SELECT 1 `+open+`IN ('`+Waiting+`', '`+Ready+`')
			AND (w.cancel_requested OR w.deadline_at < {now}))`) +
		truth(`EXISTS (SELECT 1 `+open+`= '`+Waiting+`' AND `+resolvable+`)`) +
		truth(`EXISTS (SELECT 1 FROM schedule_submission u WHERE u.task_type = k.task_type AND u.own_sign = k.own_sign)`) +
		truth(`EXISTS (SELECT 1 FROM schedule_backfill b WHERE b.task_type = k.task_type AND b.own_sign = k.own_sign
			AND `+backfillDue+`)`) + `
		FROM schedule_task_running k
		LEFT JOIN schedule_run r ON r.task_type = k.task_type AND r.own_sign = k.own_sign AND r.state = '` + Running + `'
		WHERE k.task_type = ? AND k.own_sign = ? ORDER BY r.run_id DESC`
	err = s.db.RetryRead(ctx, func(ctx context.Context) error {
		p, err = sqldb.One[tickState](ctx, s.db, roster.ErrUnknownTask, query, taskType, s.ownSign)
		return err
	})
	return p, err
}

// stepTime is how long a transaction of a tick or an audit goes on to the next row, where each row takes it several
// statements. Over a slow link a row takes seconds, and a transaction that takes too long changes nothing (L7).
const stepTime = 2 * time.Second

// maxPerTick bounds the runs that one tick ends before they are opened, and the runs that it resolves.
const maxPerTick = 100

// endWaiting ends the runs that were cancelled before they were opened, and the runs that have waited for too long
// (R13).
func (s *Scheduler) endWaiting(ctx context.Context, taskType string) error {
	runs, err := sqldb.Records[string](ctx, s.db, fmt.Sprintf(`SELECT run_id FROM schedule_run
		WHERE task_type = ? AND own_sign = ? AND state IN ('`+Waiting+`', '`+Ready+`')
		AND (cancel_requested OR deadline_at < {now}) ORDER BY run_id LIMIT %d`, maxPerTick), taskType, s.ownSign)
	if err != nil {
		return err
	}
	return s.closer.stopRuns(ctx, runs)
}

// resolveDue resolves the WAITING runs of a task type whose upstreams have all ended, or that have a failed upstream.
func (s *Scheduler) resolveDue(ctx context.Context, taskType string) error {
	runs, err := sqldb.Records[taskRun](ctx, s.db, fmt.Sprintf(`SELECT w.run_id, w.task_type FROM schedule_run w
		WHERE w.task_type = ? AND w.own_sign = ? AND w.state = '`+Waiting+`' AND `+resolvable+`
		ORDER BY w.run_id LIMIT %d`, maxPerTick), taskType, s.ownSign)
	if err != nil {
		return err
	}
	return s.closer.resolveAll(ctx, runs)
}
