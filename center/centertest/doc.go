// Package centertest is the conformance suite of the roster: what must hold on every database that Rota supports. Each
// case plays servers and operators against a real database and then reads the tables.
//
// # A new database
//
// A database is supported when [Run] passes on it. The suite needs these parts of it:
//
//   - a package beside center/postgres, center/mysql and center/sqlite with its dialect, connector and errors;
//   - a directory of package schema with its migrations;
//   - its scheme in package anydb, through which [Open] finds it;
//   - a kind of package internal/testdb, which makes fresh databases for tests.
//
// TestConformance of package center then runs the suite on the new kind. ROTA_TEST_DATABASES selects kinds:
//
//	ROTA_TEST_DATABASES=sqlite go test ./center -run 'TestConformance$'
//	ROTA_TEST_DATABASES=sqlite go test ./center -run 'TestConformance$/sqlite/lock_row/L1'
//
// Databases with a server need the programs of that server; `make test` finds installed programs. Begin with the groups
// "define", "rebalance" and "lock row" (groups.go lists all): little else works without them. The cases write their own
// SQL, in which the same text must mean the same everywhere: string literals for times ('2020-01-01 00:00:00.000000'),
// TRUE, and CONCAT.
//
// A database with one lock for all writers, such as SQLite, cannot carry out the rules about stalled transactions (L5,
// F3). The helper needsRowLocks skips their cases there. In a cluster, the locks of a node do not reach the others:
// [RunOnNodes] runs the suite there, and locksReach says what the cases about locks check instead.
//
// [RunAbout] repeats the cases about clocks or about sessions for an unusual setup of a database, such as a connection
// pooler. [Fence] repeats the cases of the fence for another way to lock.
//
// # Names
//
// A case is a subtest. Its name is a sentence that starts with the rules of docs/protocol*.md that it tests. A case
// without a rule tests a convenience, such as a list or the text of an error. A new rule of the store needs a case
// here.
//
// # What each file covers
//
// The ownership protocol:
//
//	cases_define.go         task types, own_signs and their queues are defined once (H6, L1)
//	cases_rebalance.go      plans, the audit, and stalled transactions (P7, P8, S4, L5)
//	cases_lock.go           the lock row: waiting for it, doing without it, snapshots (L1, S2, S3)
//	cases_heartbeat.go      what a heartbeat writes and what its reply reports (S1, S2, S6)
//	cases_expiry.go         which servers expire, and which server may expire others (S7)
//	cases_handover.go       release, retake, leave (H2 to H5)
//	cases_hung.go           queues whose calls hang across sessions (P9)
//	cases_walk.go           random histories against a roster in memory (P5)
//	cases_repartition.go    another number of queues (N1)
//	cases_queue.go          named queues are added and removed (N2)
//	cases_suit.go           what the dealers of servers rule out (N1, N3)
//
// Operators and dealers:
//
//	cases_operate.go        pause and retention
//	cases_ownsign.go        own_signs expire, alerts, drained servers (S7, S9, H5)
//	cases_fence.go          the fence and InTx (F1 to F5)
//	cases_exec_fenced.go    single statements under the fence (F1 to F3)
//	cases_item*.go          failed items and cursors (F4, X6)
//	cases_apply.go          settings are compared and applied, task types are deleted
//	cases_inspect.go        the lists of task types, queues, servers, failed items and events
//	cases_doctor.go         the preview of a plan, and what Diagnose finds
//
// Runs:
//
//	cases_run.go            a run from its submission to its end (R1, R4, R6)
//	cases_run_submit_tx.go  runs that are submitted in transactions of the user (R21)
//	cases_run_graph.go      what is done to all runs of a graph, and dependencies that are made later (R22)
//	cases_run_sweep.go      claims, fenced sweeps, cursors, attempts (R7, R8, R11)
//	cases_run_end.go        how runs end, are repeated and are deleted (R9 to R12)
//	cases_run_problem.go    failed and overdue runs, missed slots, and how they end (R19)
//	cases_run_queues.go     queues that change during a run (R6, N1, N2)
//	cases_run_item.go       the failed items of a run (R8, R11, R12)
//	cases_run_depend.go     runs that wait for other runs (R5)
//	cases_trigger.go        triggers fire each slot once (R2)
//	cases_trigger_slots.go  missed and overlapping slots (R3, R4)
//	cases_backfill*.go      runs for the slots of a range of time (R20)
//	cases_schedule.go       triggers and upstreams that settings define
//	cases_inspect_run.go    the lists of runs and triggers
//
// # A new case
//
// A case defines a task type of its own with newFixture, so that all cases share one database and none sees another.
// The task type is named after the case: the names of a group and its case together have at most about 80 bytes. No
// case waits for a deadline to pass: it sets back the times in the tables, as makeSilent and downSince do. A failure
// says what the case got and what it wants.
//
//	fixture.go              a task type and its tables
//	fixture_server.go       what its servers do
//	fixture_queue.go        its queues and their owners
//	fixture_run.go          runs and sweeps
//	fixture_trigger.go      triggers and their slots
//	fixture_backfill.go     backfills and their slots
//	fixture_graph.go        task types whose runs wait for each other
//	groups.go               the list of all cases
package centertest
