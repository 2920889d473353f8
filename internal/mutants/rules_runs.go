package main

// runMutants are the rules of runs as processes see them, and those of the cursors of sweeps.
var runMutants = []mutant{
	{
		"runs: no fence", "center/fence.go",
		"func (b boundBatch) fence(ctx context.Context, tx Tx) error {",
		"func (b boundBatch) fence(ctx context.Context, tx Tx) error {\n\tif b.c != nil {\n\t\treturn nil\n\t}",
		"./internal/faults -run TestFaults/sqlite/run-pause-in-item",
	},
	{
		"runs: a late DONE, and no fence before it", "center/run_sweep.go",
		"state = '`+RunQueueRunning+`' AND server = ? AND epoch = ?`,\n\t\tappend(all, s.RunID, s.QueueID, s.Server, s.Epoch)", "server IS NOT NULL`,\n\t\tappend(all, s.RunID, s.QueueID)",
		"./center -run Conformance$",
	},
	{
		"runs: a claim without a fence", "center/run_claim.go",
		"if err := c.fenceSweep(ctx, t, s); err != nil {\n\t\t\treturn err\n\t\t}\n\t\tif running", "if running",
		"./center -run Conformance$",
	},
	{
		"runs: nobody takes over", "center/run_claim.go",
		"if state == RunQueuePending || epoch <= epochs[q.queue] {", "if state == RunQueuePending {",
		"./internal/faults -run TestFaults/sqlite/run-kill$",
	},
	{
		"runs: a take-over begins anew", "manager/sweep.go",
		"Parameter: row.Parameter, Cursor: sw.Cursor, ", "Parameter: row.Parameter, ",
		"./internal/faults -run TestFaults/sqlite/run-cursor-kill$",
	},
	{
		"runs: a queue that was not released is not taken back", "manager/decide.go",
		"\tcase retired:\n", "\tcase retired && !f.inRuns:\n",
		"./manager -run NotReleased",
	},
	{
		"runs: a planned move is an attempt", "center/run_sweep.go",
		"`, attempt = attempt - 1`", "``",
		"./internal/faults -run TestFaults/sqlite/run-terminate",
	},
	{
		"runs: the end of a run is left to its last sweep", "center/run_tick.go",
		"} else if p.swept {", "} else if p.swept && p.stop {",
		"./internal/faults -run TestFaults/postgres/run-kill-at-closing",
	},
	{
		"runs: the dependants are left to whoever ends the run", "center/run_tick.go",
		"if err == nil && p.maySolve {", "if err == nil && p.maySolve && p.stop {",
		"./internal/faults -run TestFaults/postgres/run-dependant-without-servers",
	},
	{
		"runs: no deadline", "center/run_close.go",
		"if err != nil || !cancel && !late {", "if err != nil || !cancel {",
		"./internal/faults -run TestFaults/sqlite/run-deadline",
	},
	{
		"runs: a cancel that waits for the owners", "center/run_operate.go",
		"\tif err == nil {\n\t\terr = c.stopRun(ctx, runID)\n\t}\n", "",
		"./internal/faults -run TestFaults/sqlite/run-cancel",
	},
	{
		"runs: two at once", "center/run_open.go",
		"return paused || running > 0 ||", "return paused ||",
		"./internal/faults -run TestFaults/sqlite/run-trigger-wait",
	},
	{
		"runs: overlap", "center/trigger_fire.go",
		"case len(open) == 0, t.Overlap == OverlapWait && len(open) == 1:", "case len(open) <= 1:",
		"./internal/faults -run TestFaults/sqlite/run-trigger-skip",
	},
	{
		"runs: a dependant that does not wait", "center/depend_settle.go",
		"case upstream == RunWaiting, upstream == RunReady, upstream == RunRunning:\n\t\treturn RunWaiting", "case upstream == RunWaiting, upstream == RunReady, upstream == RunRunning:\n\t\treturn RunReady",
		"./internal/faults -run TestFaults/sqlite/run-graph$",
	},
	{
		"runs: the same items for ever", "processor/sweep.go",
		"countRepeatsLocked(c) >= maxRepeats", "countRepeatsLocked(c) >= 1_000_000*maxRepeats",
		"./internal/faults -run TestFaults/sqlite/run-endless",
	},
	{
		"runs: a run waits for a queue that was removed", "center/queue.go",
		"queuesGone(ctx, RunQueueCancelled, queueRemoved, []string{e.queue})", "queuesGone(ctx, RunQueueCancelled, queueRemoved, []string{e.from})",
		"./internal/faults -run TestFaults/sqlite/run-queue-removed",
	},
	{
		"runs: the number of queues is that of the moment", "center/run_claim.go",
		"r.params, r.queue_total,", "r.params, (SELECT t.queue_total FROM schedule_task_running t WHERE t.task_type = r.task_type AND t.own_sign = r.own_sign),",
		"./internal/faults -run TestFaults/sqlite/run-repartitioned",
	},
	{
		"runs: a commit without a reply is executed again", "processor/batch.go",
		"\t\tb.checkCommitted()\n", "",
		"./processor -run SweepLoadsTheCursor",
	},
	{
		"runs: the cursor is not asked for before a select", "processor/cursor.go",
		"if c.env.Cursors != nil {", "if c.env.Cursors != nil && c.lane.sweep == nil {",
		"./processor -run Sweep",
	},
	{
		"runs: a cursor passes what has failed", "processor/blame.go",
		"\t\tb.result.pause = true\n\t\treturn\n\t}\n\tfor", "\t\tb.outcome = done\n\t\tb.saveCursor()\n\t\treturn\n\t}\n\tfor",
		"./processor -run SweepWithACursor",
	},
	{
		"runs: a rerun counts the failures of the first time", "manager/sweep.go",
		"before := center.Progress{ItemsDone: sw.ItemsDone}", "before := center.Progress{ItemsDone: sw.ItemsDone, ItemsFailed: sw.ItemsFailed}",
		"./manager -run AfterTheCure",
	},
}

func init() { mutants = append(mutants, runMutants...) }
