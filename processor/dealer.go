package processor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// TaskDealer selects and executes the items of the queues that this server owns. A user must implement only this
// interface. Keyed, Cursored, Paged, Discarder, Peeker, Traced and SetSelector are optional capabilities of the same
// value. They are looked for once, before the first select. A dealer whose type has more of them than it offers is
// Capable.
//
// The executors call both methods concurrently: for different queues, and for different batches of one queue. A
// TaskDealer must therefore be safe for concurrent use. A panic in any method counts as an error. It is logged with its
// stack.
type TaskDealer[T any] interface {
	// Select returns the next items of s.Queue, preferably at most s.Limit. The processor executes all of them. If
	// the dealer is Keyed, it leaves out the items that are in flight, back off or are dead. Select claims nothing:
	// when items are not executed because the queue moved or the process stopped, the next select returns them again,
	// here or on another server. An empty result means that there is nothing to do at the moment. If s.Run is not
	// nil, it means that the sweep of the queue is complete.
	//
	// At most one Select of a queue runs at a time. Unless processor_type is NOTSLEEP, none runs while items of the
	// queue are in flight. ctx is cancelled when the queue is lost or the process must stop, and it expires after
	// batch_timeout. The processor does not write to the result, and uses it until the last item is executed.
	Select(ctx context.Context, s Selection) ([]T, error)

	// Execute processes items of one queue. The processor executes items at least once, so Execute
	// must tolerate a repetition, or write through the fenced transaction of package center.
	//
	// An error means that the whole batch failed, unless it comes from Failures. Permanent and RetryAfter add
	// details. If the dealer is Keyed or Cursored, the items of a failed batch are selected again without a pause and
	// executed in smaller batches, down to one item, to find the items that fail. An item that fails alone is tried
	// again after its own pause, and is dead after item_max_attempts. Otherwise the whole queue pauses and all
	// items are selected again. A sweep retries nothing, see Queue.Run: it passes a Keyed item that fails alone, and
	// any other error fails the sweep.
	//
	// ctx carries the queue of the batch under the epoch of its selection, for the fence. It is cancelled when the
	// queue is lost or the process must stop, and it expires after batch_timeout. context.Cause(ctx) wraps
	// center.ErrFenced if the process knows that it does not own the queue any more. An Execute that ignores ctx
	// delays the hand-over of its queue. items is valid until Execute returns.
	Execute(ctx context.Context, items []T) error
}

// Selection says what a select should return.
type Selection struct {
	TaskType  string // the kind of work
	OwnSign   string // the environment
	Server    string // the server that selects, as schedule_server has it; empty without a roster
	Parameter string // the setting task_parameter
	Queue     Queue  // the queue to select; empty in SelectSet, which gets its queues beside
	// Total divides the items of a numbered queue: it has those for which QueueOf(id, Total) is Queue.Index, in SQL those
	// of the condition schema.Dialect.Mine. It differs between queues if some were split. For named queues it is the
	// number of queues.
	Total int
	Run   *Run // Queue.Run: the run that sweeps the queue; nil in mode CONTINUOUS

	// After is the position of a Paged dealer behind which the select goes on. It is empty at the start of the source,
	// and for other dealers.
	After string

	// Held are order keys whose items would not be executed now, if the dealer is Ordered: at most 1,000, sorted. A select
	// may leave out the items of these keys, all of them, so that pages have room for others. If it compares with less
	// regard, as a database may that takes a and A for equal, the order holds, and the items of A wait as long as those of
	// a. A dealer may ignore Held.
	Held []string

	// Limit is the number of items that the processor asks for. It is the size of a page, which is about a second of
	// work and at most fetch_number, plus the number of items that the select may return although they are not
	// executed: they are in flight, back off or are dead (X1, X2), or failed in this sweep. In a sweep, a result with
	// fewer items than Limit is complete: if all its items failed before, the sweep ends.
	Limit int
}

