// Package processor does the work of the queues that a server owns: it selects their items and executes them. A user
// implements TaskDealer; package manager owns a Processor for every task type and tells it which queues it may work.
// The package knows no SQL and nothing of the roster; what it must ask of them is in Env.
//
// # Lanes
//
// A lane is what one select covers: one queue, or all of them if the dealer is a SetSelector. It goes round:
//
//	idle ──due──► selecting ──items──► executing ──last batch──► idle, for sleep_time_interval
//	                  └──nothing──► idle, for sleep_time_nodata
//
// and after a failure it is idle for a pause that grows. This is TBSchedule's SLEEP, for each lane by itself: a lane
// is selected again when nothing of it is in hand, and what one lane waits for holds up no other. A queue that drains
// takes its lane out of this round, or only its own items if the lane has more queues.
//
// # The life of an item
//
// Select returns it on a page. The page is cut into batches of execute_number, in the order of the select; several
// executors may work one page. An item is executed once per selection, in one batch, or dropped unstarted: because its
// queue drains, because trust is gone, or because Run ends. Nothing is claimed in between, so a dropped item is found
// by the next select, here or at another server, and so is an item whose batch failed. The batch runs in a context that
// says under which epochs it was selected; a queue is granted anew only when nothing of the old grant is in hand, so
// no batch can run under an epoch that is not its own.
//
// # The scheduler
//
// thread_number executors take turns with one lock: an executor books the batch that it has done and takes the next
// one under a single hold of it, and nothing is allocated for a batch but what several queues at once require. A lane
// that is due waits in a heap, ordered by the time it became due, so that a lane that never rests still comes after all
// others that are due. Batches go before selects, which bounds memory to a page per executor; pages that are worked at
// the same time have their batches taken in turn. The alternative, a goroutine per queue which hands items to executors
// through a channel (TBSchedule's shape), costs a hand-over per item, and its drain has to hunt items in three places.
//
// An executor without work waits on a condition, and one timer is set to the instant when the next lane is due. Nothing
// polls: trust that was lost is asked for again when Wake, Grant or Resume says so.
//
// The pauses after failures come from github.com/cenkalti/backoff, which is small, kept for ten years, and has the
// jitter right; an own doubling loop would be as long as the code that calls it.
//
// # Not promised
//
// Exactly one execution: that is the fence's business, in package center. An order between items or between queues. An
// end of a dealer that ignores its context: Go cannot stop it, so its queue stays in hand and Run does not return.
// A failure of one item is a failure of its batch, and makes its queue pause.
package processor
