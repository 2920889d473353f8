package center

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// UnknownCommit notes that a transaction that was fenced for the batch of ctx may still commit, because its COMMIT got
// no reply. A select would return the items as they were before, and they would take effect twice (F5). So the queues
// of the batch are selected again only when the database has ended the transaction. It is for a dealer that commits by
// itself (see Fence); InTx does it by itself. UnknownCommit returns ErrNoBatch if ctx does not come from Execute.
func UnknownCommit(ctx context.Context) error {
	b, err := batchOf(ctx)
	if err == nil {
		b.c.commits.note(b)
	}
	return err
}

// ended notes how a fenced transaction has ended, and returns its error. in is the data database of the transaction;
// nil: the roster's database. Only the one that has the items has the cursor.
func (b boundBatch) ended(in *Data, err error) error {
	switch {
	case err == nil && in == b.data:
		b.saved.Store(true)
	case errors.Is(err, ErrUnknownCommit):
		b.c.commits.note(b)
	}
	return err
}

// EndCommits is for package manager, which calls it before each select of a queue. If a transaction of the queue may
// still commit (see UnknownCommit), EndCommits waits for its end, for about a second, and reports that. Until it has
// returned nil, the queue must not be selected. It returns ErrFenced if the server does not own the queue any more.
func (c *Center) EndCommits(ctx context.Context, taskType, server string, q QueueEpoch) (ended bool, err error) {
	key := dataQueue{taskType, q.ID}
	of, found := c.commits.of(key)
	if !found {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, raiseTimeout)
	defer cancel()
	// A transaction of the roster's database may be for a queue whose items are elsewhere, too.
	err = c.roster.Server(taskType, server).Fence().End(ctx, q)
	if err == nil && of.data != nil {
		err = of.data.fence(taskType, server).End(ctx, q)
	}
	c.commits.asked(key, of, err)
	return err == nil, sqldb.Wrap(err, "wait for a commit of queue %s of %s$%s", q.ID, taskType, c.ownSign)
}

// CommitWaits returns the queues of a task type that have waited in vain for the end of a transaction whose COMMIT got
// no reply, and since when the commit is unknown.
func (c *Center) CommitWaits(taskType string) []DataWait { return c.commits.waiting(taskType) }

// commits is the queues that have a transaction whose COMMIT got no reply.
type commits struct {
	mu     sync.Mutex
	queues map[dataQueue]unknownCommit
}

type unknownCommit struct {
	data  *Data // that has the items of the queue; nil: the roster's database
	since time.Time
	held  bool // it was still open when a select was due
}

func (c *commits) note(b boundBatch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queues == nil {
		c.queues = map[dataQueue]unknownCommit{}
	}
	c.queues[dataQueue{b.TaskType, b.Queue.ID}] = unknownCommit{data: b.data, since: time.Now()}
}

func (c *commits) of(key dataQueue) (of unknownCommit, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of, found = c.queues[key]
	return of, found
}

// asked takes down how an attempt to wait for a commit has ended. Meanwhile another one may have got no reply.
func (c *commits) asked(key dataQueue, of unknownCommit, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.queues[key] != of:
	case err == nil, errors.Is(err, ErrFenced): // a change of the owner has waited, too
		delete(c.queues, key)
	default:
		of.held = true
		c.queues[key] = of
	}
}

func (c *commits) waiting(taskType string) (waits []DataWait) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, of := range c.queues {
		if of.held && key.taskType == taskType {
			waits = append(waits, DataWait{key.taskType, key.id, of.since})
		}
	}
	slices.SortFunc(waits, func(a, b DataWait) int { return cmp.Compare(a.Queue, b.Queue) })
	return waits
}