// Queue is one partition of the data under one grant. Only Cursor changes during the grant.
type Queue struct {
	ID        string // the number of the queue, or its name
	Index     int    // its number, or the position of its name
	Parameter string // the queue's own parameter
	Cursor    string // the position up to which the source of a Cursored dealer is done
	Epoch     int64  // rises with every change of owner; the fence compares it
	Run       *Run   // the run that sweeps the queue under this grant; nil in mode CONTINUOUS

	// Database is the name of the data database that has the items of the queue; empty for the roster's database. Division
	// and GrantedTotal say which items the roster gives to the queue: in a run, Selection.Total may be that of an earlier
	// division.
	Database     string
	Division     string
	GrantedTotal int

	Limits QueueLimits // its own bounds when it was granted; they may change since

	// Partition is partition_version of the settings: which division of the items into queues this is.
	Partition int64

	// Crashes is the number of owners in a row that were expired before they had executed a page of the queue. In a run,
	// it is at least the number of takeovers without progress.
	Crashes int

	// FailingSince is since when all calls for the queue have failed, if they did so at the earlier owner and nothing of
	// the queue has succeeded since. The queue then counts as failing until a call succeeds.
	FailingSince time.Time
}

// QueueOf returns the number of the queue to which an item belongs that is divided by a whole number: the absolute
// value of the remainder, so that each number has a queue, a negative one too (N4). total must be positive. The
// condition of SQL that says the same is schema.Dialect.Mine.
func QueueOf(key int64, total int) int {
	return int(max(key%int64(total), -(key % int64(total))))
}

// QueueLimits are the bounds and the weight of one queue (X11). The zero value is those of the settings, and one batch
// in a turn.
type QueueLimits struct {
	RatePerSecond float64 // instead of queue_rate_per_second; negative: no limit
	MaxInFlight   int     // instead of queue_max_in_flight; negative: no limit
	Weight        int     // batches that the queue may start when it is its turn; 0 is 1
}

// Run describes one run to one of its queues (mode RUN). A run sweeps all queues of a task type until they are drained.
// The processor does not write to it.
type Run struct {
	ID          string    // of the run
	Key         string    // the key of the submission; unique among the runs of the task type
	Params      string    // the parameters of the submission
	TraceParent string    // the trace context of the submission, as the header traceparent has it; empty if it has none
	ScheduledAt time.Time // the time slot that fired the run, or when it was submitted
	// SlotEnd is the next slot of the trigger: a run of a period does the work from ScheduledAt to SlotEnd. It is zero if
	// there is none, also for a run that was submitted or fired by hand.
	SlotEnd  time.Time
	TimeZone string // of the trigger, such as Europe/Berlin; empty is UTC

	// StartedAt is the time at which the run began, by the database's clock. It is the upper bound for the rows of this
	// run: newer rows belong to the next run. A Select that also returns newer rows may never return an empty result.
	StartedAt time.Time

	Attempt    int  // of this queue; the first is 1
	Recovering bool // an earlier sweep of this attempt stopped without reporting a result

	// What failed in earlier sweeps of this queue in the run, also before a rerun: the number of items, and the keys of
	// the recorded items. An item that fails again is poison.
	ItemsFailed  int64
	FailedBefore []string
}

// Keyed is an optional capability of a TaskDealer: it identifies items. A failing item then backs off alone and is
// dead after item_max_attempts, while its queue goes on. The processor_type NOTSLEEP needs it. A sweep passes a
// failing item: it counts the item and does not execute it again under this grant.
type Keyed[T any] interface {
	// Key returns the identity of item. Every select must return the same key for the same item. The key must be unique
	// among all items of the task type: a new item under the key of a dead item counts as dead. One select should not
	// return a key twice: the alert BAD_PAGE reports it. A database records a failed item only if its key is valid UTF-8
	// without NUL, is not empty and has at most 12,000,000 bytes: the alert UNRECORDED reports another one.
	//
	// The processor calls Key only when it must distinguish items: after failures, when items are executed during a
	// select, for the first item of a page, for all items of one page of a queue per minute, and for all in a sweep,
	// which must detect repeated items. Several executors call it concurrently, also while the item is executed, so Key
	// must not read what Execute writes.
	Key(item T) string
}

