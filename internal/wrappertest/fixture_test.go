package wrappertest

import (
	"context"
	"errors"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
)

// transaction is a transaction of a wrapper, with a write of a dealer.
type transaction struct {
	center.Tx
	write    func(context.Context) error
	commit   func() error
	rollback func() error
}

// checkFence checks on each database that a wrapper's transactions are fenced, with a cursor and without.
func checkFence(t *testing.T, begin func(context.Context, *center.Center) (transaction, error)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, url string) {
		c := openRoster(t, url)
		try := func(epoch int64, cursor *center.CursorMove) error {
			ctx := c.Bind(t.Context(), center.Batch{Server: "A", TaskType: "settle", Queue: center.QueueEpoch{ID: "0", Epoch: epoch}, Cursor: cursor})
			tx, err := begin(ctx, c)
			if err != nil {
				t.Fatal(err)
			}
			if err := center.Fence(ctx, tx.Tx); err != nil {
				return errors.Join(err, tx.rollback())
			}
			return errors.Join(tx.write(ctx), tx.commit())
		}
		for _, cursor := range []*center.CursorMove{nil, {}} {
			if err := try(7, cursor); err != nil {
				t.Errorf("fence: %v", err)
			}
			if err := try(6, cursor); !errors.Is(err, center.ErrFenced) {
				t.Errorf("under an old epoch: error %v, want ErrFenced", err)
			}
		}
		wantWritten(t, c)
	})
}

// openRoster opens a roster in which the server A owns the queue 0 of settle under the epoch 7.
func openRoster(t *testing.T, url string) *center.Center {
	t.Helper()
	c := centertest.Open(t, url, center.Options{})
	centertest.Define(t, c, "settle", center.Settings{Queues: 1})
	centertest.Exec(t, c, "UPDATE schedule_queue SET cur_server = 'A', epoch = 7")
	return c
}

// wantWritten checks that the write of a dealer is committed.
func wantWritten(t *testing.T, c *center.Center) {
	t.Helper()
	if n := centertest.CountRows(t, c, "SELECT 1 FROM schedule_task_type WHERE task_parameter = 'written'"); n != 1 {
		t.Errorf("%d rows are written, want 1", n)
	}
}

// checkRefused checks that what is no transaction is refused.
func checkRefused(t *testing.T, handles func(*center.Center) []center.Tx) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, url string) {
		c := openRoster(t, url)
		ctx := c.Bind(t.Context(), center.Batch{Server: "A", TaskType: "settle", Queue: center.QueueEpoch{ID: "0", Epoch: 7}})
		for _, h := range handles(c) {
			if err := center.Fence(ctx, h); !errors.Is(err, center.ErrNoTx) {
				t.Errorf("%T: error %v, want ErrNoTx", h, err)
			}
		}
	})
}
