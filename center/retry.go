package center

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// class is what an error means for the transaction that met it.
type class int

const (
	classOther       class = iota // not the database's answer: an ended context, say
	classRefused                  // the database said no, for a reason that stays
	classRollback                 // surely rolled back, worth another try: serialization, deadlock, lock timeout, busy
	classInterrupted              // took too long, or was killed: before the commit was sent this is a rollback, after it unknown
	classBroken                   // the connection is gone: before the commit was sent this is a rollback, after it unknown
	classReadOnly                 // the server takes no writes
	classNoTable
	classDuplicate // a row with that key is there already
)

// errRaced is a compare-and-set that missed: what was read is no longer so (L4).
var errRaced = errors.New("a row was changed meanwhile")

func (d *dialect) class(err error) class {
	var netErr net.Error
	switch {
	case err == nil:
		return classOther
	case errors.Is(err, errRaced):
		return classRollback
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return classBroken
	case errors.As(err, &netErr):
		return classBroken
	}
	return d.classify(err)
}

// attempts bounds the tries of one transaction. Whoever asked tries again at its next heartbeat.
const attempts = 8

// retry runs a transaction until it has committed or failed for good (L7). try says, beside its
// error, whether it surely left nothing behind.
func (d *dialect) retry(ctx context.Context, try func() (clean bool, err error)) error {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 5*time.Millisecond, 500*time.Millisecond
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		clean, err := try()
		if err != nil && (!clean || !d.again(err)) {
			return struct{}{}, backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pause), backoff.WithMaxTries(attempts))
	return err
}

// again reports that the same transaction may succeed when it is run again.
func (d *dialect) again(err error) bool {
	c := d.class(err)
	return c == classRollback || c == classInterrupted || c == classBroken
}

// unknown says of an error of a commit that nobody can tell what came of it. A database that
// answers that it rolled back can be believed; a lost connection or an ended context cannot.
func (d *dialect) unknown(ctx context.Context, err error) error {
	if err == nil && ctx.Err() == nil {
		return nil
	}
	if err == nil {
		err = context.Cause(ctx) // PostgreSQL may say yes to a commit that its standby never saw
	}
	switch d.class(err) {
	case classRollback, classRefused, classReadOnly, classNoTable, classDuplicate:
		return err
	case classOther, classInterrupted, classBroken:
	}
	return fmt.Errorf("%w: %w", ErrUnknownCommit, err)
}
