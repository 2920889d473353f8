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
	"github.com/dutyrota/rota/schema"
)

// guard is what Open checks before it returns a Center.
type guard struct {
	*Center
}

// tables returns an error if the tables cannot provide what the roster's guarantees need. It creates missing ones.
func (g guard) tables(ctx context.Context) error {
	if err := g.schema(ctx); err != nil {
		return err
	}
	if g.db.Database.CheckTables == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	return g.db.Database.CheckTables(ctx, g.db.Store)
}

const (
	serverTimeout = 30 * time.Second // bounds the questions of Open to the server
	tablesTimeout = 2 * time.Minute  // bounds the wait for a process that creates the tables, and their creation
)

// server connects, and chooses the dialect. It returns an error for a server that cannot hold a roster.
func (g guard) server(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	return probe(ctx, g.db)
}

// probe connects to a database, and chooses its dialect.
func probe(ctx context.Context, db *sqldb.DB) error {
	if err := sqldb.Connect(ctx, db.Store); err != nil {
		return err
	}
	found, err := db.Database.Probe(ctx, db.Store)
	if err != nil {
		return err
	}
	db.Dialect = found
	return nil
}

// schema checks the version of the tables, and creates missing tables if the mode allows it. Many workers may start
// at once on an empty database: while another process migrates, schema waits for it.
func (g guard) schema(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tablesTimeout)
	defer cancel()
	err := schema.Await(ctx, g.db.Store, g.db.Name)
	if !errors.Is(err, schema.ErrMissing) {
		return err
	}
	if !g.options.mayCreate(g.db.Database) {
		return err
	}
	if err := g.createTables(ctx); err != nil {
		return fmt.Errorf("create the tables: %w", err)
	}
	g.log.LogAttrs(ctx, slog.LevelInfo, "created the roster's tables", slog.String("database", g.db.Database.Address))
	return nil
}

func (g guard) createTables(ctx context.Context) error {
	pool := g.db.Store
	if !g.db.Database.Memory {
		own, err := g.db.Database.Pool(sqldb.RoleSchema, sqldb.PoolOptions{Create: true})
		if err != nil {
			return err
		}
		defer own.Close() // its error does not matter: the migration is committed
		pool = own
	}
	_, _, err := schema.Up(ctx, pool, g.db.Name)
	return err
}

// ErrUnreachable means that Open did not reach a database that takes writes, and might if it tried again: nothing
// listens, the name does not resolve, or the server is starting, a standby or read-only. A refused password, an
// unknown database and an error of TLS are none of these.
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

// reach takes a step of Open, again and again until the server lets it. A fleet that starts before its database, or
// while it fails over, then waits for it as it does at any later time, instead of depending on a supervisor that goes
// on restarting it.
func (g guard) reach(ctx context.Context, step func(context.Context) error) error {
	pause := backoff.NewExponentialBackOff() // with jitter, because all processes of a fleet wait
	pause.InitialInterval, pause.MaxInterval = reachPause, reachMaxPause
	var logged time.Time
	for {
		err := g.markUnreachable(ctx, step(ctx))
		if g.options.FailUnreachable || !errors.Is(err, ErrUnreachable) {
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
