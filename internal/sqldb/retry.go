package sqldb

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// AttemptTimeout bounds one attempt of a transaction, which has a dozen statements at most.
const AttemptTimeout = 10 * time.Second

// attempts bounds the attempts of one transaction. The caller tries again at its next heartbeat.
const attempts = 8

// Retry runs a transaction until it has committed or failed for good (L7). try reports, beside its error, whether it
// left nothing behind for certain.
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

// Counts count what a DB has asked of the database since it was opened. Tries are transactions, and statements outside
// of transactions: each retry counts.
type Counts struct {
	Done   int64 // what succeeded, however often it was tried
	Tries  int64
	Errors map[Class]int64 // tries that failed
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
