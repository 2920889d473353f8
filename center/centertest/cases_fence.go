package centertest

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/schema"
)

// tryFence runs Fence in a new transaction and rolls it back.
func (r queueSteps) tryFence(ctx context.Context) error {
	r.Helper()
	tx, err := r.c.DB().BeginTx(ctx, nil)
	r.must(err)
	err = center.Fence(ctx, tx)
	r.must(tx.Rollback())
	return err
}

// Fence runs only the cases of the fence. It also serves a test that makes a Center fence in another way.
func Fence(t *testing.T, c *center.Center) {
	t.Run("F1 F2 a change of owner or epoch makes a batch stale", func(t *testing.T) { testStaleBatches(t, c) })
	t.Run("F2 a context without a batch is refused", func(t *testing.T) {
		if err := center.Fence(t.Context(), nil); !errors.Is(err, center.ErrNoBatch) {
			t.Fatalf("Fence: error %v, want ErrNoBatch", err)
		}
		if err := center.InTx(t.Context(), nil, nil); !errors.Is(err, center.ErrNoBatch) {
			t.Fatalf("InTx: error %v, want ErrNoBatch", err)
		}
	})
	t.Run("F1 pools and connections are refused", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		r.join("A")
		conn, err := c.DB().Conn(t.Context())
		r.must(err)
		defer conn.Close()
		for _, tx := range []center.Tx{nil, c.DB(), conn, struct{ *sql.DB }{c.DB()}} {
			if err := center.Fence(r.batch("A", "0"), tx); !errors.Is(err, center.ErrNoTx) {
				t.Fatalf("Fence in %T: error %v, want ErrNoTx", tx, err)
			}
		}
	})
	t.Run("F12 a program fences a transaction of its own", func(t *testing.T) { testFenceStatement(t, c) })
	t.Run("F12 the transaction of a program keeps the queue", func(t *testing.T) { testFenceStatementHolds(t, c) })
	t.Run("F1 wrappers of transactions are fenced", func(t *testing.T) { testWrappers(t, c) })
	t.Run("F4 the fence saves the cursor", func(t *testing.T) { testFenceCursor(t, c) })
}

// testWrappers checks that the fence reaches the transaction below wrappers, and uses a wrapper that hides it.
func testWrappers(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 1})
	r.join("A")
	ctx := r.batch("A", "0")
	for _, wrap := range []func(*sql.Tx) center.Tx{
		func(tx *sql.Tx) center.Tx { return rewriting{tx} },
		func(tx *sql.Tx) center.Tx { return &rewriting{tx} },
		func(tx *sql.Tx) center.Tx { return elsewhere{tx} },
	} {
		tx, err := c.DB().BeginTx(ctx, nil)
		r.must(err)
		wrapped := wrap(tx)
		_, hidden := wrapped.(elsewhere)
		if err := center.Fence(ctx, wrapped); hidden != errors.Is(err, center.ErrNoRoster) || !hidden && err != nil {
			t.Errorf("Fence in %T: error %v", wrapped, err)
		}
		r.must(tx.Rollback())
	}
}

// rewriting is a transaction of a wrapper that changes statements with parameters, as bun does.
type rewriting struct{ *sql.Tx }

// ExecContext implements center.Tx.
func (rewriting) ExecContext(context.Context, string, ...any) (sql.Result, error) {
	return nil, errors.New("the statement has lost its parameters")
}

// QueryContext implements center.Tx.
func (rewriting) QueryContext(context.Context, string, ...any) (*sql.Rows, error) {
	return nil, errors.New("the statement has lost its parameters")
}

func testStaleBatches(t *testing.T, c *center.Center) {
	change := map[string]string{
		"":            "UPDATE schedule_queue SET gmt_modified = gmt_modified WHERE task_type = '%s'",
		"the epoch":   "UPDATE schedule_queue SET epoch = epoch + 1 WHERE task_type = '%s' AND queue_id = '1'",
		"the owner":   "UPDATE schedule_queue SET cur_server = 'x' WHERE task_type = '%s' AND queue_id = '1'",
		"no owner":    "UPDATE schedule_queue SET cur_server = NULL WHERE task_type = '%s' AND queue_id = '1'",
		"the row":     "DELETE FROM schedule_queue WHERE task_type = '%s' AND queue_id = '1'",
		"one request": "UPDATE schedule_queue SET req_server = 'x' WHERE task_type = '%s'",
	}
	fine := map[string]bool{"": true, "one request": true}
	for name, statement := range change {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t, c, center.Settings{Queues: 12})
			r.join("A")
			ctx := r.batch("A", "1")
			r.exec(statement, r.task)
			if err := r.tryFence(ctx); fine[name] != (err == nil) || err != nil && !errors.Is(err, center.ErrFenced) {
				t.Fatalf("error %v, want ErrFenced: %t", err, !fine[name])
			}
		})
	}
}

