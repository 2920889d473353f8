// Package center opens a roster in a database and fences the writes of a dealer. It is what a program with a dealer
// needs: [Open], [Settings] of its task types, [ExecFenced], [InTx] and [Fence] in Execute, and the errors. What
// operators and their programs read is in package ops, and what they change in package verbs.
//
// # What it guarantees
//
// A queue has at most one owner at any commit. Its epoch rises with every change of owner and is never used twice. A
// queue moves from a live owner only when that owner releases it, or when an operator or a drain_timeout forces it. A
// transaction that begins with [Fence] commits only while the server owns the queues of its batch under the epochs
// under which it selected them. The items may be in other databases than the roster: [Center.FenceIn] adds one, and
// [Data.Fence] does there what [Fence] does.
//
// Not guaranteed: that a process that was stopped for longer than its lease does nothing. The call in flight may
// finish. Its fenced writes are rejected; e-mails and HTTP calls cannot be undone.
//
// # The packages below
//
// Package internal/roster is the ownership protocol, runs the engine of runs and triggers, internal/plan computes which
// server should own which queue. What differs between databases is in the packages postgres, mysql and sqlite:
// fragments of SQL, options that are forced on connections, checks of the server, and the meaning of errors. This
// package imports no driver.
package center
