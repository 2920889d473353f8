package center

import (
	"context"
	"errors"
	"maps"
	"sync"
)

// Stats count what a Center has asked of the database since it was opened. Tries are statements outside, and
// transactions: what was tried again counts each time.
type Stats struct {
	Done   int64            // what was done, however often it had to be tried
	Tries  int64            // tries
	Errors map[string]int64 // tries that failed, by what the error meant; see the Error constants

	// Runs are those whose end this Center has written, by what they came to.
	Runs map[RunEnd]int64
}

// RunEnd is how runs of a task type ended: State is SUCCESS, FAILED, DEPENDENT_FAILED, CANCELLED or SKIPPED.
type RunEnd struct{ TaskType, State string }

// What an error of the database means, as Stats counts it.
const (
	ErrorRolledBack  = "rolled_back" // a collision: serialization, deadlock, lock timeout, busy
	ErrorInterrupted = "interrupted" // it took too long, or was killed
	ErrorBroken      = "broken"      // the connection
	ErrorReadOnly    = "read_only"   // the server takes no writes
	ErrorRefused     = "refused"     // the database said no
	ErrorOther       = "other"       // not the database's: ErrFenced, or an ended context
)

// counts is Stats while it is counted.
type counts struct {
	mu sync.Mutex
	Stats
}

func newCounts() *counts {
	return &counts{Stats: Stats{Errors: map[string]int64{}, Runs: map[RunEnd]int64{}}}
}

func (c class) String() string {
	switch c {
	case classRollback:
		return ErrorRolledBack
	case classInterrupted:
		return ErrorInterrupted
	case classBroken:
		return ErrorBroken
	case classReadOnly:
		return ErrorReadOnly
	case classRefused, classNoTable, classDuplicate:
		return ErrorRefused
	}
	return ErrorOther
}

// Stats returns what was counted so far. It may be called at any time.
func (c *Center) Stats() Stats {
	c.counts.mu.Lock()
	defer c.counts.mu.Unlock()
	s := c.counts.Stats
	s.Errors, s.Runs = maps.Clone(s.Errors), maps.Clone(s.Runs)
	return s
}

// retry is the dialect's, counted.
func (c *Center) retry(ctx context.Context, try func() (clean bool, err error)) error {
	return c.dialect.retry(ctx, func() (bool, error) {
		clean, err := try()
		c.count(err)
		return clean, err
	})
}

func (c *Center) count(err error) {
	c.counts.mu.Lock()
	defer c.counts.mu.Unlock()
	c.counts.Tries++
	if err == nil || errors.Is(err, errLocked) { // it was told not to wait
		c.counts.Done++
		return
	}
	c.counts.Errors[c.dialect.class(err).String()]++
}

// countRun counts a run whose end is committed. One that is run again meanwhile is none.
func (c *Center) countRun(ctx context.Context, runID string) {
	r, err := c.Run(ctx, runID)
	if err != nil || !r.Ended() {
		return // it is only a count
	}
	c.counts.mu.Lock()
	defer c.counts.mu.Unlock()
	c.counts.Runs[RunEnd{r.TaskType, r.State}]++
}

// CheckWrite asks the database whether it takes writes, with a statement that changes no row.
func (c *Center) CheckWrite(ctx context.Context) error {
	_, err := c.store.ExecContext(ctx, c.dialect.sql(`UPDATE schedule_server SET beat_count = beat_count WHERE uuid = ''`))
	return err
}