// testFenceStatement checks that the statement for other programs changes its row as long as the fence passes.
func testFenceStatement(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 2})
	r.join("A", "B")
	ctx := r.batch("A", "1")
	stmt, err := center.FenceStatementOf(ctx)
	r.must(err)
	if rows := r.changed(c.DB(), stmt); rows != 1 {
		t.Errorf("the owner's statement changes %d rows, want 1", rows)
	}
	r.release("A", r.handover("1", "B"))
	if rows := r.changed(c.DB(), stmt); rows != 0 {
		t.Errorf("after the release the statement changes %d rows, want 0", rows)
	}
	if _, err := center.FenceStatementOf(t.Context()); !errors.Is(err, center.ErrNoBatch) {
		t.Errorf("without a batch: error %v, want ErrNoBatch", err)
	}
}

// testFenceStatementHolds checks that the queue stays with its owner while a transaction is under the statement.
func testFenceStatementHolds(t *testing.T, c *center.Center) {
	if !needsRowLocks(t, c) {
		return
	}
	r := newFixture(t, c, center.Settings{Queues: 2})
	r.join("A", "B")
	stmt, err := center.FenceStatementOf(r.batch("A", "1"))
	r.must(err)
	tx := Begin(t, c)
	r.changed(tx, stmt)
	h := r.handover("1", "B")
	if released := r.release("A", h); len(released) > 0 {
		t.Errorf("released queues %v under the statement, want none", released)
	}
	r.must(tx.Commit())
	if released := r.release("A", h); len(released) != 1 {
		t.Errorf("released queues %v after the commit, want queue 1", released)
	}
}

// changed executes a fencing statement and returns how many rows it changes.
func (r *fixture) changed(db interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}, stmt center.FenceStatement,
) int64 {
	r.Helper()
	result, err := db.ExecContext(r.Context(), stmt.SQL, stmt.Args...)
	r.must(err)
	rows, err := result.RowsAffected()
	r.must(err)
	return rows
}

func testFenceCursor(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 1})
	r.join("A")
	cursor := func() string {
		return r.readColumn("SELECT cursor_value FROM schedule_queue WHERE task_type = '%s'", r.task)[0]
	}
	save := func(from, to string, epoch int64, fn func(*sql.Tx) error) error {
		b := center.Batch{Server: r.uuid("A"), TaskType: r.task, Queue: center.QueueEpoch{ID: "0", Epoch: epoch}, Cursor: &center.CursorMove{From: from, To: to}}
		return center.InTx(c.Bind(t.Context(), b), c.DB(), fn)
	}
	ok := func(*sql.Tx) error { return nil }
	r.must(save("", "17", r.epoch("0"), ok))
	r.must(save("", "17", r.epoch("0"), ok)) // the update changes no value, but it still finds the row
	boom := errors.New("boom")
	if err := save("17", "18", r.epoch("0"), func(*sql.Tx) error { return boom }); !errors.Is(err, boom) {
		t.Fatalf("a function that fails: error %v, want its own", err)
	}
	if err := save("17", "19", r.epoch("0")-1, ok); !errors.Is(err, center.ErrFenced) {
		t.Fatalf("save under an old epoch: error %v, want ErrFenced", err)
	}
	// A restore has taken the last transactions back, and this batch begins behind them.
	if err := save("18", "19", r.epoch("0"), ok); !errors.Is(err, center.ErrFenced) || errors.Is(err, center.ErrNoRoster) {
		t.Fatalf("save from where the cursor does not stand: error %v, want ErrFenced alone", err)
	}
	if got := cursor(); got != "17" {
		t.Fatalf("cursor %q, want 17", got)
	}
}

// testShareFence checks that batches of one queue run side by side where the database has share locks (F3).
func testShareFence(t *testing.T, c *center.Center) {
	t.Run("F3 batches share a queue and block its release", func(t *testing.T) {
		if !needsRowLocks(t, c) {
			return
		}
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		ctx := r.batch("A", "1")
		batches := 2
		if c.Dialect() == schema.TiDB || c.Roster().DB.WriteFence {
			batches = 1 // share locks do not exist, or do not reach the other nodes
		}
		var open []*sql.Tx
		for range batches {
			tx, err := c.DB().BeginTx(ctx, nil)
			r.must(err)
			r.must(center.Fence(ctx, tx))
			open = append(open, tx)
		}
		h := r.handover("1", "B")
		for _, tx := range open {
			if released := r.release("A", h); len(released) > 0 {
				t.Fatalf("released queues %v under an open fence, want none", released)
			}
			r.must(tx.Commit())
		}
		r.release("A", h)
		r.wantOwners("A", "B")
		if err := r.tryFence(ctx); !errors.Is(err, center.ErrFenced) {
			t.Fatalf("fence after the release: error %v, want ErrFenced", err)
		}
	})
}

