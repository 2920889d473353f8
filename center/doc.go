// Package center is what users and operators of a roster see: it opens the database, fences the writes of a dealer, and
// reads and changes task types, queues, servers, failed items, runs and triggers.
//
// A [Center] is an open roster in the tables of package schema. Its methods return bundles, one for each kind of thing:
// [Center.Tasks], [Center.Queues], [Center.Servers], [Center.Items], [Center.Runs], [Center.Triggers] and
// [Center.Events]. [Center.Diagnose] checks the database and all rosters.
//
// # What it guarantees
//
// A queue has at most one owner at any commit. Its epoch rises with every change of owner and is never used twice. A
// queue moves from a live owner only when that owner releases it, or when an operator or a drain_timeout forces it. A
// transaction that begins with [Fence] commits only while the server owns the queues of its batch under the epochs under
// which it selected them.
//
// Not guaranteed: that a process that was stopped for longer than its lease does nothing. The call in flight may finish.
// Its fenced writes are rejected; e-mails and HTTP calls cannot be undone.
//
// # The packages below
//
// Package internal/roster is the ownership protocol, internal/runs the engine of runs and triggers, internal/plan computes
// which server should own which queue. What differs between databases is in the packages postgres, mysql and sqlite:
// fragments of SQL, options that are forced on connections, checks of the server, and the meaning of errors. This package
// imports no driver.
package center
