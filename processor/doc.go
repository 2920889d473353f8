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
// and after a failed select it is idle for a pause that grows. This is TBSchedule's SLEEP, for each lane by itself: a
// lane is selected again when nothing of it is in hand, and what one lane waits for holds up no other. In NOTSLEEP it
// is idle as soon as its last batch has started. A queue that drains takes its lane out of this round, or only its own
// items if the lane has more queues. A sweep leaves it in the place of the two last rests.
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
// In NOTSLEEP a select may return what is in hand, or was when it began and has been committed since: its snapshot is
// older than its return. So the batches in hand of a lane are noted when its select begins, under the lock that batches
// are claimed under, and their items are taken out of what it returns (X1). Nothing else of the lane can have been in
// hand meanwhile, since items get in hand by a select only, and there is one at a time. A set of all keys in hand, kept
// up for every item, would need the same moment and cost a map for each item; here it costs keys only for pages that
// were selected beside running batches.
//
// # Failing items
//
// Of a Keyed or Cursored dealer, a queue has a book of its failed items, which an ItemStore keeps beyond the grant. The
// error of a batch does not say which item failed, so the items of the batch become suspects: they are selected again,
// without a pause, and executed in batches of a tenth of the size, down to one. Only an item that fails alone, or by
// name in Failures, counts an attempt and backs off; so a poison item costs the others of its batch a repetition, never
// an attempt. Executing them one by one at once costs five times as many calls; executing them from memory, without a
// select, might repeat what an unknown commit has done. An item that backs off or is dead is left out of what a select
// returns, and the limit of the select grows by their number (X2).
//
// A cursor cannot leave out an item, so its queue waits until the item is done or dead. Only a success, or a record of
// the death, moves the cursor; after anything else the rest of the page is dropped and the cursor loaded (X3).
//
// # Sweeps
//
// A queue that is granted with a Run is swept (mode RUN): its lane never rests for want of items, and leaves the round
// for good when a select has found nothing while nothing was in hand, or when the sweep has failed. Only the queue as a
// whole is tried again, by another grant (R11), so a Keyed item that fails alone or by name is passed, and a failure that
// cannot be laid on an item is that of the sweep. A passed item is in the book like a dead one, and the limit of the
// next select is larger by it; therefore a page of passed items only is the end if, and only if, there was room on it
// for others. In NOTSLEEP a sweep that finds nothing beside what is in hand waits for that, since nothing new is to
// come, rather than asking again and again.
//
// The cursor of a sweep is saved and loaded like any other, and passes no item that has failed (X3): the sweep ends there,
// and the queue is tried again from that item on. What a cursor has passed no attempt and no rerun would come to again.
// A batch that has failed asks for the cursor at once, since its commit may have happened after all. To remember the
// cursor under the grant and save it now and then is less work, and executed again what a lost reply hid; what was
// remembered also overwrote what fences had saved since.
//
// A dealer whose Execute does not change what Select returns would be swept for ever. So a sweep has a trail of the
// items that it has been through, by key, cursor or value, as long as its largest page at least, and three pages in a
// row of nothing else end it. The set of all items of the sweep would notice a single repetition, and cost memory
// without bound. Items that have none of the three, such as pointers without keys, go unnoticed: an address says
// nothing, and to look behind it is a race with whoever shares it. Then the run's deadline is what ends it.
//
// # The scheduler
//
// thread_number executors take turns with one lock: an executor books the batch that it has done and takes the next
// one under a single hold of it, and nothing is allocated for a batch but what several queues or a cursor require. A
// lane that is due waits in a heap, ordered by the time it became due, so that a lane that never rests still comes after
// all others that are due. While fewer pages are pending or being selected than there are executors, a select that is due comes
// before the next batch; otherwise there are only batches, which bounds memory, and keeps a crowd of empty queues from
// taking all executors from a page. Batches that always came first would let a large page keep all other queues from
// being selected. Pages that are worked at the same time have their batches taken in turn. The alternative,
// a goroutine per queue which hands items to executors through a channel (TBSchedule's shape), costs a hand-over per
// item, and its drain has to hunt items in three places.
//
// An executor without work waits on a condition, and one timer is set to the instant when the next lane is due, or when
// rate_per_second allows the next batch: a batch that must wait stays on its page, where a drain drops it. Nothing
// polls: trust that was lost is asked for again when Wake, Grant or Resume says so.
//
// The jitter of pauses comes from github.com/cenkalti/backoff, and the rate from golang.org/x/time/rate: both are small
// and have been right for years; an own form of either would be as long as the code that calls it.
//
// # Not promised
//
// Exactly one execution: that is the fence's business, in package center. An order between items or between queues, but
// for the items of a cursor. An end of a dealer that ignores its context: Go cannot stop it, so its queue stays in hand,
// Run does not return, and Stalled names it. That a select returns no item twice: both are executed, perhaps at once. A
// record of every failure: a process that dies forgets suspects and what its ItemStore could not save. Without Keyed or
// Cursored a failure of one item is a failure of its batch, and makes its queue pause, or its sweep fail. That a sweep
// meets every row: what its dealer does not select, be it inserted or committed late, is left to the next run.
package processor