// Cursored is an optional capability of a TaskDealer: its queues are append-only sources, such as a log, that are read
// in order. Select returns the items after s.Queue.Cursor, in their order.
//
// What the cursor has passed is not selected again. So no item may later appear before the cursor. Two items must not
// have the same cursor, because the cursor of one passes the other. A number that a transaction draws before its commit
// does not suffice: if item 8 is committed before item 7, the cursor passes 7, which is lost. Three ways are safe:
//
//   - on PostgreSQL, a column of type xid8 with the default pg_current_xact_id(), the cursor (xid, id), and the
//     condition xid < pg_snapshot_xmin(pg_current_snapshot())
//   - a select that leaves out items until they are older than any transaction can be
//   - a source that commits in the order of the cursor, such as a single writer
//
// One batch of a queue runs at a time. After Execute has returned nil, the cursor moves to the last item of the batch.
// A fenced transaction (center.InTx, ExecFenced, Fence) moves it there with its commit. So what a batch writes must be
// one fenced transaction: after the first of several, the items whose transactions do not follow would be lost.
// If Execute returns an error, the cursor must not have moved. The processor then loads the cursor again, because what
// Execute has committed stays committed. It executes the items of the batch in smaller batches, and ignores Failures.
// The queue waits while the failing item is retried. When the item is dead, the processor records it under its key, or
// under its cursor if the dealer is not Keyed, and passes it.
//
// In a sweep, the failing item ends the sweep, and the next attempt of the queue begins with that item. The cursor of a
// sweep belongs to the queue in the run: it begins at Queue.Cursor. A batch
// that returns an error after its commit, for example because the reply was lost, counts as done if the cursor proves
// it.
type Cursored[T any] interface {
	// Cursor returns the position after item: UTF-8 without NUL, of at most 60,000 bytes. The executor that executes item
	// calls it. In a sweep, the executor that selects item calls it too.
	Cursor(item T) string
}

// Paged is an optional capability of a TaskDealer that is Keyed: its selects can go on behind an item. Without it, a
// select returns at most ten times fetch_number items, and if all of them have failed, the items behind them are not
// found (X2).
type Paged[T any] interface {
	// Position returns the place of item in the order of the select. It is not empty. If s.After is not empty, Select
	// returns only items behind that position, in the same order: WHERE id > s.After ORDER BY id. The select needs an
	// index in this order. The executor that selected item calls it, for the last item of a page.
	Position(item T) string
}

// Ordered is an optional capability of a TaskDealer that is Keyed and not Cursored: items with one order key, such as
// the events of one customer, are executed one after the other, in the order of the select (X10). A failed
// item holds back the items of its key behind it until it is done, or dead with on_dead PASS; other keys go on.
// Items of one key share no batch, unless the dealer is Atomic.
//
// The order holds inside a queue, so all items of a key must belong to one queue: Select must divide by the order key,
// or by what depends on it. The alert KEY_DIVIDED reports a key that is in two queues. Select must return the items of
// a key in one order each time, and transactions that add items of one key must commit in that order. An item that is
// not selected holds nothing back.
//
// A dealer with many items in few keys should be Paged or leave out Selection.Held: the items that wait are on the page
// else.
type Ordered[T any] interface {
	// OrderKey returns the order key of item: valid UTF-8 without NUL, of at most 2,000 characters. It must return the
	// same key for the same item each time. Items with an empty order key are in no order. The executor that selected item
	// calls it.
	OrderKey(item T) string
}

// Atomic is an optional capability of a TaskDealer that is Ordered.
type Atomic interface {
	// Atomic reports whether Execute is all or nothing: after an error nothing of the batch has had an effect, for example
	// because it is one transaction. Several items of one order key then share a batch, in their order. Failures does not
	// say which items are done: it counts as an error of the whole batch. Rota calls Atomic before the first select.
	Atomic() bool
}

// Traced is an optional capability of a TaskDealer: it says to which trace an item belongs, for example from a column
// that the writer of the row has filled. Batch.TraceParents hands it on to Hooks.Execute.
type Traced[T any] interface {
	// TraceParent returns the trace context of item, as the header traceparent of W3C Trace Context has it; empty if it
	// has none. The executor that executes item calls it before Execute, if there is a hook for that.
	TraceParent(item T) string
}

