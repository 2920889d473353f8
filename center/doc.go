// Package center keeps the roster: which server owns which queue, in the tables of package schema. It
// knows servers, queues and epochs; of items and of how they are processed it knows nothing.
//
// # What it guarantees
//
// A queue has at most one owner at any commit. Its epoch rises with every change of owner and is never
// used twice. The living are not robbed: a queue moves from a living owner only when that owner gives
// it away. What a server writes in a transaction that begins with [Fence] commits only while the server
// owns the queues of its batch under the epochs under which it selected them.
//
// Not guaranteed: that a process that was stopped for longer than its lease does nothing; the one call
// that it was in may finish. Only the fence makes what it writes void.
//
// # The life of a queue row
//
// cur_server is the owner, req_server is who is to have the queue next, epoch counts the owners. A
// planned move never overlaps. Here server A owns queue 1 and B has just joined; heartbeats are 2 s
// apart:
//
//	time    who  does                                                   cur  req  epoch
//	 0.00 s B    registers: a row in schedule_server, membership_version + 1   A    -      7
//	 0.01 s B    plans under the lock row: queue 1 should be B's. A lives,
//	             so that it is asked: plan_version + 1                  A    B      7
//	 1.40 s A    learns with its heartbeat that its queues have changed,
//	             reads them, selects no more from queue 1, drops
//	             what it has not started; what it has started goes on   A    B      7
//	 1.90 s A    its last batch of queue 1 has ended: drained. From now
//	             on it will not work the queue under epoch 7 again,
//	             whatever comes. It sends the release: "cur_server =
//	             req_server, epoch + 1 where cur_server = A and epoch =
//	             7 and req_server = B", if B may still have queues       B    -      8
//	 2.05 s B    has looked every 200 ms; it selects, under epoch 8      B    -      8
//
// If the reply to the release is lost, A reads the row. If it says B, the queue has moved. If it
// still says A, the release is sent again, or, when nobody asks any more, A takes the queue back
// with epoch 8 and works it as a new one: the release that is perhaps still on its way finds no
// epoch 7.
//
// A take-over needs nobody's consent, and waits for as long as the dead might still live. B is killed
// while it owns queue 1; judge_dead_interval is 10 s:
//
//	time    who  does                                                   cur  req  epoch
//	 0.00 s B    beats for the last time                                B    -      8
//	 0.70 s B    is killed, or merely stopped                           B    -      8
//	 8.00 s B    if it still runs but cannot reach the database: its
//	             lease is over. It cancels what it has in hand          B    -      8
//	10.90 s A    its heartbeat says that somebody is dead. A has watched
//	             for 10 s without a gap, so it may judge. Under the lock
//	             row it reads the database's clock, deletes B's row if
//	             B has not beaten meanwhile, and plans: queue 1 has no
//	             living owner, it goes to A at once                     A    -      9
//	10.91 s A    reads its queues and selects, under epoch 9            A    -      9
//	60.00 s B    was only stopped, and wakes in the middle of a
//	             transaction that began with the fence for epoch 8: it
//	             held the row, and A had to wait for it; or it asks for
//	             the fence now, and gets ErrFenced. Its next heartbeat
//	             finds no row: it forgets everything and joins anew     A    -      9
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
// Every change of ownership is a transaction whose first statement writes the lock row of the task type
// ([Center.Rebalance], [Center.Release], [Center.Leave]); then it reads the database's clock, which alone
// decides who is dead. Writes are compare-and-set on owner and epoch, and rows that a stalled
// transaction holds are passed over, so that it delays its own queue alone (not on SQLite, which has one
// lock for all). Package internal/plan computes which server should own which queue. [Center.Heartbeat] is one UPDATE and one SELECT
// on a connection of its own.
//
// What an operator asks for is written where no server's transaction can be in the way: a pause, another
// number of queues and the list of queues to be removed stand in the lock row, the state of a server in its own.
// The servers learn of it with their next heartbeats, drain, and carry it out. Of failed items and cursors the
// package keeps what the processor tells it: that is written by the executors, through the dealers' connections,
// so that it cannot hold up the roster.
//
// There is no leader: any server repairs, under the lock row; a leader that dies is itself an outage.
// Nothing rests on advisory locks or LISTEN: what belongs to a session does not survive PgBouncer in transaction mode, and
// a cluster such as Galera has neither. On PostgreSQL those who want the lock row stand in line at a lock of their
// transaction, so that each commit wakes up one of them and not all. The local clock decides nothing about others: workers with skewed
// clocks would expire the healthy. Round robin is sticky: dealing afresh would move nearly all queues at
// each join, where a tenth would do.
//
// What differs between the databases is in the packages postgres, mysql and sqlite below this one: the SQL fragments,
// what is forced on connections, the checks of a server, and the meaning of errors. This package imports no driver.
//
// # Libraries
//
// maruel/natural sorts queue ids as people do. logrus is the logger of the project's users.
package center
