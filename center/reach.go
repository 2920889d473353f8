package center

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/dutyrota/rota/internal/sqldb"
)

// ErrUnreachable means that Open did not reach a database that takes writes, and might if it tried again: nothing listens,
// the name does not resolve, or the server is starting, a standby or read-only. A refused password, an unknown database
// and an error of TLS are none of these.
var ErrUnreachable = errors.New("the database is unreachable")

// unreachable marks an error as ErrUnreachable and keeps its text.
type unreachable struct{ error }

func (e unreachable) Unwrap() error { return e.error }

func (unreachable) Is(target error) bool { return target == ErrUnreachable }

const (
	reachPause    = 250 * time.Millisecond // the first pause between two attempts to reach the database
	reachMaxPause = 5 * time.Second        // the longest
	reachLogPause = time.Minute            // between two lines of the log that say the same
)

// await runs the checks until the database answers. A fleet that starts before its database, or while it fails over, then
// waits for it as it does at any later time, instead of depending on a supervisor that goes on restarting it.
func (g guard) await(ctx context.Context) error {
	pause := backoff.NewExponentialBackOff() // with jitter, because all processes of a fleet wait
	pause.InitialInterval, pause.MaxInterval = reachPause, reachMaxPause
	var logged time.Time
	for {
		err := g.check(ctx)
		if !errors.Is(err, ErrUnreachable) {
			return err
		}
		if time.Since(logged) >= reachLogPause {
			logged = time.Now()
			g.log.LogAttrs(ctx, slog.LevelWarn, "the database is unreachable; waiting for it",
				slog.String("database", g.db.Database.Address), slog.Any("error", sqldb.OneLine(err)))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w, and then %w", err, context.Cause(ctx))
		case <-time.After(pause.NextBackOff()):
		}
	}
}

// markUnreachable marks an error that the next attempt may not meet. ctx is that of Open: its end is no such error.
func (g guard) markUnreachable(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || !g.db.Transient(err) || isTLSAlert(err) {
		return err
	}
	return unreachable{err}
}

// isTLSAlert reports whether one side has refused the other's certificate or parameters. Package tls wraps that like an
// error of the network.
func isTLSAlert(err error) bool {
	e, ok := errors.AsType[*net.OpError](err)
	return ok && (e.Op == "remote error" || e.Op == "local error")
}