// Discarder is an optional capability of a TaskDealer that is Keyed: it takes items that are dead out of the source. A
// sweep gives up no items.
type Discarder[T any] interface {
	// Discard takes a dead item out of the source, with the cause of its death. Most simply it changes a column that
	// Select filters on. The executor of the last attempt calls it, after the store has the record of the death. The
	// context is that of the batch, whose fence does not save the cursor of a Cursored dealer here: the cursor passes
	// the item after the Discard (X3). After an error the processor calls Discard again, after the pauses of the retry
	// policy, until it succeeds, and sends the alert UNDISCARDED. If the commit of the last attempt got no reply,
	// Discard is called only if a later select returns the item again (F5).
	//
	// A process may end before its Discard commits. So each new owner of a queue calls Discard for each dead item
	// that Select returns, however it died: also for those that died before the dealer was a Discarder. Then cause has
	// only the text of the last error.
	Discard(ctx context.Context, item T, cause error) error
}

// SetSelector is an optional capability of a TaskDealer. It is TBSchedule's form of select: one query over a list of
// queues. Rota looks for it once, before the first select. The processor never calls Select of a dealer that has it.
//
// The processor asks for the items of one queue at a time, because a batch has items of one queue: so the loss of a
// queue cancels nothing of the others, and each queue rests, fails and drains by itself. It asks for all idle queues
// together, as a Peeker is asked, once in sleep_time_nodata. A SetSelector is therefore a Peeker, too; its own Peek is
// called instead if it has one.
type SetSelector[T any] interface {
	// SelectSet returns the next items of the owned queues, as Select does for one queue. s.Queue is empty. For idle
	// queues it is called as Peek is: s.Limit is their number, and an item of each queue that has some should be among
	// the result. If the result is full, it is called again for the queues without an item in it. It may modify owned.
	SelectSet(ctx context.Context, s Selection, owned []Queue) ([]T, error)

	// QueueOf returns the ID of the queue that item belongs to. The executor that selected item calls it once per item. If
	// that is another queue than the owned one, the select fails with an error that names the queue, and none of its items
	// is executed.
	QueueOf(item T) string
}

// Peeker is an optional capability of a TaskDealer: it says with one statement which of many idle queues have work, so
// that a process with a thousand idle queues sends one statement each sleep_time_nodata instead of a thousand selects.
//
// A queue is idle if its last select has returned nothing at all. If Peek names it, it is selected at once. If Peek
// fails, all its queues are selected as they are without a Peeker. A queue that Peek does not name is selected all the
// same a minute after its last select. So a Peek that is wrong delays work by a minute, and loses none.
type Peeker interface {
	// Peek returns the IDs of the queues for which Select would return an item now. Others may be among them, too; IDs
	// that are not in idle are ignored. It must read what Select reads: a queue that it misses is found by the next
	// select.
	//
	// idle has the Selection of each idle queue, with a Limit of 1. All of them are in one data database, and there are
	// at least two in all databases together. A goroutine beside the executors calls Peek, and waits for its end. ctx
	// expires after 10 s or batch_timeout, whichever is less. The drain of a queue does not wait for Peek, so
	// the queue may belong to another server when Peek reads.
	//
	// It is called in mode CONTINUOUS only, and not while the circuit breaker is open (X5). After
	// ErrNoPeek the process does not call it again.
	Peek(ctx context.Context, idle []Selection) ([]string, error)
}

// ErrNoPeek is what Peek returns if the dealer cannot peek after all, for instance because it wraps a dealer that is no
// Peeker.
var ErrNoPeek = errors.New("the dealer does not peek")

type runKey struct{}

// WithRun returns a context that carries a run, for RunOf. Package manager calls it for the contexts of Execute; a test
// of a dealer may call it too.
func WithRun(ctx context.Context, r *Run) context.Context { return context.WithValue(ctx, runKey{}, r) }

// RunOf returns the run whose items Execute works on; false if the task type is of mode CONTINUOUS, or ctx is no
// context of Execute. Select finds the run in Selection.Queue. The caller must not change the run.
func RunOf(ctx context.Context) (*Run, bool) {
	r, ok := ctx.Value(runKey{}).(*Run)
	return r, ok
}