// testNoRoster checks that the fence refuses a transaction in a database without the tables (F2).
func testNoRoster(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 1})
	r.join("A")
	ctx := r.batch("A", "0")
	tx, err := c.DB().BeginTx(ctx, nil)
	r.must(err)
	defer func() { r.must(tx.Rollback()) }()
	if err := center.Fence(ctx, elsewhere{tx}); !errors.Is(err, center.ErrNoRoster) {
		t.Fatalf("error %v, want ErrNoRoster", err)
	}
}

// elsewhere is a transaction that finds no schedule_queue, as in another database. The interface hides the *sql.Tx.
type elsewhere struct{ hiddenTx }

type hiddenTx interface {
	center.Tx
	Commit() error
	Rollback() error
}

// ExecContext implements center.Tx.
func (e elsewhere) ExecContext(ctx context.Context, _ string, _ ...any) (sql.Result, error) {
	return e.hiddenTx.ExecContext(ctx, "UPDATE no_such_schedule_queue SET queue_id = ''")
}

// QueryContext implements center.Tx.
func (e elsewhere) QueryContext(ctx context.Context, _ string, _ ...any) (*sql.Rows, error) {
	return e.hiddenTx.QueryContext(ctx, "SELECT queue_id FROM no_such_schedule_queue")
}

func testInTx(t *testing.T, c *center.Center) {
	t.Run("F1 InTx commits the writes of a batch only under its epochs", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		r.join("A")
		ctx := r.batch("A", "0")
		set := func(v string) func(*sql.Tx) error {
			return func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, "UPDATE schedule_task_type SET task_parameter = '"+v+"' WHERE task_type = '"+r.task+"'")
				return err
			}
		}
		r.must(center.InTx(ctx, c.DB(), set("written")))
		r.exec("UPDATE schedule_queue SET epoch = epoch + 1 WHERE task_type = '%s'", r.task)
		if err := center.InTx(ctx, c.DB(), set("too late")); !errors.Is(err, center.ErrFenced) {
			t.Fatalf("write under an old epoch: error %v, want ErrFenced", err)
		}
		if got := r.readColumn("SELECT task_parameter FROM schedule_task_type WHERE task_type = '%s'", r.task)[0]; got != "written" {
			t.Fatalf("task parameter %q, want %q", got, "written")
		}
	})
	t.Run("F1 InTx says that a cancelled batch has lost its queue", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		r.join("A")
		for cause, fenced := range map[error]bool{center.ErrFenced: true, errors.New("the lease has expired"): false} {
			ctx, cancel := context.WithCancelCause(r.batch("A", "0"))
			err := center.InTx(ctx, c.DB(), func(tx *sql.Tx) error {
				cancel(cause)
				_, err := tx.ExecContext(ctx, "UPDATE schedule_task_type SET task_parameter = 'written' WHERE task_type = '"+r.task+"'")
				return err
			})
			if !errors.Is(err, context.Canceled) || errors.Is(err, center.ErrFenced) != fenced {
				t.Errorf("InTx cancelled because of %q: error %v, want context canceled, and ErrFenced: %v", cause, err, fenced)
			}
		}
	})
	t.Run("F5 InTx does not repeat an unknown commit", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		r.join("A")
		ctx, cancel := context.WithCancel(r.batch("A", "0"))
		runs := 0
		err := center.InTx(ctx, c.DB(), func(*sql.Tx) error {
			runs++
			cancel()
			return nil
		})
		if !errors.Is(err, center.ErrUnknownCommit) || runs != 1 {
			t.Fatalf("error %v after %d calls, want ErrUnknownCommit after 1", err, runs)
		}
	})
}

func testInTxDeadlock(t *testing.T, c *center.Center) {
	t.Run("F5 L7 InTx repeats a transaction after a deadlock", func(t *testing.T) {
		if !needsRowLocks(t, c) {
			return
		}
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		lock := func(ctx context.Context, tx *sql.Tx, task string) error {
			_, err := tx.ExecContext(ctx, "UPDATE schedule_task_running SET version = version + 1 WHERE task_type = '"+task+"'")
			return err
		}
		other := r.task + "_other"
		_, err := ops.New(c).Tasks().Define(t.Context(), other, center.Settings{Queues: 1})
		r.must(err)
		// Each transaction locks one row, waits until the other has done so too, and then locks the row of the other. The
		// database rolls one of them back.
		first := []chan struct{}{make(chan struct{}), make(chan struct{})}
		ends := make(chan error, 2)
		for i, rows := range [][2]string{{r.task, other}, {other, r.task}} {
			ctx := r.batch("A", []string{"0", "1"}[i])
			go func() {
				runs := 0
				ends <- center.InTx(ctx, c.DB(), func(tx *sql.Tx) error {
					if err := lock(ctx, tx, rows[0]); err != nil {
						return err
					}
					if runs++; runs == 1 {
						close(first[i])
						<-first[1-i]
					}
					return lock(ctx, tx, rows[1])
				})
			}()
		}
		r.must(<-ends)
		r.must(<-ends)
	})
}
