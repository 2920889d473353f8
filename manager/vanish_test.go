package manager_test

import (
	"context"
	"database/sql"
	"sync"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/processor"
)

// pausing is a dealer whose fenced transactions pause until their context ends.
type pausing struct {
	c      *center.Center
	paused func() // called in a fenced transaction
}

func (pausing) Select(context.Context, processor.Selection) ([]int, error) { return []int{1}, nil }

func (p pausing) Execute(ctx context.Context, _ []int) error {
	return center.InTx(ctx, p.c.DB(), func(*sql.Tx) error {
		p.paused()
		<-ctx.Done()
		return ctx.Err()
	})
}

// F6: a host that vanishes inside a fenced transaction does not keep its queue, because the database ends the
// transaction. The other server then owns all queues.
func TestHostVanishesInsideAFencedTransaction(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, url string) {
		through, proxy := testdb.Through(t, url)
		paused := make(chan struct{})
		once := sync.OnceFunc(func() { close(paused) })
		limited := center.Options{IdleTxTimeout: 2 * time.Second}
		a := startOpened(t, through, limited, func(c *center.Center) processor.TaskDealer[int] { return pausing{c, once} }, quick)
		<-paused
		proxy.Vanish()
		b := startProcess(t, url, nothing, quick)
		until(t, "the other server owns both queues", func() bool {
			return b.count(t, "SELECT COUNT(*) FROM schedule_server_history WHERE reason = 'EXPIRED'") == 1 &&
				b.count(t, "SELECT COUNT(*) FROM schedule_queue q JOIN schedule_server s ON s.uuid = q.cur_server") == quick.Queues
		})
		a.stop()
		proxy.Refuse(true)
		proxy.Cut() // without a network it would try to leave for half a minute
		t.Log(<-a.ended)
		b.stop()
		if err := <-b.ended; err != nil {
			t.Fatal(err)
		}
	})
}
