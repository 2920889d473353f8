package centertest

import (
	"context"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
)

// queueSteps are what a case reads and changes of the queues of its task type.
type queueSteps struct{ *taskType }

// owners returns the owner of each queue in order: "A", "A>B" if B requests the queue, "-" if it has no owner.
func (r queueSteps) owners() []string {
	r.Helper()
	cur := r.readColumn("SELECT cur_server FROM schedule_queue WHERE task_type = '%s' AND own_sign = '%s' ORDER BY queue_index", r.task, r.c.OwnSign())
	req := r.readColumn("SELECT req_server FROM schedule_queue WHERE task_type = '%s' AND own_sign = '%s' ORDER BY queue_index", r.task, r.c.OwnSign())
	for i := range cur {
		if req[i] != "-" {
			cur[i] += ">" + req[i]
		}
	}
	return cur
}

// wantOwners checks the owners of all queues, as [fixture.owners] writes them.
func (r queueSteps) wantOwners(want ...string) {
	r.Helper()
	if diff := cmp.Diff(want, r.owners()); diff != "" {
		r.Fatalf("owners of the queues (-want +got):\n%s", diff)
	}
}

// epoch reads the epoch of a queue.
func (r queueSteps) epoch(queue string) int64 {
	r.Helper()
	return r.readInt("SELECT epoch FROM schedule_queue WHERE task_type = '%s' AND own_sign = '%s' AND queue_id = '%s'", r.task, r.c.OwnSign(), queue)
}

// handover returns what an owner sends after it has drained a queue for another server.
func (r queueSteps) handover(queue, to string) roster.Handover {
	r.Helper()
	return roster.Handover{QueueID: queue, Epoch: r.epoch(queue), Requester: r.uuid(to)}
}

// release hands queues over. It returns the ids of the queues that have changed their owner.
func (r queueSteps) release(from string, queues ...roster.Handover) []string {
	r.Helper()
	released, err := r.c.Roster().Server(r.task, r.uuid(from)).Release(r.Context(), queues)
	r.must(err)
	return released
}

// batch returns the context of an Execute call of a server, for a batch of a queue under its current epoch.
func (r queueSteps) batch(name, queue string) context.Context {
	r.Helper()
	return r.c.Bind(r.Context(), center.Batch{
		Server: r.uuid(name), TaskType: r.task, Queue: center.QueueEpoch{ID: queue, Epoch: r.epoch(queue)},
	})
}

// moveQueue makes another server the owner of a queue, as a hand-over or a take-over does.
func (r queueSteps) moveQueue(queue, to string) {
	r.Helper()
	r.exec("UPDATE schedule_queue SET cur_server = '%s', req_server = NULL, epoch = epoch + 1 WHERE task_type = '%s' AND queue_id = '%s'", r.uuid(to), r.task, queue)
}
