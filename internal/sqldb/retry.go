package sqldb

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// AttemptTimeout bounds one attempt of a transaction, which has a dozen statements at most. Over a slow link each of
// them takes up to a sixth of judge_dead_interval. A database that does not answer is noticed after IOTimeout.
const AttemptTimeout = 30 * time.Second

// attempts is the largest number of attempts of one transaction. After that, the caller tries again at its next
// heartbeat.
const attempts = 8

// Retry calls try, which runs a transaction, until it has committed or failed for good (L7). clean reports whether a
// failed try has certainly changed nothing.
func (db *DB) Retry(ctx context.Context, try func() (clean bool, err error)) error {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 5*time.Millisecond, 500*time.Millisecond
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		clean, err := try()
		db.count(err)
		if err != nil && (!clean || !db.Retryable(err)) {
			return struct{}{}, backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pause), backoff.WithMaxTries(attempts))
	return err
}

// Counts has counts since a DB was opened. A try is one attempt of a transaction, or of a statement outside of
// transactions.
type Counts struct {
	Done   int64           // successes, however many tries they took
	Tries  int64           // each retry counts
	Errors map[Class]int64 // failed tries
}

func (db *DB) count(err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.counts.Tries++
	if err == nil || errors.Is(err, ErrBusy) { // the caller does not wait
		db.counts.Done++
		return
	}
	db.counts.Errors[db.Class(err)]++
}
