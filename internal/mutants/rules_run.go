package main

// runMutants break runs: rules R.
var runMutants = []mutant{
	{
		"R1", "a run changes its state from any other",
		"lockRun", "WHERE run_id = ? AND state IN (",
		"WHERE run_id = ? OR 1 = 0 AND state IN (",
		"TestConformance",
	},
	{
		"R2", "a conflict stops the trigger",
		"fireTriggers", "continue // it fired before the trigger was deleted and made again; the trigger still advances",
		"return 0, nil // fired before",
		"TestConformance",
	},
	{
		"R3", "SKIP fires a slot that is too old",
		"choose", "t.Misfire == MisfireSkip && ",
		"t.Misfire == MisfireSkip && t.MisfireAfter < 0 && ",
		"TestDue",
	},
	{
		"R4", "two open runs",
		"openingForbidden", "return paused || running > 0 ||",
		"return paused ||",
		"TestConformance",
	},
	{
		"R5", "a failure reaches direct dependants only",
		"resolveAll", "runs = append(runs, next...)",
		"_ = next",
		"TestConformance",
	},
	{
		"R18", "two upstreams of a join that are made at once miss each other",
		"lockJoins", "if err := lockJoin(ctx, l, name); err != nil {",
		"if err := error(nil); err != nil {",
		"TestConcurrentUpstreamsOfAJoin",
	},
	{
		"R18", "an upstream of a join that was SKIPPED counts",
		"readOthers", "NOT (state = '`+RunSkipped+`' AND root_run_id = run_id)",
		"NOT (state = '`+RunSkipped+`' AND root_run_id = '')",
		"TestConformance",
	},
	{
		"R6", "a run is opened without another look at its upstreams",
		"openRun", "if state != RunReady {",
		"if state != RunReady && cause == \"\" {",
		"TestConformance",
	},
	{
		"R7", "a queue of the own epoch is not claimed again",
		"candidates", "state == RunQueuePending || epoch <= epochs[q.queue]",
		"state == RunQueuePending || epoch < epochs[q.queue]",
		"TestConformance",
	},
	{
		"R7", "a take-over starts without the cursor",
		"grant", "Parameter: row.Parameter, Cursor: sw.Cursor, ",
		"Parameter: row.Parameter, ",
		"TestFaults/sqlite/run-cursor-kill",
	},
	{
		"R8", "no fence",
		"update", "if err := sw.fence(ctx, t, s); err != nil {\n\t\t\treturn err\n\t\t}\n",
		"",
		"TestConformance",
	},
	{
		"R8", "no fence, seen by random histories",
		"update", "if err := sw.fence(ctx, t, s); err != nil {\n\t\t\treturn err\n\t\t}\n",
		"",
		"TestRunsThroughRandomHistories -rapid.checks=400",
	},
	{
		"R9", "no deadline",
		"stopRunTx", "if err != nil || !cancel && !late {",
		"if err != nil || !cancel {",
		"TestConformance",
	},
	{
		"R10", "no tick repeats the end of a run",
		"tick", "} else if p.allFinished {",
		"} else if p.allFinished && p.mustStop {",
		"TestConformance",
	},
	{
		"R11", "a rerun of a run that is RUNNING",
		"Rerun", "runID, reopenable...)",
		"runID, append([]string{RunRunning}, reopenable...)...)",
		"TestConformance",
	},
	{
		"R12", "a run that others wait for is deleted",
		"Clean", "WHERE d.upstream_run_id = r.run_id AND ",
		"WHERE d.upstream_run_id = r.run_id AND w.state = 'NONE' AND ",
		"TestConformance",
	},
	{
		"R13", "a run waits for ever in spite of its limit",
		"endWaiting", "(cancel_requested OR deadline_at < {now}) ORDER",
		"cancel_requested ORDER",
		"TestConformance",
	},
	{
		"R14", "mode RUN ends while a run is open",
		"checkModeChange", "return errors.Join(blockers...)",
		"return errors.Join(blockers[:0]...)",
		"TestConformance",
	},
	{
		"R15", "the counts of a run that was cancelled look exact",
		"stopRunTx", "UPDATE schedule_run_queue SET `+lowerBound+`, state = ?",
		"UPDATE schedule_run_queue SET state = ?",
		"TestConformance",
	},
	{
		"R19", "a success of any trigger ends the problem",
		"failuresOf", "`trigger_name = ?`",
		"`'' <> ?`",
		"TestConformance",
	},
	{
		"R19", "retention ends a problem",
		"lastFailure", "(r.state IN ",
		"(1 = 0 AND r.state IN ",
		"TestConformance",
	},
	{
		"R19", "a rerun keeps the acknowledgement",
		"reopenRun", "acked_at = NULL, ",
		"",
		"TestConformance",
	},
}
