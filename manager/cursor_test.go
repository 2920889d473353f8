package manager_test

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

// written is a Cursored dealer of the numbers 1 to 9. The numbers 2, 3 and 9 are in its table already, so that their
// transactions fail. It takes that for success.
type written struct {
	cl    *cluster
	calls map[int]int
}

var errWritten = errors.New("written before")

// Cursor implements processor.Cursored.
func (w *written) Cursor(n int) string { return strconv.Itoa(n) }

// Select implements processor.TaskDealer.
func (w *written) Select(_ context.Context, s processor.Selection) (list []int, err error) {
	after, _ := strconv.Atoi(s.Queue.Cursor) // 0 at the start
	for n := after + 1; n <= 9; n++ {
		list = append(list, n)
	}
	return list, nil
}

// Execute implements processor.TaskDealer.
func (w *written) Execute(ctx context.Context, items []int) error {
	w.calls[items[0]]++
	err := center.InTx(ctx, w.cl.c.DB(), func(*sql.Tx) error {
		if n := items[0]; n == 2 || n == 3 || n == 9 {
			return errWritten
		}
		return nil
	})
	if errors.Is(err, errWritten) {
		return nil
	}
	return err
}

// F4: a transaction that is rolled back saves no cursor. If the dealer takes its error for success, the cursor moves all
// the same.
func TestCursorPassesATransactionThatFailed(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		d := &written{cl, map[int]int{}}
		m, err := manager.New(cl.c, manager.Config{}, manager.Serve("settle", d, manager.Settings{Queues: 1}))
		if err != nil {
			t.Fatal(err)
		}
		w := cl.run(m)
		time.Sleep(time.Minute)
		if err := cl.leave(w); err != nil {
			t.Fatal(err)
		}
		var cursor string
		cl.scan("SELECT cursor_value FROM schedule_queue", &cursor)
		if cursor != "9" {
			t.Errorf("the cursor stands at %q, want 9", cursor)
		}
		want := map[int]int{1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1, 8: 1, 9: 1}
		if !maps.Equal(d.calls, want) {
			t.Errorf("calls by item %v, want one each", d.calls)
		}
	})
}
