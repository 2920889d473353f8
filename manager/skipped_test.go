package manager_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
)

// L5: a stalled transaction holds the row of a queue that is to move. The servers of the roster together then plan once
// per second, and not each server at each heartbeat. The queue moves when the row is free.
func TestStalledTransactionMakesFewPlans(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, url string) {
		s := quick
		s.Queues, s.HeartbeatInterval, s.JudgeDeadInterval = 4, 100*time.Millisecond, time.Minute
		servers := []*process{startProcess(t, url, nothing, s)}
		first := servers[0]
		until(t, "the first server owns all queues", func() bool {
			return first.count(t, "SELECT COUNT(*) FROM schedule_queue WHERE cur_server IS NOT NULL") == 4
		})
		free := stallQueue(t, url, first, "3")
		for range 3 {
			servers = append(servers, startProcess(t, url, nothing, s))
		}
		until(t, "all queues but one have moved", func() bool {
			return first.count(t, "SELECT COUNT(DISTINCT cur_server) FROM schedule_queue WHERE req_server IS NULL") == 3 &&
				first.count(t, "SELECT COUNT(*) FROM schedule_task_running WHERE skipped LIKE '%3%'") == 1
		})
		locks, elapsed := locksDuring(t, first, 40)
		// Several servers may learn at the same time that a plan is due. Each takes the lock row, and all except the first
		// find that the plan is written.
		if most := len(servers) * (1 + int(elapsed/time.Second)); locks > most {
			t.Errorf("the lock row was taken %d times in %s by %d servers, want at most %d", locks, elapsed, len(servers), most)
		}
		free()
		until(t, "each server owns a queue", func() bool {
			return first.count(t, "SELECT COUNT(DISTINCT cur_server) FROM schedule_queue") == 4
		})
		for _, p := range servers {
			p.stop()
		}
		for _, p := range servers {
			if err := <-p.ended; err != nil {
				t.Error(err)
			}
		}
	})
}

// stallQueue opens a fenced transaction on the row of a queue of the server. The function that it returns ends the
// transaction.
func stallQueue(t *testing.T, url string, p *process, queue string) (free func()) {
	t.Helper()
	db, err := center.Open(t.Context(), anydb.URL(url), center.Options{})
	if err != nil {
		t.Fatal(err)
	}
	uuid := p.text(t, "SELECT cur_server FROM schedule_queue WHERE queue_id = '"+queue+"'")
	epoch := p.count(t, "SELECT epoch FROM schedule_queue WHERE queue_id = '"+queue+"'")
	ctx := db.Bind(context.WithoutCancel(t.Context()), center.Batch{Server: uuid, TaskType: "settle", Queue: center.QueueEpoch{ID: queue, Epoch: int64(epoch)}})
	tx, err := db.DB().BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := center.Fence(ctx, tx); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := errors.Join(tx.Commit(), db.Close()); err != nil {
			t.Error(err)
		}
	}
}

// locksDuring returns how often the lock row was taken while each server sent a number of heartbeats, and how long that
// took.
func locksDuring(t *testing.T, p *process, heartbeats int) (locks int, elapsed time.Duration) {
	t.Helper()
	const version, least = "SELECT version FROM schedule_task_running", "SELECT MIN(beat_count) FROM schedule_server"
	before, beats, begin := p.count(t, version), p.count(t, least), time.Now()
	until(t, "the servers have sent heartbeats", func() bool { return p.count(t, least) >= beats+heartbeats })
	locks = p.count(t, version) - before
	return locks, time.Since(begin)
}
