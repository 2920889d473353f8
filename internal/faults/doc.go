// Package faults shows that the roster survives what happens to processes, databases and networks.
//
// TestFaults plays scenarios. In each, three real processes share the queues of a table of work, on a
// database of the scenario's own; something is done to them, to their network or to the database; then
// everything must come to rest: all items done, each queue with a living owner, the load even, the workers
// gone in order. What the database and the processes have recorded on the way is one [History], and [Check]
// must find nothing wrong with it. The scenarios wait for what must happen rather than for a time, and a
// machine that is too busy shows in the record, so that it is not taken for a fault of the roster.
//
//	go test ./internal/faults                                20 of the quick plays, chosen by the seed
//	ROTA_FAULTS=long go test ./internal/faults               20 of all plays
//	ROTA_FAULTS=all go test -timeout 30m ./internal/faults   all plays
//	ROTA_FAULTS=all go test -run TestFaults/postgres/kill$ ./internal/faults
//	MINUTES=60 make faults                                   all plays, again and again, and a table
//
// A play is a scenario on one kind of database. Each choice has each kind of database and each family of scenarios. The
// seed is that of ROTA_FAULTS_SEED or another one each time.
//
// A scenario that fails prints its seed and how to play it again; a seed fixes what is chosen at random, not
// what the processes do with it. The processes need Linux: they end with the test, even those that are
// stopped, and stop themselves at exact points.
//
// # What must hold
//
// The numbers are those of the violations.
//
//	 1  A queue has one owner at a time: each follows on the one before, under a higher epoch.
//	 2  No effect of an older epoch is committed after a newer owner's first. Absolute.
//	 3  Two processes execute one queue at the same time only if the old owner was in trouble for longer
//	    than its trust. Outside the database they do so only if it stood still: one that runs stops in time.
//	 4  A planned move: the old owner's last call ends, the queue is released, the new owner's first begins.
//	 5  Each item is done, and took effect exactly once.
//	 9  Nothing begins without trust.
//	10  Nobody is expired who was not in trouble of its own. What all have lost alike, the database or the
//	    network, is no excuse.
//	13  Each run ends, and so do its queues; it succeeds with all of them done.
//	14  What was there when a run was opened is done when it has succeeded.
//	15  What takes effect in a run does so while its queue is being swept, under the epoch of the sweep.
//	16  No run begins before its upstreams have ended, or succeeds after one that has not.
//	17  A slot of a trigger makes one run.
//	18  One run of a task type is under way at a time.
//	19  Runs of a trigger do not pile up.
//
// In the scenarios called run-* the workers sweep for runs, and [CheckRuns] looks at 13 to 19, beside the others. Some
// strike at a known statement of a transaction: a proxy sees it pass, and kills, stops or cuts off its sender before it,
// before the commit, or when the server has committed and nobody knows.
//
// For 2, no clock and no sequence is good enough: a transaction gets its number long before its commit. So
// each transaction, once it has its fence, counts the effects of older epochs in its queue and keeps the
// number with its own effects. Had a later commit added one, the numbers would not agree.
//
// For 15 and 16 it is the same: a transaction that has its fence reads what the row of its sweep says, and how many
// upstreams have not ended, and keeps that with its effect.
//
// For 3, 4 and 9 the processes note the beginning and the end of each call in a file, at once: a transaction
// that was rolled back leaves no other trace. The clock of the database must be this host's, which the
// servers of package testdb see to.
//
// A general checker of linearizability, porcupine, say, would search for an order of the calls. Here the
// database has written the order down, so that plain comparisons do, and can name what they found.
package faults
