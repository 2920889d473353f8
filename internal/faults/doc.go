// Package faults tests that the roster survives faults of processes, databases and networks.
//
// TestFaults plays scenarios. In each scenario, three real processes share the queues of a table of work, in a
// database of its own. The scenario disturbs the processes, their network or the database. Then everything must come
// to rest: all items are done, each queue has a live owner, the load is balanced, and the workers leave in order. The
// database and the processes record what they do. The records make up a [History], and [Check] must find no violation
// in it. Scenarios wait for events and not for a time. A machine that is too busy shows in the records, so that Check
// does not take it for a fault of the roster.
//
//	go test ./internal/faults                                23 of the quick plays, chosen by the seed
//	ROTA_FAULTS=long go test ./internal/faults               23 of all plays that take less than about a minute
//	ROTA_FAULTS=all go test -timeout 30m ./internal/faults   all plays
//	ROTA_FAULTS=all go test -run TestFaults/postgres/kill$ ./internal/faults
//	MINUTES=60 make faults                                   all plays, again and again, and a table
//
// A play is a scenario on one kind of database. Each choice has each kind of database and each family of scenarios.
// ROTA_FAULTS_SEED sets the seed; without it, each run has another seed.
//
// The scenarios failover-* play the faults of an engine one after the other, while the workers do ROTA_FAULTS_ROWS rows.
// Their figures are attributes of the test, of which `make engines` makes the table in docs/engines.md.
//
// A failed scenario prints its seed and the command that plays it again. A seed fixes the random choices but not the
// timing of the processes. The processes need Linux: they end with the test even while they are stopped, and they
// stop themselves at exact points.
//
// # Invariants
//
// A [Violation] cites the number of its invariant.
//
//	 1  A queue has one owner at a time. Each owner follows the previous one, under a higher epoch. No epoch has two
//	    owners, also where the database has lost history, once a worker has noticed that (H8).
//	 2  No effect of an older epoch commits after the first effect of a newer owner. This holds without exception.
//	 3  Two processes execute one queue at the same time only if the old owner was in trouble for longer than its
//	    trust. They do so outside the database only if the old owner stood still: a running owner stops in time.
//	 4  In a planned move, the last call of the old owner ends, the queue is released, and the first call of the new
//	    owner begins, in this order.
//	 5  Each item is done, and took effect exactly once.
//	 9  No call begins without trust.
//	10  A server expires only if it was in trouble of its own. Trouble that all servers share, of the database or the
//	    network, is no excuse.
//	13  Each run and all its queues end. A run succeeds if all its queues are done.
//	14  The items that exist when a run opens are done when the run has succeeded.
//	15  An effect in a run commits while its queue is being swept, under the epoch of the sweep.
//	16  A run begins only after all its upstreams have ended, and succeeds only if they have succeeded.
//	17  A slot of a trigger makes one run.
//	18  At most one run of a task type is under way.
//	19  Runs of a trigger do not pile up.
//	20  While no plan is due and no queue is requested, split or merged, no server has a queue that it may not own and another one may,
//	    and no chain of moves makes the servers more even (P8, P14). The scenario reads the roster all the time, in
//	    snapshots.
//	21  A process that has begun to drain a queue begins no call of it before it resumes the queue or begins another
//	    sweep of it.
//	22  While a service is away that all items need, a process makes at most 3 selects and 100 calls a second.
//	23  The effects of an order key are in the order of its items (X10).
//
// In the scenarios run-*, the workers sweep for runs. [CheckRuns] then checks 13 to 19 beside the other invariants.
// Some scenarios strike at a known statement of a transaction. A proxy sees the statement, and kills, stops or cuts
// off its sender before the statement, before the commit, or after the commit and before the reply.
//
// In the scenarios data-*, the items and the effects are in data databases (F11), and the roster is apart. These keep
// the effects under epochs that the roster has lost. For 2, such effects are compared with each other: an epoch has one
// server.
//
// For 2, neither a clock nor a sequence suffices: a transaction gets its number long before its commit. So each
// transaction, once it has its fence, counts the effects of older epochs in its queue and stores the number with its
// own effects. If an older epoch committed later, the numbers would not agree.
//
// In half of the plays, which the seed chooses, the workers write a batch by one statement (center.ExecFenced), and
// count before it. The number is the same: the older epochs have ended before the server selects.
//
// For 15 and 16, a transaction that has its fence reads the row of its sweep and the number of upstreams that have not
// ended. It stores both with its effect.
//
// For 3, 4 and 9, the processes write the begin and the end of each call to a file at once: a transaction that rolls
// back leaves no other trace. The clock of the database must be the clock of this host, as it is with the servers of
// package testdb.
//
// A pair of an option and a fault is played here only if a real process, server, driver, disk or row lock can make a
// difference: a process that is killed or stopped, a transaction that holds a row, an engine that fails over. The other
// pairs, such as NOTSLEEP or a cursor with an orderly restart, with lost replies or with a partition, are in the
// histories of internal/sim.
//
// A general checker of linearizability, such as porcupine, would search for an order of the calls. Here the database
// has recorded the order. Plain comparisons suffice, and they can name what they find.
package faults
