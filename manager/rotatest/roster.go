package rotatest

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
)

// Options are the options of Open. The zero value is ready to use.
type Options struct {
	// Database is where the roster is. It must have no task types: the tests of one database run one after the other, and
	// at its end a test deletes the task types that it has defined. Defaults to SQLite in memory, which has one
	// connection: a dealer must not use the pool while it has a transaction open.
	Database center.Database

	// Config is that of the workers. Its Logger defaults to the test's log, from warnings on.
	Config manager.Config

	// Timeout is how long Work, Run and Start wait before they fail the test. Defaults to a minute, and in a bubble of
	// testing/synctest to 30 days of its time.
	Timeout time.Duration
}

func (o Options) withDefaults(log io.Writer) Options {
	if o.Database.Dialect == nil && o.Database.Err == nil {
		o.Database = sqlite.URL("sqlite::memory:")
	}
	if o.Config.Logger == nil {
		o.Config.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	if o.Timeout == 0 {
		o.Timeout = time.Minute
		if inBubble() {
			o.Timeout = 30 * 24 * time.Hour
		}
	}
	return o
}

// inBubble reports whether the caller is in a bubble of testing/synctest, which begins in the year 2000. Nothing but
// defaults depends on it.
func inBubble() bool { return time.Now().Year() < 2010 }

// Roster is the roster of one test. Only the test's goroutine may call its methods, besides TakeOver.
type Roster struct {
	tb testing.TB
	o  Options
	c  *center.Center
}

// Open opens a roster for the test, and closes it when the test ends. In a bubble, call it with the bubble's t. It
// fails the test if the database cannot be opened, or has task types.
func Open(tb testing.TB, o Options) *Roster {
	tb.Helper()
	o = o.withDefaults(tb.Output())
	c, err := center.Open(tb.Context(), o.Database, center.Options{Logger: o.Config.Logger, FailUnreachable: true})
	if err != nil {
		tb.Fatal("rotatest: ", err)
	}
	r := &Roster{tb: tb, o: o, c: c}
	if names := r.taskTypes(tb.Context()); len(names) > 0 {
		_ = c.Close()
		tb.Fatalf("rotatest: open %s: it has task types (%s): a test needs a database without any", o.Database.Address,
			strings.Join(names, ", "))
	}
	tb.Cleanup(r.close)
	return r
}

// Center returns the roster, for its tables and commands: Center().DB(), Center().Items(), Center().Runs().
func (r *Roster) Center() *center.Center { return r.c }

// DB returns the pool of the roster's database, for dealers and for what the test looks at. It is Center().DB().
func (r *Roster) DB() *sql.DB { return r.c.DB() }

// FailedItems returns the records of the failed items of a task type: those that are tried again (State RETRY) and
// those that are DEAD, at most 10,000.
func (r *Roster) FailedItems(taskType string) []ops.ItemRecord {
	r.tb.Helper()
	items, err := ops.New(r.c).Items().List(r.tb.Context(), ops.ItemFilter{TaskType: taskType}, 10_000)
	if err != nil {
		r.tb.Fatal("rotatest: ", err)
	}
	return items
}

func (r *Roster) taskTypes(ctx context.Context) []string {
	r.tb.Helper()
	names, err := ops.New(r.c).Tasks().Names(ctx)
	if err != nil {
		r.tb.Fatal("rotatest: ", err)
	}
	return names
}

// close deletes what the test has defined. The workers have stopped: their cleanups were registered later.
func (r *Roster) close() {
	ctx := context.WithoutCancel(r.tb.Context())
	if err := r.deleteAll(ctx, r.taskTypes(ctx)); err != nil {
		r.tb.Errorf("rotatest: %v", err)
	}
	if err := r.c.Close(); err != nil {
		r.tb.Errorf("rotatest: %v", err)
	}
}

// deleteAll deletes task types, those that others run after last.
func (r *Roster) deleteAll(ctx context.Context, names []string) error {
	var left []string
	var errs []error
	for _, name := range names {
		if err := ops.New(r.c).Tasks().Delete(ctx, name, "rotatest"); err != nil {
			left, errs = append(left, name), append(errs, err)
		}
	}
	if len(left) == 0 || len(left) == len(names) {
		return errors.Join(errs...)
	}
	return r.deleteAll(ctx, left)
}