// Backlogger is an optional capability of a TaskDealer: it tells how much work a queue has left. Without it, Rota does
// not know.
type Backlogger interface {
	// Backlog counts the items that selects of s.Queue would return, now or later, without a limit. s has no limit. An
	// estimate is enough. The owner of the queue calls Backlog from one goroutine, beside selects and batches, in mode
	// CONTINUOUS. The calls of a task type, of all its workers together, take 1 % of the time: if one worker owns all
	// queues, the call after one of 50 ms begins 5 s later. If a queue would stay uncounted for more than about 30 s at
	// that pace, the calls take more, up to a tenth of the time of each worker. The first call for a queue that is new to
	// a worker waits for no other. ctx expires after 10 s, and is cancelled when the process stops. After ErrNoBacklog the
	// process does not call Backlog again.
	Backlog(ctx context.Context, s Selection) (Backlog, error)
}

// Backlog is the work that a queue has left.
type Backlog struct {
	Items  int64
	Oldest time.Time // when the oldest of them became due, by the database's clock; zero if there is none or it is unknown
}

// StrayCounter is an optional capability of a Backlogger: it notices items that belong to no queue. Nothing selects
// them, and no backlog counts them.
type StrayCounter interface {
	// CountStrays counts the items that are left twice, at one moment: without the division into queues, and in all queues
	// of s.Total. The owner of queue 0 calls it when it gets the queue, and then once an hour. If the items are in data
	// databases, the owner of each queue calls it, and it should count for one queue of each database and return the zero
	// value for the others. It is called as Backlog is, and ctx expires as there. A dealer that cannot count returns the
	// zero value.
	CountStrays(ctx context.Context, s Selection) (Strays, error)
}

// Strays are the items of a source as the queues divide it.
type Strays struct {
	Items    int64  // of the source, counted without the division
	InQueues int64  // the sum of the items of all queues
	Select   string // how a worker selects the items of a queue, for people to read; empty if that is not known
}

// ErrNoBacklog is what Backlog returns if the dealer knows no backlog after all, for instance because it wraps a dealer
// that is no Backlogger.
var ErrNoBacklog = errors.New("the dealer counts no backlog")

// Each returns a dealer for jobs without items: it calls f once for each queue in each run, with the Selection of the
// queue. If f fails or panics, the sweep of the queue has failed, and the next attempt calls f again. In an outage (X5)
// the sweep waits instead, and calls f again without using up an attempt, unless the error is Permanent. f is also
// called again if the process dies, or the queue is lost, before the end of the call is recorded.
//
// Executors call f concurrently for different queues. Its context is the context of Execute. Each needs mode RUN: in
// CONTINUOUS no job happens only once, so every select returns an error that says this.
func Each(f func(context.Context, Selection) error) TaskDealer[Selection] {
	return &each{call: f, done: map[eachQueue]*Run{}}
}

type each struct {
	call func(context.Context, Selection) error

	mu   sync.Mutex
	done map[eachQueue]*Run // the Run of the last grant under which f succeeded; each grant has its own copy
}

// eachQueue names a queue among those of all task types that a dealer of Each serves.
type eachQueue struct{ taskType, ownSign, queue string }

func queueOfEach(s Selection) eachQueue { return eachQueue{s.TaskType, s.OwnSign, s.Queue.ID} }

// Select returns s as the only item, until Execute has succeeded with it under this grant.
func (e *each) Select(_ context.Context, s Selection) ([]Selection, error) {
	if s.Run == nil {
		return nil, fmt.Errorf("the dealer of task type %s is made by Each, which needs mode RUN, but the mode is CONTINUOUS",
			s.TaskType)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done[queueOfEach(s)] == s.Run {
		return nil, nil
	}
	return []Selection{s}, nil
}

// Execute calls f.
func (e *each) Execute(ctx context.Context, items []Selection) error {
	for _, s := range items {
		if err := e.call(ctx, s); err != nil {
			return err
		}
		e.mu.Lock()
		e.done[queueOfEach(s)] = s.Run
		e.mu.Unlock()
	}
	return nil
}
