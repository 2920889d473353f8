// Package engine calls the dealers: a Processor selects and executes the items of the queues that it was granted.
// Package manager has one for each task type, grants it queues and takes them away. The package knows no SQL and
// nothing of the tables: Env connects it to both. What users implement is in package processor.
//
// The file doc.go says below the package clause how it works inside.
package engine

// How a Processor works, for people who change it. Rules such as X5 are in docs/protocol*.md.
//
// # The way of an item
//
// An executor takes every step. It holds the scheduler's lock in the methods whose names end in Locked.
//
//	Processor.Grant            puts the lane of the queue into the due lanes
//	executor.next              claims the next call; scheduler.nextSelectLocked finds the lane that is due
//	selectCall.claimLocked     takes the select of the lane, and clears its timetable
//	selectCall.perform         calls prepare, selectItems and preparePage, without the lock
//	selectCall.prepare         asks for failed items, loads the cursor; the stages set the position and the limit
//	selectCall.selectItems     calls the user's Select, which returns the item
//	selectCall.preparePage     filters the page: filterPage drops what must not be executed now
//	selectCall.finishLocked    makes the page ready for batches
//	executor.next              claims the next call; scheduler.nextBatchLocked finds the lane whose turn it is
//	batch.claimLocked          takes the next items of the page, and the stages note what they must know of them
//	batch.perform              calls the user's Execute with the item, if the stages let it begin
//	batch.conclude             finds the outcome; batch.blame records failed items, batch.saveCursor moves the cursor
//	batch.finishLocked         counts the items; after the last batch of the page rest.plan fills the timetable
//
// What an option adds to this way is a stage (stage.go): samples of an outage, pages behind failed items, order keys,
// sweeps, items that are executed one by one, the watch for selects that repeat themselves. Each is one file with the
// functions that the steps above call, and with what it knows of a lane. Stages do not know each other. What one of
// them finds that matters to another, or to the core, stands in the look of the select: for example that the next
// select goes on behind the page, so that to find nothing proves nothing. A new option that needs a case in a step, or
// in another stage, is the wrong design. Rejected: an interface with a method for each step, because most stages need
// two or three of them.
//
// The decisions on this way are pure: each depends on its arguments and its value alone. The calls and the scheduler
// collect the arguments, and carry out what is decided:
//
//	filter.judge        whether an item of a page is executed now, and in which batch, by its record
//	keyOrder.judge      whether it waits for another item of its order key
//	handout             which items of a page are next: sequence, or chains, where one waits for another of its key
//	failure.judge       whether a failure is no attempt of its item, an attempt or the last one; passes in a sweep
//	outage.observe      whether the evidence of a call that has ended opens or closes the circuit breaker
//	streak.observe      whether the dealer does nothing but fail, by the same evidence; queueStreak for one queue
//	timetable.due       when the lane is selected again, from the reasons for it and against it
//	selectCall.leavesIdle  whether the lane is idle, so that peeks may delay its poll
//	pace.pageSize       how many items a page has
//	sweptRun.givesUp    whether a sweep waits for the end of an outage
//
// source.go calls the user's code. A batch that fails sends its items back to the start: the next select returns them,
// and the filter marks them. In mode RUN, sweep.endsWithLocked ends the sweep after a select, and
// sweep.countBatchLocked counts a batch.
//
// # The way of a queue
//
// Package manager plans and calls Grant. Its documentation has the steps up to that call. Grant adds a lane to the due
// lanes and starts an executor, which selects the lane as above. Drain (drainLocked) takes the lane out of the cycle,
// Drained signals that nothing of it is in flight, and Forget ends the grant.
//
// # Lanes
//
// A lane is the unit of selecting: one queue under one grant. It has this cycle:
//
//	idle ──due──► selecting ──items──► executing ──last batch ends──► idle, for sleep_time_interval
//	                  └──nothing──► idle, for sleep_time_nodata, or longer while peeks find nothing
//
// After a failed select the lane is idle for a growing pause. Its timetable says when it is selected, by the reasons
// for a select (the last one has found nothing for sleep_time_nodata, an item may be retried, a hint) and those against
// one (an interval, a pause, an outage, a rate). What wants a lane selected sooner or later adds a reason, and nobody
// sets the time. Rejected: to set it. Nine places did, each had to know which of the others had set it before, and a
// hint needed to know why a lane rests.
//
// This is TBSchedule's SLEEP, but for each lane on its own: a lane is selected again when nothing of it is in flight,
// and it never waits for another lane. In NOTSLEEP it is idle as soon as its last batch has started. A queue that
// drains takes its lane out of the cycle. A sweep polls only during an outage.
//
// A SetSelector has lanes like any other dealer: setDealer asks it for one queue at a time. A lane of all queues, whose
// pages, batches and fences had several, was a second kind of everything: the loss of a queue cancelled the others, and
// runs, splits, limits, order and cursors had to be refused.
//
// # Idle lanes
//
// A lane whose select has returned nothing at all is idle. If the dealer is a Peeker, one peek asks for all idle lanes
// (X8), in a goroutine of its own (peekIdle). A peek can only delay a select: a lane stays among the due lanes, with
// the time at which it is polled if no peek says anything. A peek that has found nothing moves that time
// (timetable.looked), up to a bound that the last select has set (timetable.idleUntil). So nothing must be undone when
// a peek hangs or does not begin. The alternative, a set of lanes that only peeks make due, loses work in each of these
// cases, unless each has code of its own. The queues do not wait for a peek: it reads, and touches no item.
//
// A hint (Processor.Hint) is a reason for a select. It only makes a select sooner, so it may be lost (X9).
//
// # The life of an item
//
// Select returns the item on a page. The page is divided into batches of execute_number items, in the order of the
// select. Several executors may work one page. Per selection an item is executed once, in one batch, or dropped before
// it starts: because its queue drains, because the server is not trusted any more, or because Run ends. Nothing claims
// the item between select and execute. The next select therefore returns a dropped item again, here or on another
// server. It also returns an item whose batch failed. The context of a batch carries the epoch under which it was
// selected. A queue is granted again only when nothing of the old grant is in flight, so no batch runs under the wrong
// epoch.
//
// In NOTSLEEP a select may return items that are in flight, or that were in flight when it began and have been
// committed since, because its snapshot is older than its result. The select therefore notes the batches of its lane
// that are in flight when it begins, under the lock under which batches are claimed. It drops their items from its
// result (X1). No other item of the lane can get in flight during the select, because items get in flight only through
// a select and there is one at a time. The alternative is a set of all keys in flight. It would need the lock just as
// long, and a map operation for each item. The present way asks only for the keys of pages that were selected beside
// running batches.
//
// # Failing items
//
// If the dealer is Keyed or Cursored, each failed item has a record in an ItemStore. The processor keeps no copy: while
// a queue may have records, each select asks the store for those of its page, and the batches of the page use the
// answer (X6). The page cannot miss a record, because no item of the page is in flight. failureLog has notes of what
// only this process knows. Rejected: to hold the records in memory and load them again when somebody has changed them.
// It needed a version, bounds for what memory holds and a second way for what it does not, and a lock around each load.
// The error of a batch does not say which item failed, so all items of the batch become suspects. They are selected
// again without a pause, and executed in batches of a tenth of the size, down to one item. Only an item that fails
// alone, or by name in Failures, counts an attempt and backs off. A poison item thus costs the other items of its batch
// a repetition, but no attempt. Two alternatives are worse. Executing the suspects one by one at once costs five times
// as many calls. Executing them from memory, without a select, may repeat what an unknown commit has done. Items that
// back off or are dead are dropped from the result of a select. The limit of the next select grows by their number, to
// ten times fetch_number at most (X2).
//
// Behind a full page that holds few items to execute, the select of a Paged dealer goes on: pass has the position (X2).
// Two alternatives are worse. A list of the keys to leave out grows with the failed items, and no database reads a long
// list well. A limit that grows with the failed items makes every select read all of them.
//
// The pauses of an item follow a policy: the nth is Retry x RetryFactor^(n-1), at most RetryMax, with jitter. With the
// defaults of package center (1 s, 2, 6 h, a jitter of one half, 25 attempts) the 24 pauses are 1 s to 16,384 s and
// nine times 6 h: 63 hours without jitter, 31 to 67 with it. So an item survives an outage of a day. The pause of a
// queue is at most a minute. Retries become due one after another. Therefore the next select of a lane whose page holds
// only retries comes half a second later at the earliest, and the retries that become due in between share a page.
//
// A dealer or a queue that does nothing but fail differs from a poison item. streak.go counts the failed calls since
// the last success of all queues and of each queue, and decides when Stats has FailingSince and QueueState has Failing.
//
// A cursor cannot skip an item, so its queue waits until the item is done or dead. Only a success, or the record of a
// death, moves the cursor. After any other outcome the rest of the page is dropped and the cursor is loaded again (X3).
//
// # Order
//
// Items of one order key are executed one after the other (X10). The obvious way is a set of held keys: a failure adds
// the key of its item, a success removes it, and the store keeps the set for the next owner. It has to be right at each
// crash, it has no bound, and it holds a key for ever whose item was deleted by hand. The processor relies on the
// source instead. A select returns the items in order, so it returns the failed item before those that wait for it. The
// filter goes through the page and leaves out each item behind one of its key that is not executed now. What it leaves
// out, the next select returns again. A restart, a hand-over and a takeover need nothing: records of failed items are
// by key, and the next owner selects the same page.
//
// Three things a page alone does not show. A Paged dealer has items before the position of the select: heldKeys.behind
// has the keys of those that the pass has left there (4.9 MB for 100,000 keys: BenchmarkHeldKeys), and a batch that
// fails behind its pass adds its keys. In NOTSLEEP an item may be in flight beside the select and fail after it: its
// key is left out of the page. And within a page, items follow each other: chains has the next item of each key, which
// is free when the batch of the item before it has ended well, and dropped when it has not.
//
// A key with many items fills page after page. A page takes only as many of its items as one executor does meanwhile,
// and asks the next select to leave the key out once (Selection.Held), so that other keys have a turn. A failed batch
// whose items share a key is tried in smaller batches like any other, still in order.
//
// # Items that end their process
//
// Rule S14 says how such an item is found. Beyond Settings.MaxCrashes the lane of the queue is isolated: its batches
// have single items, and the store has a record of each during its execution. Isolated lanes take turns
// (scheduler.turn), and Env.Alone lets the process execute one such item at a time. The next owner finds the record of
// the item that ended it (declareDead). After a page that was executed to its end, Survived asks the caller to reset
// the count, and the lane has batches again. Items of other queues go on meanwhile. One of these may end the process,
// and then the recorded item is dead without being the cause. Rejected: to stop all other work meanwhile, because one
// queue would stop a whole process.
//
// # Outages
//
// If what Execute calls is down, every item fails, and an attempt proves nothing about the item. A block of poison
// looks the same until a healthy item is found. Rule X5 says what the processor does. Three pure values decide it.
// outage judges the failures since the last success: whether they are doubted, and whether they open the circuit
// breaker. sample says how many items an open breaker lets each select try. failure, in blame.go, says what one
// failure means for its item: an attempt, or a doubt.
//
// For example, 3,000 bad rows stand before the healthy ones. The first three failures count as attempts. The breaker
// opens, and the selects try 1, 2, 4 ... 100 items that were not tried yet. These back off without an attempt. Some
// seconds later a sample holds a healthy row, which closes the breaker. The items that were tried are retried at once,
// and now their failures count, because something else has succeeded. They open no breaker any more, because they
// failed before that success. The bad rows that were not tried yet may open it again, but only if twice as many of them
// fail as in the first block, or if they fail for ten seconds. If the service is away instead, all items fail, each at
// most once in a round, until the service is back: then the retries succeed, and no attempt was lost.
//
// A call that was in flight when the service went away may still succeed. If that closed the breaker, it would open
// again only after twice as many items, and failures of the outage would count. So once three items have failed, only
// the success of a call that began after the first of these failures counts. Before that each success counts, because
// poison may fail fast beside slow healthy items: their calls began earlier, and still prove that the service is there.
//
// setup.rounds orders failures and successes: it rises with a success after a failure. A record keeps the rounds of the
// first and of the last failure of its item. An item counts as evidence if it fails alone, by name in Failures, or
// with a RetryAfter. A failure of a select counts as an item of its own, and so does each failure of a dealer that is
// not Keyed or is Cursored. The breaker also closes after a minute without a failure (twice ProbeMax): the failing
// items are gone, dead or elsewhere.
//
// A queue in which only n poison items remain still ends. If they had failed before the last success, they are dead by
// the policy. Otherwise their failures are doubted for the 63 hours of the policy, and count from then on. Permanent
// errors are quicker, and so is Settings.CountInOutage. A healthy item that arrives is the next probe, and closes the
// breaker.
//
// A sweep counts no attempts, and it cannot end while an item waits for the end of an outage. sweptRun.givesUp says for
// how long. Three alternatives are worse. If the sweep passed each probe that fails, an outage of minutes would fail a
// small queue. A fixed limit is too long for poison or too short for an outage. If a rerun expected as many failures as
// the run before it, whichever items fail, an outage during the rerun would fail healthy items.
//
// The breakers of the servers are independent: one server may reach the service while another cannot. One breaker for
// all servers in the database would need a write per failure and a leader for the probe.
//
// # Calls without effect
//
// If Execute succeeds and does not change what Select returns, the queue would keep all executors busy in vain. The
// select therefore compares the first item of its page with the first items of the four pages before it. After a
// hundred repeated pages in a row, each executed within a second, the lane pauses as it does after failures, and the
// processor sends the alert NO_EFFECT. Items that need some steps under one key cause no pause, and a
// sleep_time_interval switches the check off: then the user paces the queue. Comparing all items would find more, and
// would hash each of them; a page with one item that has effect is no busy loop. Items without key, cursor or value are
// not recognized.
//
// # Sweeps
//
// A queue that is granted with a Run is swept (mode RUN). Its lane does not rest when a select finds nothing. It leaves
// the cycle for good when a select has found nothing while nothing was in flight (R9), or when the sweep has failed.
// Only the queue as a whole is tried again, by another grant (R11). A Keyed item that fails alone or by name is
// therefore passed, and a failure that cannot be blamed on an item fails the sweep. The record of a passed item is like
// that of a dead item, and the limit of the next select grows by it. In NOTSLEEP a sweep that finds nothing beside the
// items in flight waits for them. Nothing new will come, so asking again in a loop is useless.
//
// The cursor of a sweep is saved and loaded like any other. It passes no failed item (X3), because no attempt and no
// rerun would return to an item that it has passed. A failed batch loads the cursor at once, because its commit may
// have succeeded. The alternative, keeping the cursor in memory and saving it now and then, is less work. But it
// executed again what was committed without a reply, and it overwrote the cursors that fences had saved.
//
// If Execute does not change what Select returns, a sweep would never end. A sweep therefore keeps a trail of its
// recent items, by key, cursor or value. The trail is at least as long as the largest page. SweepMaxRepeats consecutive
// pages of items from the trail fail the sweep. A set of all items of the sweep would detect a single repetition, but
// its memory is unbounded. Items without key, cursor or value, such as pointers, are not detected: an address does not
// identify an item, and reading the target is a race with its other users. The deadline of the run ends such a sweep.
//
// # The scheduler
//
// thread_number executors share one lock. An executor finishes its batch and claims the next call under a single hold
// of the lock. A batch allocates nothing, unless it has a cursor. Due lanes wait in a heap, ordered
// by the time at which they became due. A lane that never rests therefore comes after all other due lanes. While fewer
// pages are ready or being selected than there are executors, a due select comes before the next batch. Otherwise only
// batches are claimed. This bounds memory, and it keeps many empty queues from taking all executors away from a page.
// If batches always came first, a large page would keep all other queues from being selected. Pages that are ready at
// the same time give their batches in turn.
//
// A page is about a second of work: select asks for the items that the executors execute in that time, by the time per
// item of the lane's last batches, and that the rate allows. Pages that are ready at the same time share the executors
// and the rate. A page is at most fetch_number items, and at least a batch for each executor that it gets. If a page
// still takes over two seconds, and a lane waits for room, the processor drops the rest of the page. A lane therefore
// waits for pages of a second or two, however slow the items are, and RetryAfter is kept within that time. With fixed
// pages of fetch_number, it waits for minutes if an item takes 0.2 s. The first page of a processor has fetch_number
// items, because nothing was measured yet. A single batch that takes longer is not split: execute_number is the user's
// choice.
//
// The alternative is TBSchedule's: a goroutine per queue hands items to executors through a channel. It costs a
// hand-over per item, and a drain must look for items in three places.
//
// One lock guards the scheduler, the lanes, the pages and the grants. With a lock for each of them, every claim would
// take several in a fixed order, because it changes them together. Outside of that lock are only the failed items,
// because an executor reads them during a select, and what an executor alone uses during its call.
//
// An executor that finds no call to claim ends, and one that has claimed a call starts the next one, so that a
// processor at rest has none: a process with a hundred task types does not keep thousands of goroutines. One timer
// fires when the next lane is due, or when rate_per_second allows the next batch. A batch that must wait for the rate
// stays on its page, where a drain can drop it. A batch is at most the share of a second: if a server with a small
// share began with a whole batch, many servers together would exceed the rate by far (X4). A batch that must wait
// because too many are in flight (SetMaxInFlight) stays on its page too, until one of them ends. Nothing polls: after
// the loss of trust, an executor asks again when Wake, Grant or Resume is called.
//
// Package github.com/cenkalti/backoff computes the jitter of pauses, and golang.org/x/time/rate the rate. Both are
// small and proven. Code of our own would be as long as the calls.
//
// # Not promised
//
//   - Items are not executed exactly once. The fence of package center makes their effects happen once.
//   - There is no order between items or between queues, except for the items of a cursor and those of an order key.
//   - A dealer that ignores its context is not ended. Go cannot stop it. Its queue cannot be drained, Run does not
//     return, and Stalled names the queue.
//   - If a select returns an item twice, both are executed, possibly at the same time. One page of a queue per minute
//     is searched for such items, for the alert BAD_PAGE.
//   - Not every failure is recorded. A process that dies forgets its suspects, and what its ItemStore could not save.
//   - Without Keyed or Cursored, the failure of an item is a failure of its batch. Its queue pauses, or its sweep
//     fails.
//   - A sweep does not see every row. Rows that the dealer does not select, because they are inserted or committed
//     late, are left to the next run.
