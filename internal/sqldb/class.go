package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
)

// Class is what an error means for the transaction that returned it.
type Class int

// The classes.
const (
	Other       Class = iota // no answer of the database: for example, the context has ended
	Refused                  // the database refused, for a reason that lasts
	Held                     // a row that the statement does not wait for is locked; nothing was done
	RolledBack               // certainly rolled back, a retry may succeed: serialization, deadlock, lock timeout, busy
	Interrupted              // took too long, or was killed; a rollback, or unknown if the commit was sent
	Broken                   // the connection is gone; a rollback, or unknown if the commit was sent
	ReadOnly                 // the server refuses writes
	NoTable                  // a table does not exist
	Duplicate                // a row with that key exists
	BadData                  // a value or a row breaks a rule: too long, out of range, a violated constraint
)

// String returns the name of the class.
func (c Class) String() string {
	return [...]string{
		"other", "refused", "held", "rolled back", "interrupted", "broken", "read-only", "no table", "duplicate",
		"bad data",
	}[c]
}

var (
	// ErrRaced means that a compare-and-set found another row than the one that was read before (L4).
	ErrRaced = errors.New("the row changed meanwhile")

	// ErrReadOnly means that the server takes no writes: it is a standby, or read-only. After a fail-over it may take
	// them.
	ErrReadOnly = errors.New("the server takes no writes")

	// ErrBusy means that a caller that does not wait found the lock row busy.
	ErrBusy = errors.New("the lock row is busy")

	// ErrUnknownCommit means that a commit was sent and its reply was lost: the transaction has
	// either happened or not. The caller reads again and never guesses.
	ErrUnknownCommit = errors.New("the outcome of the commit is unknown")
)

// readOnly is an ErrReadOnly with a text of its own.
type readOnly string

// TakesNoWrites returns an ErrReadOnly whose text is why.
func TakesNoWrites(why string) error { return readOnly(why) }

func (e readOnly) Error() string { return string(e) }

func (readOnly) Is(target error) bool { return target == ErrReadOnly }

// Class returns what an error means for the transaction that returned it.
func (d *Dialect) Class(err error) Class {
	var netErr net.Error
	switch {
	case err == nil:
		return Other
	case errors.Is(err, ErrRaced):
		return RolledBack
	case errors.Is(err, ErrReadOnly):
		return ReadOnly
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err,
		net.ErrClosed):
		return Broken
	case errors.As(err, &netErr):
		return Broken
	}
	return d.Classify(err)
}

// Retryable reports whether the same transaction may succeed when it runs again at once.
func (d *Dialect) Retryable(err error) bool {
	c := d.Class(err)
	return c == Held || c == RolledBack || c == Interrupted || c == Broken
}

// Transient reports whether an error came from the connection or from a collision, so that the same call may succeed
// later.
func (d *Dialect) Transient(err error) bool {
	return err != nil && (d.Retryable(err) || d.Class(err) == ReadOnly || // a fail-over is under way
		errors.Is(err, ErrUnknownCommit) || errors.Is(err, context.DeadlineExceeded))
}

// CommitError returns the meaning of the error of a commit. If the database answers that it rolled back, CommitError
// returns that answer. After a lost connection or an ended context the outcome is unknown, and CommitError returns
// ErrUnknownCommit.
func (d *Dialect) CommitError(ctx context.Context, err error) error {
	if err == nil && ctx.Err() == nil {
		return nil
	}
	if err == nil {
		err = context.Cause(ctx) // PostgreSQL may confirm a commit that its standby never saw
	}
	switch d.Class(err) {
	case Held, RolledBack, Refused, ReadOnly, NoTable, Duplicate, BadData:
		return err
	case Other, Interrupted, Broken:
	}
	return fmt.Errorf("%w: %w", ErrUnknownCommit, err)
}
