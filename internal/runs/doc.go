// Package runs makes, opens, sweeps and ends the runs of task types of mode RUN: triggers, dependencies, slots, claims
// and retention. It changes the tables schedule_run, schedule_run_queue, schedule_run_dep, schedule_trigger and
// schedule_task_after, under the lock row of package roster where several processes decide at once.
//
// Package manager calls it for the sweeps of a server and for the tick that moves runs on; the bundles of package center
// call it for operators. The rules (R1 to R12) and their reasons are in docs/protocol.md.
package runs
