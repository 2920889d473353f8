// Package roster is the ownership protocol: which server owns which queue, in the tables of package schema. It
// registers servers, writes heartbeats, rebalances queues under the lock row, expires dead servers and hands queues
// over. It knows servers, queues and epochs. Of items, settings and runs it knows only what a heartbeat carries to the
// servers.
//
// The codes in round brackets are rules; docs/protocol*.md define them and gives their reasons.
//
// # What it guarantees
//
//   - A queue has at most one owner at any commit.
//   - The epoch of a queue rises with every change of owner. No epoch is used twice, as long as the database keeps what
//     it has acknowledged. Where it does not, and a process remembers more than the rows, all epochs rise (H7, H8).
//   - A queue of a live owner moves only when that owner releases it. An operator can override this with
//     [Operator.DrainServer] and force.
//   - A transaction that is fenced with [Server.Fence] commits only while the server owns the queues of its batch
//     under the epochs under which it selected them.
//
// Not guaranteed: that a process does nothing after it was stopped for longer than its lease. The call that it was in
// may finish. Its fenced writes are rejected; e-mails and HTTP calls cannot be undone.
//
// # The life of a queue row
//
// cur_server is the owner, req_server is the server that is to own the queue next, and epoch counts the owners. In a
// planned move two servers never work the queue at the same time. Here server A owns queue 1 and server B has just
// started. Heartbeats are 2 s apart. The method of each step is in square brackets:
//
//	time    by  step                                                    cur  req  epoch
//	 0.00 s B   registers [Roster.Register]: it inserts a row in
//	            schedule_server and raises membership_version           A    -      7
//	 0.01 s B   rebalances under the lock row [Planner.Rebalance]:
//	            queue 1 should be B's. A is alive, so the plan only
//	            requests the queue, and raises plan_version             A    B      7
//	 0.03 s B   has read its queues, and says so with a heartbeat       A    B      7
//	 1.40 s A   learns with its heartbeat [Roster.SendHeartbeat] that
//	            its queues have changed and reads them [Server.View].
//	            It selects no more from queue 1 and drops the items
//	            that it has not started. Items in flight go on          A    B      7
//	 1.90 s A   finishes its last batch of queue 1: the queue is
//	            drained. From now on A never works it under epoch 7
//	            again. It sends the release [Server.Release]:
//	            "cur_server = req_server, epoch + 1 where cur_server =
//	            A and epoch = 7 and req_server = B", if B is eligible   B    -      8
//	 2.05 s B   polls every 100 ms [Server.QueueVersion], sees that the
//	            queue has arrived. It selects under epoch 8             B    -      8
//
// On PostgreSQL hints spare the waiting (X9): B tells A at 0.03 s that it knows of the request, and A tells B of the
// release.
//
// If the reply to the release is lost, A reads the row. If the owner is B, the queue has moved. If the owner is still
// A, A sends the release again. If the request was withdrawn, A retakes the queue under epoch 8 [Server.Retake]: a
// release that is perhaps still on its way matches no row with epoch 7 (H3).
//
// A take-over needs no consent. It waits until the owner must have stopped by itself. Here B is killed while it owns
// queue 1; judge_dead_interval is 10 s:
//
//	time    by  step                                                    cur  req  epoch
//	 0.00 s B   sends its last heartbeat                                B    -      8
//	 0.70 s B   is killed, or merely stopped                            B    -      8
//	 8.00 s B   if it still runs but cannot reach the database: its
//	            lease expires, and it cancels what it has in flight     B    -      8
//	10.90 s A   learns with its heartbeat [Roster.SendHeartbeat] that a
//	            server is dead. A has observed the roster for 10 s
//	            without a gap, so it may expire servers. It rebalances
//	            [Planner.Rebalance]: under the lock row it reads the
//	            database's clock, deletes B's row if B has sent no
//	            heartbeat meanwhile, and plans. Queue 1 has no live
//	            owner and goes to A at once                             A    -      9
//	10.91 s A   reads its queues and selects under epoch 9              A    -      9
//	60.00 s B   was only stopped, and wakes up in the middle of a
//	            transaction. If the transaction was fenced for epoch 8
//	            [Server.Fence], it held the row and A had to wait for
//	            it. If B asks for the fence now, it gets ErrFenced. Its
//	            next heartbeat finds no row, so B forgets all its
//	            queues and registers anew                               A    -      9
//
// # How it is built
//
// [Roster] is the roster of one environment (own_sign). It has the transactions under the lock row, registering, the
// heartbeat of a process and the alerts. Other methods belong to one kind of caller. [Server] has the steps of one
// registered server, which package manager calls for each server of the process. [Planner] has what any server of a
// task type does for all of them. [Operator] writes the requests of operators; package ops calls it.
//
// Every change of ownership is a transaction, whose first statement writes the lock row of the task type (L1):
// [Planner.Rebalance], [Server.Release], [Server.Retake], [Server.Leave]. Before it decides whether a server is dead,
// it reads the database's clock, and no other clock counts (L2). [LockTx] is such a transaction; the steps in it are
// functions that take it. Writes compare the owner and the epoch, and fail if either has changed (L4). A transaction
// skips rows that a stalled transaction holds, so that a stalled transaction delays only its own queues (L5). SQLite
// has one lock for all rows; there it delays every writer.
//
// Package internal/plan computes which server should own which queue. This package reads its input ([Reader]) and
// writes its output.
//
// [Roster.SendHeartbeat] is one UPDATE and one SELECT on a connection of its own, so that nothing delays a heartbeat
// (S1). Its reply carries version numbers and counts. A server reads more only if one of them has changed. What one
// option needs of the reply is a field of [HeartbeatReply], whose type states the columns in the option's file.
//
// An operator's request is written where no server's transaction delays it. A pause and the changes of queues that wait
// are columns of the lock row. The state of a server is a column of its own row. The servers learn of a request with
// their next heartbeats. [Changes] says how queues are removed, split and merged, and how their number changes.
//
// An option, such as shares of max_in_flight, is a file of its own with up to three things: the type of its field in
// [HeartbeatReply], which states its columns; an extension (extension.go), which has its steps in a plan under the lock
// row and in an audit; and methods of Server, Planner or Operator.
//
// # Alternatives that were rejected
//
//   - A leader that plans: if the leader dies, its replacement is an outage of its own. Here any server plans, under
//     the lock row.
//   - Advisory locks of a session, or LISTEN in the place of polls: what belongs to a session does not survive
//     PgBouncer in transaction mode, and a cluster such as Galera has neither. The line before the lock row on
//     PostgreSQL is a lock of the transaction, and correctness depends neither on it nor on a notification (X9).
//   - The local clock for deciding about other servers: a worker with a skewed clock would expire healthy servers.
//   - Round robin from scratch with each plan: it moves nearly all queues with each new server, where a tenth is
//     enough.
//
// # Files, in reading order
//
//	roster.go event.go                    the types, the errors, and the history that each change writes, with the alerts
//	lock.go                               transactions under the lock row, and its counters
//	server.go                             how a server joins, leaves and expires
//	heartbeat.go watch.go statistics.go   the heartbeat, the servers that a server watches, and what people read
//	rebalance.go reader.go write_plan.go  the planning transaction, its input and its output
//	audit.go extension.go                 the periodic check of the rows, and what options add to it and to a plan
//	view.go queue_version.go release.go   what a server reads of its queues, and handing a queue over
//	fence.go                              what an owner does under its epoch: fence, cursor, permit window
//	server_operate.go                     operators: weight, pause, drain,
//	change.go                             how queues are changed once they have no owner
//	repartition.go queue.go               another number of queues, and named queues
//	resize.go split.go backlog.go         requests to split and merge queues, and what that does
//	suit.go                               what the dealers of servers rule out
//
// Options, in the order of extension.go:
//
//	invalid.go times.go                   values that no server can work with, and times that the clock has not reached
//	history.go epochs.go                  what proves that the database has lost history, and how epochs rise then
//	totals.go load.go                     even numbers of queues over all task types, and even loads
//	waiting.go crash.go                   why queues have no owner, and owners that die one after the other
//	reservation.go in_flight.go           queues that are kept for a server's return, and shares of max_in_flight
//	witness.go data.go data_check.go      processes of the host that have ended, and data databases
//	runs.go items.go                      runs and failed items, as heartbeats know them
package roster
