// Package runs makes, opens, sweeps and ends the runs of task types of mode RUN. It owns the tables schedule_run,
// schedule_run_queue, schedule_run_item, schedule_run_dep, schedule_submission, schedule_trigger, schedule_task_after
// and schedule_backfill. Where several processes decide at the same time, it works under the lock row of package
// roster.
//
// Package manager calls it for the sweeps of a server and for the tick; package ops calls it for operators. The rules
// R1 to R22 are in docs/protocol-runs.md.
//
// # The life of a run
//
// A run sweeps all queues of a task type once, each by the queue's owner. It has ended when every queue is drained or
// has failed. A trigger fires it, [Runs.Submit] makes it, or the run of an upstream task type does:
//
//	WAITING ---> READY ---> RUNNING ---> SUCCESS
//	   |           |           +-------> FAILED            a queue has failed, or the deadline has passed
//	   +-----------+-----------+-------> CANCELLED         at once, whether its queues have owners or not
//	   +-----------+-------------------> DEPENDENT_FAILED  an upstream did not succeed
//	   +-------------------------------> SKIPPED           also at once, when its trigger has an open run
//
// [Scheduler.Tick] moves runs on. Every server of the task type calls it once a second while any run has not ended, and
// when a trigger is due; the heartbeat reports both. There is no leader. In this example trigger T is due at 2:00; the
// servers A and B own a queue each:
//
//	time       server  action                                                    run       queue 0      queue 1
//	2:00:00.3  B       ticks: under the lock row it advances T and inserts the
//	                   run of the slot, whose key is T's id and the slot. If A
//	                   ticks too, it waits for the lock, and finds T advanced     READY
//	2:00:00.3  B       opens the run under the lock row, because no other run of
//	                   the task type is RUNNING. It writes a row per queue, the
//	                   number of queues and a deadline. Queues that are added
//	                   later are not swept                                        RUNNING   PENDING      PENDING
//	2:00:00.9  A       reads the open run with its tick, and claims its queue     RUNNING   RUNNING A 7  PENDING
//	2:00:01.3  B       does the same                                              RUNNING   RUNNING A 7  RUNNING B 4
//	2:10:00.0  A       has saved its cursor with each batch, and stalls           RUNNING   RUNNING A 7  RUNNING B 4
//	2:10:12.0  B       has taken over queue 0 under epoch 8, and claims it: the
//	                   row is RUNNING under an older epoch. The sweep resumes
//	                   at the cursor                                              RUNNING   RUNNING B 8  RUNNING B 4
//	2:11:00.0  A       continues and writes that queue 0 is DONE: the fence in
//	                   that transaction fails                                     RUNNING   RUNNING B 8  RUNNING B 4
//	2:20:00.0  B       has drained both queues. It commits the DONE of each. Then,
//	                   in another transaction, it locks the run's row, looks for
//	                   an unfinished queue, finds none and ends the run           SUCCESS   DONE         DONE
//
// The last step commits the DONE first (R10). Otherwise two servers that finish at the same time each see the other's
// queue RUNNING, and neither closes the run. If B crashes between the two transactions, the next tick closes the run. A
// statement of its own locks the run's row before the test. A rerun locks that row too, and so no run is closed while
// one of its queues is PENDING again.
//
// A fired or submitted run is inserted together with the runs of all its dependants, WAITING, and a snapshot of the
// edges between them ([WriteAfter]). The server that ends a run resolves its dependants: it locks each dependant and
// then reads all its upstreams. One failed upstream fails the dependant at once, with the cause, even if others have
// not ended. A tick repeats this step. When a run is opened its upstreams are read again, because [Runs.Rerun] may have
// reopened one.
//
// A task type with several upstreams is a join, unless its dependencies say Any. Its run is inserted together with the
// last upstream run of the same slot or key. That transaction locks the lock row of the join before it reads the other
// upstreams, so that two upstreams that are inserted at the same time do not miss each other. Rejected: a run that is
// inserted with the first upstream. It would wait for runs that may never be made.
//
// A slot fires at most once while its run is kept. The id of a trigger follows from its name, and so a trigger that is
// deleted and made again finds the runs of its slots. The misfire policy selects the slots that fire when several are
// due. The overlap policy decides about a slot while an earlier run of its trigger is open. Rejected: any open run of
// the target. Of 1,000 triggers with parameters of their own that were due at once, 998 were skipped. All slots of one
// firing are decided together: one by one, the first slot that ALL catches up on would skip the others.
//
// Rejected:
//   - A loop over the slots in the process of an operator's command: it ends with the process.
//   - A leader or scheduler process: its crash is an outage of its own.
//   - A job queue with a job per queue: it would give queues other owners than the roster does.
//   - A state for every circumstance (blocked, acquired, recovering): a stored state that follows from other rows
//     sooner or later contradicts them.
//   - The question "am I the last?" in the transaction of the DONE: it lost 68 of 70 interleavings.
//
// # Where things are
//
// The [Engine] holds the parts. Package manager uses the [Scheduler] and the [Sweeps]; package ops uses [Runs],
// [Triggers], [Backfills] and [Dependencies]. In the order of the life of a run:
//
//	engine.go         the Engine and its parts, and how many runs it has ended
//	run.go            the records and states of runs, and what every step does with a row: read, lock, move
//	tick.go           the Scheduler: what is due, in which order
//	trigger_fire.go   slots become runs
//	submit.go         an operator makes a run
//	submit_tx.go      a transaction of the user asks for a run, and a tick makes it (R21)
//	insert.go         runs and their dependants are collected and inserted
//	join.go           when a join has a run, and which never have one
//	resolve.go        WAITING runs become READY or end
//	open.go           a READY run becomes RUNNING with a row per queue, or waits for too long
//	sweep.go          the Sweeps: a server claims a queue of the run, saves its progress and ends the sweep
//	run_item.go       the failed items of a sweep are recorded, listed and deleted
//	close.go          a run ends: its queues are finished, it was cancelled, or its deadline has passed
//	operate.go        cancel, pause, rerun and acknowledge: a run, or all runs of a graph
//	graph.go          the graph of a run, and dependencies that are made later (R22)
//	clean.go          retention
//
// Beside it:
//
//	runs.go           Runs: lists for operators
//	problem.go        what an operator should look after, and the alerts about it
//	dependency.go     Dependencies: the static dependencies, their order and cycles
//	trigger.go        the record of a trigger, its validation and its row
//	triggers.go       Triggers: list, compare, define, pause, delete and fire
//	backfill.go       the record of a backfill, and which slots a range has
//	backfills.go      Backfills: list, preview, start, pause and cancel
//	backfill_step.go  a tick moves a backfill on (R20)
package runs
