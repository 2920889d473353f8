package runs

import (
	"context"
	"database/sql"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// ModeRun is the mode of a task type that works in runs.
const ModeRun = "RUN"

// Engine holds the parts of this package for the runs of one own_sign. Their methods are safe for concurrent use.
type Engine struct {
	Runs         *Runs         // for operators
	Triggers     *Triggers     // for operators
	Backfills    *Backfills    // for operators
	Dependencies *Dependencies // for operators
	Scheduler    *Scheduler    // for the servers: what is due
	Sweeps       *Sweeps       // for the servers: the queues of the open run

	ends *endCounts
}

// Defaults are the values of the settings that the row of a task type leaves open, or of a row that is deleted.
type Defaults struct {
	MaxRecoveries    int
	QueueMaxAttempts int
	QueueRetry       time.Duration
	RunTimeout       time.Duration
}

// NewEngine returns an engine for the runs of the roster's own_sign. It registers with the roster: when queues are
// removed, their rows in the open run end in the same transaction. onEnd, if not nil, is called with each run that the
// engine has ended, but not with the slots of triggers that it skips.
//
// wake tells the servers of a task type, with the commit of a transaction, that it has submitted a run. It does nothing
// where the database sends no hints.
func NewEngine(r *roster.Roster, log *slog.Logger, d Defaults, onEnd func(Run), wake WakeInTx) *Engine {
	r.QueuesRemoved = endQueuesOfOpenRun
	shared := core{db: r.DB, roster: r, ownSign: r.OwnSign}
	ends := &endCounts{onEnd: onEnd, runs: map[End]int64{}}
	runCloser := &closer{core: shared, ends: ends}
	triggers := &Triggers{core: shared}
	return &Engine{
		Runs:         &Runs{core: shared, closer: runCloser, wake: wake},
		Triggers:     triggers,
		Backfills:    &Backfills{core: shared, triggers: triggers, closer: runCloser},
		Dependencies: &Dependencies{db: r.DB},
		Scheduler:    &Scheduler{core: shared, closer: runCloser, runTimeout: d.RunTimeout},
		Sweeps:       &Sweeps{core: shared, closer: runCloser, log: log, defaults: d},
		ends:         ends,
	}
}

// Ended returns how many runs this Engine has ended, by task type and state.
func (e *Engine) Ended() map[End]int64 { return e.ends.read() }

// WakeInTx sends a hint for a task type as a part of a transaction.
type WakeInTx func(ctx context.Context, tx *sql.Tx, taskType string, keys ...string) error

// core is what the parts share.
type core struct {
	db      *sqldb.DB
	roster  *roster.Roster
	ownSign string
}

// End is a task type and the state in which runs of it ended: SUCCESS, FAILED, DEPENDENT_FAILED, CANCELLED or
// SKIPPED.
type End struct{ TaskType, State string }

// endCounts counts the runs that an Engine has ended.
type endCounts struct {
	onEnd func(Run) // nil: none

	mu   sync.Mutex
	runs map[End]int64
}

func (n *endCounts) read() map[End]int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.runs)
}

// count counts a run whose end is committed, and tells onEnd. It does not count a run that a rerun has reopened
// meanwhile.
func (n *endCounts) count(ctx context.Context, c core, runID string) {
	r, err := c.readRun(ctx, runID)
	if err != nil || !r.Ended() {
		return // a lost count is no reason to fail the caller
	}
	n.add(End{r.TaskType, r.State}, 1)
	if n.onEnd != nil {
		n.onEnd(r)
	}
}

func (n *endCounts) add(end End, ended int64) {
	if ended == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.runs[end] += ended
}
