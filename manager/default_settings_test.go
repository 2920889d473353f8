package manager_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

// stalling has endless work. The first batch of one queue stalls in its fenced transaction.
type stalling struct {
	c     *center.Center
	stuck chan struct{} // closed by the batch that stalls
	free  chan struct{} // closed to let it go on
}

const stalledQueue = 1 // it moves when a second worker joins

func (stalling) Select(_ context.Context, s processor.Selection) ([]int, error) {
	return []int{s.Queue.Index}, nil
}

func (d stalling) Execute(ctx context.Context, items []int) error {
	if items[0] != stalledQueue {
		time.Sleep(time.Millisecond)
		return nil
	}
	return center.InTx(ctx, d.c.DB(), func(*sql.Tx) error {
		select {
		case <-d.stuck: // not the first batch
		default:
			close(d.stuck)
		}
		<-d.free
		return nil
	})
}

// L5: a stalled fenced transaction on one queue delays the hand-over of other queues by at most one heartbeat. Another
// heartbeat passes in any case before the owner hears that a server has joined.
func TestStalledTransactionDelaysOtherQueuesByOneHeartbeat(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{testdb.Postgres, testdb.MySQL} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url := testdb.URL(t, kind)
			settings := manager.Settings{Queues: 6} // and the default intervals
			heartbeat := settings.WithDefaults().HeartbeatInterval
			stuck, free := make(chan struct{}), make(chan struct{})
			letGo := sync.OnceFunc(func() { close(free) })
			t.Cleanup(letGo) // after a failure
			a := startProcess(t, url, func(c *center.Center) processor.TaskDealer[int] { return stalling{c, stuck, free} }, settings)
			<-stuck
			b := startProcess(t, url, nothing, settings)
			slowest := moved(t, a, 2)
			joined, handed := instants(t, a)
			if stays := a.count(t, "SELECT COUNT(*) FROM schedule_event WHERE kind = 'RELEASED' AND queue_id = '1'"); stays != 0 {
				t.Error("the stalled queue was handed over with its transaction under way")
			}
			switch delay := handed.Sub(joined); {
			case delay <= 2*heartbeat:
				t.Logf("the others were handed over after %s", delay)
			case slowest > heartbeat*5/4:
				t.Logf("%s is too long, but this machine is too busy to judge it: a heartbeat was %s old", delay, slowest)
			default:
				t.Errorf("the other queues were handed over %s after the second worker had joined, want %s at the most", delay, 2*heartbeat)
			}
			letGo()
			moved(t, a, 3)
			b.stop()
			a.stop()
			if err := errors.Join(<-b.ended, <-a.ended); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// moved waits until so many queues were handed over and returns the highest age of a heartbeat meanwhile.
func moved(t *testing.T, p *process, n int) (slowest time.Duration) {
	t.Helper()
	last := time.Now()
	until(t, "the queues are handed over", func() bool {
		var oldest time.Time
		err := p.c.DB().QueryRowContext(t.Context(), "SELECT MIN(heartbeat_time) FROM schedule_server").Scan(&oldest)
		if err != nil {
			t.Fatal(err)
		}
		slowest = max(slowest, time.Since(oldest), time.Since(last))
		last = time.Now()
		return p.count(t, "SELECT COUNT(*) FROM schedule_event WHERE kind = 'RELEASED'") >= n
	})
	return slowest
}

// instants returns when the last worker joined and when the last queue was handed over, by the database's clock.
func instants(t *testing.T, p *process) (joined, handed time.Time) {
	t.Helper()
	for kind, at := range map[string]*time.Time{"JOINED": &joined, "RELEASED": &handed} {
		if err := p.c.DB().QueryRowContext(t.Context(), "SELECT MAX(event_time) FROM schedule_event WHERE kind = '"+kind+"'").Scan(at); err != nil {
			t.Fatal(err)
		}
	}
	return joined, handed
}
