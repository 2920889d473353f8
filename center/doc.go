// Package center keeps the roster: which server owns which queue, in the tables of package schema. It
// knows servers, queues and epochs; of items and of how they are processed it knows nothing.
//
// # The life of a run
//
// A task type of mode RUN works in runs. A run sweeps all queues once, each by the queue's owner, and has ended when
// every queue is drained or has failed. A trigger fires it, [Center.Submit] makes it, or a run of another task type
// does, which it runs after:
//
//	WAITING ---> READY ---> RUNNING ---> SUCCESS
//	   |           |           +-------> FAILED            a queue has failed, or the deadline has passed
//	   +-----------+-----------+-------> CANCELLED         whoever owns its queues, if anybody does
//	   +-----------+-------------------> DEPENDENT_FAILED  an upstream did not succeed
//	   +-------------------------------> SKIPPED           also at once, when a trigger finds others open
//
// All that moves a run is in [Center.Tick], which every server of the task type calls once a second while any run has not
// ended, and when a trigger is due; the heartbeat tells of both. There is no leader here either. Here trigger T is due at 2:00; servers A and B own a queue each:
//
//	time       who  does                                                      run       queue 0      queue 1
//	2:00:00.3  B    ticks: under the lock row it advances T and inserts the run
//	                of the slot, whose key is T's id and the slot: another that
//	                would fire the same slot waits, and finds T advanced         READY
//	2:00:00.3  B    opens it, under the lock row: no other run of the task type
//	                is RUNNING; the queues and their number are written down,
//	                with a deadline. Queues that are added later are not swept   RUNNING   PENDING      PENDING
//	2:00:00.9  A    learns of it with its tick, and claims its queue             RUNNING   RUNNING A 7  PENDING
//	2:00:01.3  B    the same                                                     RUNNING   RUNNING A 7  RUNNING B 4
//	2:10:00.0  A    has saved its cursor with each batch, and is killed          RUNNING   RUNNING A 7  RUNNING B 4
//	2:10:12.0  B    has got queue 0 under epoch 8, and claims it: its row is
//	                RUNNING under an older epoch. It goes on at the cursor       RUNNING   RUNNING B 8  RUNNING B 4
//	2:11:00.0  A    was only stopped, and says that queue 0 is done: in the
//	                transaction that would write it, the fence fails             RUNNING   RUNNING B 8  RUNNING B 4
//	2:20:00.0  B    is done with both. It commits the DONE of each by itself,
//	                and then, in another transaction, locks the run's row, looks
//	                for a queue that is not finished, and finds none             SUCCESS   DONE         DONE
//
// That the DONE is committed first is the point of the last step: two that finish together and ask "am I the last?" in
// the transactions of their DONEs see each other's queue RUNNING, and nobody closes the run. If B dies between the two
// transactions, the next tick closes it. And the row is locked before the test, by a statement of its own: a rerun
// locks it, too, so that no run is closed while one of its queues is PENDING again.
//
// A fired or submitted run is inserted together with the runs of everything that runs after it, WAITING, and with the
// edges between them, which stay as they were then ([Center.DefineAfter]). Whoever ends a run settles its dependants:
// each is locked, then all its upstreams are read; any that has failed fails it, with its cause, before others have
// ended. A tick repeats that, too. When a run is opened its upstreams are read once more, for [Center.Rerun] may have
// made one of them run again.
//
// A slot fires at most once while its run is kept: the id of a trigger follows from its name, so that one which is
// deleted and made again finds the runs of its slots. What several slots that are due at once fire is the trigger's
// misfire, and what becomes of a slot while runs of its target are open, its overlap. Slots that ALL makes up for are
// judged together, or none but the first would ever run.
//
// Rejected: a leader or scheduler process, which is an outage of its own; a job per queue in a queue of jobs, which
// would give queues other owners than the roster does; a state for every circumstance (blocked, acquired, recovering):
// what follows from other rows would sooner or later contradict them; "am I the last?" in the transaction of the DONE,
// which lost 68 of 70 interleavings.
//
// # How it is built
//
// Package internal/roster is the ownership protocol, with what it guarantees and how it is built.
//
// Of failed items and cursors the package keeps what the processor reports. The executors write that through the dealers'
// connections, so that it cannot delay the roster.
//
// What differs between the databases is in the packages postgres, mysql and sqlite below this one: the SQL fragments,
// what is forced on connections, the checks of a server, and the meaning of errors. This package imports no driver.
//
// # Libraries
//
// maruel/natural sorts queue ids as people do. logrus is the logger of the project's users.
package center
