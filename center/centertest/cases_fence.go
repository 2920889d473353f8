package centertest

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/schema"
)

// tryFence runs Fence in a new transaction and rolls it back.
func (r *fixture) tryFence(ctx context.Context) error {
	r.Helper()
	tx, err := r.c.DB().BeginTx(ctx, nil)
	r.must(err)
	err = center.Fence(ctx, tx)
	r.must(tx.Rollback())
	return err
}

// Fence runs only the cases of the fence, for a Center that fences in another way.
func Fence(t *testing.T, c *center.Center) {
	t.Run("F1 F2 changes that make a batch stale", func(t *testing.T) {
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
				ctx := r.batch("A", "10", "2", "1")
				r.exec(statement, r.task)
				if err := r.tryFence(ctx); fine[name] != (err == nil) || err != nil && !errors.Is(err, center.ErrFenced) {
					t.Fatalf("%v", err)
				}
			})
		}
	})
	t.Run("F2 no batch", func(t *testing.T) {
		if err := center.Fence(t.Context(), nil); !errors.Is(err, center.ErrNoBatch) {
			t.Fatal(err)
		}
		if err := center.InTx(t.Context(), nil, nil); !errors.Is(err, center.ErrNoBatch) {
			t.Fatal(err)
		}
	})
	t.Run("F4 the cursor is saved by the fence", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		r.join("A")
		cursor := func() string {
			return r.readColumn("SELECT cursor_value FROM schedule_queue WHERE task_type = '%s'", r.task)[0]
		}
		save := func(to string, epoch int64, fn func(*sql.Tx) error) error {
			b := center.Batch{Server: r.uuid("A"), TaskType: r.task, Queues: []center.QueueEpoch{{ID: "0", Epoch: epoch}}, Cursor: &to}
			return center.InTx(c.Bind(t.Context(), b), c.DB(), fn)
		}
		ok := func(*sql.Tx) error { return nil }
		r.must(save("17", r.epoch("0"), ok))
		r.must(save("17", r.epoch("0"), ok)) // the update changes no value, and the row still counts as found
		boom := errors.New("boom")
		if err := save("18", r.epoch("0"), func(*sql.Tx) error { return boom }); !errors.Is(err, boom) {
			t.Fatal(err)
		}
		if err := save("19", r.epoch("0")-1, ok); !errors.Is(err, center.ErrFenced) {
			t.Fatal(err)
		}
		if got := cursor(); got != "17" {
			t.Fatalf("cursor %q, want 17", got)
		}
	})
}

func testShareFence(t *testing.T, c *center.Center) {
	t.Run("F3 batches share a queue and block its release", func(t *testing.T) {
		if c.Dialect() == schema.SQLite {
			t.Skip("SQLite has one lock for all writers")
		}
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		ctx := r.batch("A", "1")
		var open []*sql.Tx
		for range 2 {
			tx, err := c.DB().BeginTx(ctx, nil)
			r.must(err)
			r.must(center.Fence(ctx, tx))
			open = append(open, tx)
		}
		h := r.handover("1", "B")
		for _, tx := range open {
			if released := r.release("A", h); len(released) > 0 {
				t.Fatal("the queue was released under an open fence")
			}
			r.must(tx.Commit())
		}
		r.release("A", h)
		r.wantOwners("A", "B")
		if err := r.tryFence(ctx); !errors.Is(err, center.ErrFenced) {
			t.Fatal(err)
		}
	})
}

func testNoRoster(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 1})
	r.join("A")
	ctx := r.batch("A", "0")
	tx, err := c.DB().BeginTx(ctx, nil)
	r.must(err)
	defer func() { r.must(tx.Rollback()) }()
	// A transaction in another database sees no schedule_queue.
	if err := center.Fence(ctx, elsewhere{tx}); !errors.Is(err, center.ErrNoRoster) {
		t.Fatalf("%v", err)
	}
}

// elsewhere is a transaction in a database that has no schedule_queue.
type elsewhere struct{ *sql.Tx }

func (e elsewhere) QueryContext(ctx context.Context, _ string, _ ...any) (*sql.Rows, error) {
	return e.Tx.QueryContext(ctx, "SELECT queue_id FROM no_such_schedule_queue")
}

func testInTx(t *testing.T, c *center.Center) {
	t.Run("fence and write commit together", func(t *testing.T) {
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
			t.Fatal(err)
		}
		if got := r.readColumn("SELECT task_parameter FROM schedule_task_type WHERE task_type = '%s'", r.task)[0]; got != "written" {
			t.Fatalf("%q", got)
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
			t.Fatalf("%v after %d calls", err, runs)
		}
	})
	t.Run("F5 L7 InTx repeats a transaction after a deadlock", func(t *testing.T) {
		if c.Dialect() == schema.SQLite {
			t.Skip("SQLite has one lock for all writers, so it has no deadlocks")
		}
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		lock := func(ctx context.Context, tx *sql.Tx, task string) error {
			_, err := tx.ExecContext(ctx, "UPDATE schedule_task_running SET version = version + 1 WHERE task_type = '"+task+"'")
			return err
		}
		other := r.task + "_other"
		_, err := c.Tasks().Define(t.Context(), other, center.Settings{Queues: 1})
		r.must(err)
		// Each transaction locks one row, waits until the other has done so, and then locks the other's row. The database
		// rolls one of them back.
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
