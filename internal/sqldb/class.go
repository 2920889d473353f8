package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"syscall"
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
	if ended, ok := errors.AsType[rolledBack](err); ok {
		switch c := d.Class(ended.cause); c {
		case Other, Interrupted, Broken: // the statement would take too long again
			return Refused
		default:
			return c
		}
	}
	switch {
	case err == nil:
		return Other
	case errors.Is(err, ErrRaced):
		return RolledBack
	case errors.Is(err, ErrReadOnly):
		return ReadOnly
	case errors.Is(err, driver.ErrBadConn), ofNetwork(err):
		return Broken
	}
	return d.Classify(err)
}

// ofNetwork reports whether the network has failed, or takes too long. It lists such errors: a file that is missing, as
// that of a certificate, ends in an error of the system that has the methods of a net.Error, too, and an address
// without a port in one of package net.
func ofNetwork(err error) bool {
	if _, ok := errors.AsType[*net.AddrError](err); ok {
		return false
	}
	if _, ok := errors.AsType[*net.ParseError](err); ok {
		return false
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return true
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return true
	}
	return slices.ContainsFunc(broken, func(target error) bool { return errors.Is(err, target) })
}

// broken are the errors of a connection that has ended, or was not made.
var broken = []error{
	io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED,
	syscall.EPIPE, syscall.ETIMEDOUT, syscall.EHOSTUNREACH, syscall.ENETUNREACH,
}

// Retryable reports whether the same transaction may succeed when it runs again at once. If the driver has closed the
// connection to a server that takes no writes, the next one may lead to the new primary.
func (d *Dialect) Retryable(err error) bool {
	c := d.Class(err)
	return c == Held || c == RolledBack || c == Interrupted || c == Broken || errors.Is(err, driver.ErrBadConn)
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
