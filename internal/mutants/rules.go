package main

// mutants are the rules that the tests must hold. Each is broken in the smallest way.
var mutants = []mutant{
	{
		"H1: no drain wait", "manager/decide.go",
		`case row.Req != "" && h.Drained:`, `case row.Req != "" && h.Draining:`,
		"./manager -run Drain|Repartition|Decide",
	},
	{
		"H2: release without the requester's name", "center/release.go",
		" && req == q.To {", " {",
		"./center -run Conformance",
	},
	{
		"H2: release to a server that is not eligible", "center/release.go",
		"mayOwn(state) && ", "",
		"./center -run Conformance",
	},
	{
		"H3: a queue worked on after its release was sent", "manager/decide.go",
		"retired := f.retired[row.ID] == row.Epoch", "retired := false",
		"./manager -run Decide",
	},
	{
		"H4: an owner that does not look again whether its requester knows", "manager/view.go",
		" || v.requesterUnaware() }", " }",
		"./manager -run OwnerNotices",
	},
	{
		"H4: leave without handing over", "center/server.go",
		"_, err = l.assign(ctx, planning{Assignment: Assignment{Actor: uuid}, leaver: uuid, forced: forced, why: \"drain_timeout\"})\n\t\treturn err",
		"return nil",
		"./center -run Conformance",
	},
	{
		"H5: force that waits for the owner", "center/pause.go",
		"leaver: uuid, forced: queues", "forced: queues",
		"./center -run Conformance",
	},
	{
		"N2: removal without the drain", "manager/decide.go",
		"case row.Removing && h.Drained:", "case row.Removing && h.Draining:",
		"./manager -run Decide|RemovalWaits",
	},
	{
		"N2: removal under whatever epoch", "center/queue.go",
		"AND cur_server = ? AND epoch = ?`,\n\t\t\tl.taskType, l.ownSign, queueID, uuid, epoch)",
		"AND cur_server = ?`,\n\t\t\tl.taskType, l.ownSign, queueID, uuid)",
		"./center -run Conformance",
	},
	{
		"N2 H6: a queue that comes back under an old epoch", "center/queue.go",
		"l.epochHigh = max(l.epochHigh, e.epoch)", "",
		"./center -run Conformance",
	},
	{
		"S7: an environment forgotten by a clock that was set", "center/ownsign.go",
		"still == 0 || l.now.Sub(seen).Abs() > within", "still == 0",
		"./center -run Conformance",
	},
	{
		"S9: every server that stands by tells", "center/alert.go",
		"err == nil && young == 0", "err == nil",
		"./center -run Conformance",
	},
	{
		"H6: no new epoch for queues that lose their owner", "center/write.go",
		"if c.ChangesOwner() {\n\t\trow.Bump", "if c.Owner != \"\" && c.ChangesOwner() {\n\t\trow.Bump",
		"./center -run Conformance",
	},
	{
		"F1: no fence", "center/fence.go",
		"func (b boundBatch) fence(ctx context.Context, tx Tx) error {",
		"func (b boundBatch) fence(ctx context.Context, tx Tx) error {\n\tif b.c != nil {\n\t\treturn nil\n\t}",
		"./center -run Conformance",
	},
	{
		"F1: epoch-only fence", "center/fence.go",
		"now.ID != b.Server || now.Epoch != q.Epoch", "now.Epoch != q.Epoch",
		"./center -run Conformance",
	},
	{
		"F1: owner-only fence", "center/fence.go",
		"now.ID != b.Server || now.Epoch != q.Epoch", "now.ID != b.Server",
		"./center -run Conformance",
	},
	{
		"F5: an unknown commit run again", "internal/sqldb/class.go",
		"return fmt.Errorf(\"%w: %w\", ErrUnknownCommit, err)", "return fmt.Errorf(\"commit: %w\", err)",
		"./center/postgres ./center -run Unknown|Conformance",
	},
	{
		"P2: the larger quota to the one that holds least", "internal/plan/planning.go",
		"return cmp.Compare(owned[b], owned[a]) })", "return cmp.Compare(owned[a], owned[b]) })",
		"./internal/plan",
	},
	{
		"P3: any queues are kept", "internal/plan/planning.go",
		"(i%n == s) == ownPosition", "(i%n >= 0) == ownPosition",
		"./internal/plan",
	},
	{
		"P4: assigned from the first server on", "internal/plan/planning.go",
		"open.from(i % n)", "open.from(0)",
		"./internal/plan",
	},
	{
		"L1: no lock", "center/lock.go",
		"+set+` WHERE task_type = ? AND own_sign = ?`+line, args...)", "+set+` WHERE version < 0 AND task_type = ? AND own_sign = ?`+line, args...)\n\tn = 1",
		"./center -run Conformance",
	},
	{
		"L1: all wait for the row itself", "center/postgres/dialect.go",
		`THEN pg_advisory_xact_lock(" + line + ")`, `THEN CAST(? AS text)`,
		"./center -run OneWaits",
	},
	{
		"L1: one line for all schemas", "center/postgres/dialect.go",
		"hashtextextended(?, CAST(tableoid AS bigint))", "hashtextextended(?, 0)",
		"./center -run HasItsOwnLine|OneWaits",
	},
	{
		"L7: who gives up the lock row leaves a session", "center/postgres/dialect.go",
		"set_config('lock_timeout', '1000', true)", "set_config('lock_timeout', '0', true)",
		"./center -run LeavesNoSession",
	},
	{
		"L7: who gives up an audit leaves a session", "center/assign.go",
		"+c.db.Limits, ", ", ",
		"./center -run LeavesNoSession",
	},
	{
		"L7: who is stopped in line keeps the lock row", "center/postgres/dialect.go",
		"set_config('idle_in_transaction_session_timeout', '10000', true)", "'x'",
		"./center -run IdleTransactions",
	},
	{
		"S7: a lock row that is never free keeps the dead", "manager/plan.go",
		"p.busy < maxBusy", "true",
		"./manager -run NeverFree",
	},
	{
		"L6: the state of a queue of a run overwritten before it is read", "center/run_claim.go",
		"SET attempt = CASE WHEN state = '`+RunQueuePending+`' THEN attempt + 1 ELSE attempt END,\n\t\t\trecoveries = CASE WHEN state = '`+RunQueueRunning+`' THEN recoveries + 1 ELSE recoveries END,\n\t\t\tstate = '`+RunQueueRunning+`', ",
		"SET state = '`+RunQueueRunning+`', attempt = CASE WHEN state = '`+RunQueuePending+`' THEN attempt + 1 ELSE attempt END,\n\t\t\trecoveries = CASE WHEN state = '`+RunQueueRunning+`' THEN recoveries + 1 ELSE recoveries END,\n\t\t\t",
		"./center -run Conformance",
	},
	{
		"S2: queues read before the version", "center/view.go",
		"\treturn v, nil\n", "\terr = c.store.QueryRowContext(ctx, c.dialect.sql(`SELECT plan_version FROM schedule_task_running WHERE task_type = ? AND own_sign = ?`), taskType, c.ownSign).Scan(&v.PlanVersion)\n\treturn v, err\n",
		"./center -run Conformance",
	},
	{
		"S3: the lock is taken with every heartbeat", "manager/plan.go",
		"if r.AnyDead && r.watched > 0 || r.MembershipVersion != r.PlannedVersion {", "if r.AnyDead || true {",
		"./manager -run TwoStatements",
	},
	{
		"L2: the local clock", "center/lock.go",
		"\tif err != nil {\n\t\treturn fmt.Errorf(\"read the lock row: %w\", err)\n\t}",
		"\tif err != nil {\n\t\treturn fmt.Errorf(\"read the lock row: %w\", err)\n\t}\n\tl.now = time.Now().UTC()",
		"./center -run Skewed",
	},
	{
		"L2: the clock before the lock", "center/postgres/dialect.go",
		`"clock_timestamp()", // now() would`, `"now()", // now() would`,
		"./center -run ClockIsRead",
	},
	{
		"L3: expiry of one that has just beaten", "center/server.go",
		"if seen := read[uuid]; seen.IsZero() || seen.Equal(heartbeat) {", "if seen := read[uuid]; seen.IsZero() || true {",
		"./center -run Spares",
	},
	{
		"H6: no new epoch for a queue that loses its owner", "center/write.go",
		"cur_server = NULL, cur_since = NULL, epoch = epoch + 1`", "cur_server = NULL, cur_since = NULL`",
		"./center -run Conformance$",
	},
	{
		"L4: a change of another epoch", "center/write.go",
		"AND queue_id = ? AND epoch = ?`+owned", "AND queue_id = ? AND epoch <> -?`+owned",
		"./center -run CompareAndSet",
	},
	{
		"L4: a change of another's queue", "center/write.go",
		"owned = ` AND cur_server = ?`", "owned = ` AND COALESCE(cur_server, '-') <> COALESCE(?, '')`",
		"./center -run CompareAndSet",
	},
	{
		"L4: a plan written in part", "center/write.go",
		"if n != len(part) {", "if n > len(part) {",
		"./center -run CompareAndSet",
	},
	{
		"L5: waiting for a stalled transaction", "center/postgres/dialect.go",
		" FOR UPDATE OF q SKIP LOCKED", " FOR UPDATE OF q",
		"./center -run Conformance",
	},
	{
		"L5: a busy owner is not drained for a request", "manager/plan.go",
		"p.blocked[id] = true", "_ = id",
		"./manager -run AlwaysBusy",
	},
	{
		"N1: the number of queues changed without the barrier", "center/repartition.go",
		"err != nil || busy > 0 || l.requestedTotal == 0", "err != nil || l.requestedTotal == 0",
		"./center -run Conformance",
	},
	{
		"N1: nobody asks whether all have drained", "center/beat.go",
		"func(s ServerBeat) bool { return s.DrainedPartition != 0 }", "func(s ServerBeat) bool { return false }",
		"./center -run Conformance",
	},
	{
		"N1: work goes on behind the barrier", "manager/halt.go",
		" || p.RequestedTotal > 0\n", "\n",
		"./manager -run Repartition",
	},
	{
		"P5: taking from live owners", "internal/plan/planning.go",
		"if p.rows[i].Owner == \"\" {\n\t\t\tp.rows[i].Owner = server", "if server != \"\" {\n\t\t\tp.rows[i].Owner = server",
		"./internal/plan",
	},
	{
		"P6: no second pass", "internal/plan/plan.go",
		"\tp.request() // assigns", "\t// assigns",
		"./internal/plan",
	},
	{
		"S2: a change of one's own queues unnoticed", "manager/view.go",
		"newest == p.OwnedPlan && ", "",
		"./manager -run Matches",
	},
	{
		"S2: queues read anew when others' have changed", "manager/view.go",
		"return v.QueueTotal == ", "return v.PlanVersion == p.PlanVersion && v.QueueTotal == ",
		"./manager -run TwoStatements",
	},
	{
		"S2: a queue that is to be removed unnoticed", "manager/view.go",
		"slices.Equal(v.Removing, p.Removing)", "slices.Equal(p.Removing, p.Removing)",
		"./manager -run Matches",
	},
	{
		"S2: a queue changed and not stamped", "center/write.go",
		"`UPDATE schedule_queue SET `+set.String()+`, plan_version = ?, gmt_modified", "`UPDATE schedule_queue SET `+set.String()+`, plan_version = 0 * ?, gmt_modified",
		"./center -run Conformance$",
	},
	{
		"S2: queues changed and not stamped", "center/postgres/dialect.go",
		"plan_version = v.plan, ", "",
		"./center -run Conformance$",
	},
	{
		"S5: no trust", "manager/lease.go",
		"func (l *lease) valid() bool { return l.left() > 0 }", "func (l *lease) valid() bool { return l != nil }",
		"./manager -run Lease",
	},
	{
		"S6: the old uuid used again", "manager/registration.go",
		"uuid:     newUUID(host),", "uuid:     host + \":1:again\",",
		"./manager -run JoinsAgain",
	},
	{
		"S3: the lock row is taken for nothing", "center/assign.go",
		"return yes, !free, nil", "return free, !free, nil",
		"./center -run Conformance",
	},
	{
		"S3: who need not wait for the lock row does", "center/assign.go",
		"due, busy, err := c.assignDue(", "a.NoWait = false\n\tdue, busy, err := c.assignDue(",
		"./center -run Conformance//lock",
	},
	{
		"S6: two processes with one uuid", "center/beat.go",
		"`) AND beat_token IN (` + sqldb.Marks(len(b.Was)+1) + `)`, args", "`) AND (1 = 1 OR beat_token IN (` + sqldb.Marks(len(b.Was)+1) + `))`, args",
		"./center -run Conformance",
	},
	{
		"S7: no expiry guard", "manager/watch.go",
		"return !w.since.IsZero() && w.watched() >= w.judgeDead", "return !w.since.IsZero()",
		"./manager -run Watch",
	},
	{
		"S7: judging after an absence of one's own", "center/assign.go",
		"return now.Sub(beat).Abs() <= p.BeatWithin && ", "return ",
		"./center -run Conformance",
	},
	{
		"S8: waiting without looking", "manager/wait.go",
		"if s.mustPoll() {", "if s == nil {",
		"./manager -run HandOver",
	},
	{
		"S2: a ring that is not closed", "center/ring.go",
		"` AND d.uuid <= ?`, r.first)", "` AND d.uuid < ?`, \"\")",
		"./center -run Conformance$",
	},
	{
		"S2: the ring of long ago", "center/ring.go",
		"r.old = r.membership != membership", "r.old = false",
		"./center -run Conformance$",
	},
	{
		"S8: who hands over does not look", "manager/wait.go",
		"time.After(time.Until(s.view.checked.Add(pollInterval)))", "time.After(pollInterval)",
		"./manager -run HandsOver",
	},
	{
		"S8: a poll that looks at nothing", "manager/view.go",
		"awaits == v.Awaits(v.uuid)", "awaits.Queues >= 0",
		"./manager -run HandOver",
	},
	{
		"S8: a poll that misses an exchange", "center/view.go",
		"COUNT(*), COALESCE(MAX(plan_version), 0)", "COUNT(*), 0 * COALESCE(MAX(plan_version), 0)",
		"./center -run Conformance$",
	},
	{
		"S2: a view that keeps what was released", "center/view.go",
		"return slices.Contains(released, q.ID)", "return q.ID == \"\"",
		"./manager -run HandOverIsReadOnce",
	},
	{
		"X1: what was in hand is selected again", "processor/select.go",
		"\tc.noteInFlightLocked(s, l)\n", "",
		"./processor -run NotSleep",
	},
	{
		"X3: a cursor that moves on past a failed batch", "processor/cursor.go",
		"if b.outcome == done && b.position.saved {", "if b.outcome == done && b.position.saved || b.outcome == failed {",
		"./processor -run Cursor",
	},
	{
		"F4: a cursor that is not handed over", "manager/perform.go",
		"Parameter: row.Parameter, Cursor: row.Cursor, ", "Parameter: row.Parameter, ",
		"./manager -run Cursors",
	},
	{
		"F4: a cursor saved under an old epoch", "center/fence.go",
		"AND queue_id = ? AND cur_server = ? AND epoch = ?`), args...))", "AND queue_id = ? AND (cur_server = ? OR epoch <> ?)`), args...))",
		"./center -run Conformance",
	},
	{
		"H4: a gap while the requester does not know", "manager/decide.go",
		"requested := row.Req != \"\" && row.Known", "requested := row.Req != \"\"",
		"./manager -run Decide",
	},
	{
		"a window that closes for the one who found it empty only", "manager/window.go",
		"!q.WindowDone.Before(state.Since)", "false",
		"./manager -run OpenEnded",
	},
	{
		"R2: a trigger made again has another id", "center/trigger.go",
		`return uuid.NewSHA1(triggerSpace, []byte(ownSign+"\x00"+name)).String()`, "_, _ = ownSign, name\n\treturn uuid.NewString()",
		"./center -run Conformance$",
	},
	{
		"R2: a conflict stops the trigger", "center/trigger_fire.go",
		"continue // fired before the trigger was made again; it advances all the same", "return 0, nil // fired before",
		"./center -run Conformance$",
	},
	{
		"R2: a trigger that is written over", "center/trigger_fire.go",
		`strings.TrimSuffix(strings.Repeat("name = ? AND version = ? OR ", len(firings)), " OR ")`, `strings.TrimSuffix(strings.Repeat("name = ? AND (version = ? OR 1 = 1) OR ", len(firings)), " OR ")`,
		"./center -run EditedWhileItFires",
	},
	{
		"R2: one bad row stops all", "center/trigger_fire.go",
		"firings = append(firings, newFiring(t, l.now))\n\t\treturn err", "f := newFiring(t, l.now)\n\t\tif firings = append(firings, f); f.Status == TriggerError {\n\t\t\treturn errNoRuns\n\t\t}\n\t\treturn err",
		"./center -run Conformance$",
	},
	{
		"R4: overlap", "center/trigger_fire.go",
		"case len(open) == 0, t.Overlap == OverlapWait && len(open) == 1:", "case len(open) <= 1:",
		"./center -run Conformance$",
	},
	{
		"R4: one waits after the other", "center/trigger_fire.go",
		"t.Overlap == OverlapWait && len(open) == 1:", "t.Overlap == OverlapWait:",
		"./center -run Conformance$",
	},
	{
		"R4: two open runs", "center/run_open.go",
		"return paused || running > 0 ||", "return paused ||",
		"./center -run Conformance$",
	},
	{
		"R4: a slow dependant piles up", "center/depend_settle.go",
		"state, cause, err = l.crowded(ctx, r.id)", "_, _, err = l.crowded(ctx, r.id)",
		"./center -run Conformance$",
	},
	{
		"R5: who waits hides who failed", "center/depend_settle.go",
		"RunWaiting: 1, RunSkipped: 2", "RunWaiting: 4, RunSkipped: 2",
		"./center -run Conformance$",
	},
	{
		"R5: no domino", "center/depend_settle.go",
		"runs = append(runs, next...)", "_ = next",
		"./center -run Conformance$",
	},
	{
		"R5: no cause", "center/depend_settle.go",
		`fmt.Sprintf("%s (run %s) %s: %s", name, id, is, message)`, `fmt.Sprintf("%s (run %s) %s", name, id, is)`,
		"./center -run Conformance$",
	},
	{
		"R5: cycles", "center/depend.go",
		"if path := cycle(edges, taskType); path != nil {", "if path := cycle(nil, taskType); path != nil {",
		"./center -run Conformance$",
	},
	{
		"R5: cycles drawn by two", "center/depend.go",
		"`UPDATE schedule_task_running SET version = version + 1`", "`UPDATE schedule_task_running SET version = version + 1 WHERE version < 0`",
		"./center -run CycleDrawn",
	},
	{
		"R6: opened without another look", "center/run_open.go",
		"if state != RunReady {\n\t\treturn state, l", "if state != RunReady && cause == \"\" {\n\t\treturn state, l",
		"./center -run Conformance$",
	},
	{
		"R6: the queue that is about to go", "center/run_open.go",
		"return q.removing })", "return false })",
		"./center -run Conformance$",
	},
	{
		"R6: a run opened during the barrier", "center/run_open.go",
		"|| l.requestedTotal > 0, err", ", err",
		"./center -run Conformance$",
	},
	{
		"R7: its own epoch is not claimed again", "center/run_claim.go",
		"state == RunQueuePending || epoch <= epochs[q.queue]", "state == RunQueuePending || epoch < epochs[q.queue]",
		"./center -run Conformance$",
	},
	{
		"R7: claimed of a run that is not open", "center/run_claim.go",
		"return state == RunRunning, err", "return true, err",
		"./center -run ClaimOfARun",
	},
	{
		"R8: no fence", "center/run_sweep.go",
		"if err := c.fenceSweep(ctx, t, s); err != nil {\n\t\t\treturn err\n\t\t}\n", "",
		"./center -run Conformance$",
	},
	{
		"R8: another sweep's row", "center/run_sweep.go",
		"WHERE run_id = ? AND queue_id = ? AND state = '`+RunQueueRunning+`' AND server = ? AND epoch = ?`,\n\t\tappend(all, s.RunID, s.QueueID, s.Server, s.Epoch)", "WHERE run_id = ? AND queue_id = ?`,\n\t\tappend(all, s.RunID, s.QueueID)",
		"./center -run Conformance$",
	},
	{
		"R8 F4: the cursor of a run unfenced", "center/fence.go",
		"if err := b.fenceByWriting(ctx, tx, ``); err != nil {\n\t\treturn err\n\t}\n", "",
		"./center -run Conformance$",
	},
	{
		"R9: the deadline waits for the owner", "center/run_close.go",
		"next_attempt_at = NULL,\n\t\tfinished_at = {now} WHERE run_id = ? AND state IN ('`+RunQueuePending+`', '`+RunQueueRunning+`')`, queueState", "next_attempt_at = NULL,\n\t\tfinished_at = {now} WHERE run_id = ? AND state = '`+RunQueuePending+`'`, queueState",
		"./center -run Conformance$",
	},
	{
		"R9: no deadline", "center/run_close.go",
		"if err != nil || !cancel && !late {", "if err != nil || !cancel {",
		"./center -run Conformance$",
	},
	{
		"R10: am I the last, asked before", "center/run_sweep.go",
		"if err == nil && open == 0 {\n\t\terr = c.closeRun", "if err == nil && open == 0 && s.QueueID == \"0\" {\n\t\terr = c.closeRun",
		"./center -run Conformance$",
	},
	{
		"R10: tested before the lock", "center/run_close.go",
		"\t\trunning, err := t.touchRun(ctx, runID, RunRunning)\n\t\tif err != nil || !running {\n\t\t\treturn err\n\t\t}\n\t\tsum, err := t.tally(ctx, runID)\n\t\tif err != nil || sum.open > 0 {\n\t\t\treturn err\n\t\t}\n", "\t\tsum, err := t.tally(ctx, runID)\n\t\tif err != nil || sum.open > 0 {\n\t\t\treturn err\n\t\t}\n\t\trunning, err := t.touchRun(ctx, runID, RunRunning)\n\t\tif err != nil || !running {\n\t\t\treturn err\n\t\t}\n",
		"./center -run Conformance$",
	},
	{
		"R10: no tick repeats it", "center/run_tick.go",
		"} else if p.swept {", "} else if p.swept && p.stop {",
		"./center -run Conformance$",
	},
	{
		"R11: pauses that do not double", "center/run_sweep.go",
		"pause *= 2", "pause += 0",
		"./center -run Conformance$",
	},
	{
		"R11: taken over for ever", "center/run_claim.go",
		"if failed = err == nil && recoveries > limit; failed {", "if failed = err == nil && recoveries > 1000*limit; failed {",
		"./center -run Conformance$",
	},
	{
		"R11: a rerun of all queues", "center/run_operate.go",
		"state IN ('`+RunQueueFailed+`', '`+RunQueueCancelled+`')`, runID)", "state IN ('`+RunQueueFailed+`', '`+RunQueueCancelled+`', '`+RunQueueDone+`')`, runID)",
		"./center -run Conformance$",
	},
	{
		"R11: a rerun reopens dependants that run", "center/run_operate.go",
		"WHERE run_id = ? AND state = '`+RunDependentFailed+`'`, id)", "WHERE run_id = ? AND state IN ('`+RunDependentFailed+`', 'RUNNING')`, id)",
		"./center -run Conformance$",
	},
	{
		"R11: a rerun of one that is RUNNING", "center/run_operate.go",
		"l.touchRun(ctx, runID, RunFailed,", "l.touchRun(ctx, runID, RunRunning, RunFailed,",
		"./center -run Conformance$",
	},
	{
		"R11: dependants stay failed", "center/run_operate.go",
		"if err := l.wakeDependants(ctx, runID); err != nil {\n\t\t\treturn err\n\t\t}\n", "",
		"./center -run Conformance$",
	},
	{
		"R12: what is waited for is deleted", "center/run_clean.go",
		"WHERE d.upstream_run_id = r.run_id AND w.state IN (", "WHERE d.upstream_run_id = r.run_id AND w.state = 'NONE' AND w.state IN (",
		"./center -run Conformance$",
	},
	{
		"N1: a run waits for a queue that is gone", "center/repartition.go",
		`queuesGone(ctx, RunQueueFailed, "there are fewer queues now: rerun the run", idsOf(numberedQueues(l.requestedTotal, l.queueTotal)))`, `queuesGone(ctx, RunQueueFailed, "there are fewer queues now: rerun the run", idsOf(nil))`,
		"./center -run Conformance$",
	},
	{
		"N2: a run waits for a queue that was removed", "center/queue.go",
		"queuesGone(ctx, RunQueueCancelled, queueRemoved, []string{e.queue})", "queuesGone(ctx, RunQueueCancelled, queueRemoved, []string{e.from})",
		"./center -run Conformance$",
	},
	{
		"R2 histories: a trigger made again has another id", "center/trigger.go",
		`return uuid.NewSHA1(triggerSpace, []byte(ownSign+"\x00"+name)).String()`, "_, _ = ownSign, name\n\treturn uuid.NewString()",
		"./center -run RandomHistories -rapid.checks=400",
	},
	{
		"R4 histories: two open runs", "center/run_open.go",
		"return paused || running > 0 ||", "return paused ||",
		"./center -run RandomHistories -rapid.checks=400",
	},
	{
		"R6 histories: opened without another look", "center/run_open.go",
		"if state != RunReady {\n\t\treturn state, l", "if state != RunReady && cause == \"\" {\n\t\treturn state, l",
		"./center -run RandomHistories -rapid.checks=400",
	},
	{
		"R8 histories: no fence", "center/run_sweep.go",
		"if err := c.fenceSweep(ctx, t, s); err != nil {\n\t\t\treturn err\n\t\t}\n", "",
		"./center -run RandomHistories -rapid.checks=400",
	},
	{
		"R10 histories: no tick repeats it", "center/run_tick.go",
		"} else if p.swept {", "} else if p.swept && p.stop {",
		"./center -run RandomHistories -rapid.checks=400",
	},
	{
		"R9 histories: no deadline", "center/run_close.go",
		"if err != nil || !cancel && !late {", "if err != nil || !cancel {",
		"./center -run RandomHistories -rapid.checks=400",
	},
	{
		"R11 histories: a rerun of one that is RUNNING", "center/run_operate.go",
		"l.touchRun(ctx, runID, RunFailed,", "l.touchRun(ctx, runID, RunRunning, RunFailed,",
		"./center -run RandomHistories -rapid.checks=400",
	},
	{
		"trap: statements prepared behind a pooler", "center/postgres/connector.go",
		"return row[0] != nil && ", "return row[0] != nil || ",
		"./center -run NothingIsPrepared|ThroughPgBouncer",
	},
	{
		"trap: a plan that grows old", "internal/sqldb/prepare.go",
		"if !s.At.IsZero() && now.Sub(s.At) < preparedFor {", "if !s.At.IsZero() {",
		"./center -run HeartbeatsArePrepared",
	},
	{
		"trap: a statement that the server has forgotten", "internal/sqldb/prepare.go",
		"if err == nil || !c.unprepared(err) {", "if true {",
		"./center -run HeartbeatsArePrepared",
	},
	{
		"trap: a statement whose table was changed", "center/postgres/errors.go",
		"e.Code == \"0A000\"", "e.Code == \"\"",
		"./center -run HeartbeatsArePrepared",
	},
	{
		"trap: a request to cancel that is waited for", "center/postgres/dialer.go",
		"timeout = cancelTimeout", "timeout = sqldb.IOTimeout",
		"./center/postgres -run CancelDoesNotWait",
	},
	{
		"trap: a server that takes no more prepared statements", "internal/sqldb/prepare.go",
		"case c.unprepared(err):", "case false:",
		"./center -run HeartbeatsArePreparedInMySQL",
	},
	{
		"trap: prepared statements that come no more", "internal/sqldb/prepare.go",
		"if !s.At.IsZero() && now.Sub(s.Used) < preparedFor {", "if !s.At.IsZero() {",
		"./center -run HeartbeatsArePrepared",
	},
	{
		"trap: the limit of all programs taken by one", "center/mysql/connector.go",
		"if role != sqldb.RoleHeartbeat {", "if role == sqldb.RoleDealers {",
		"./center -run HeartbeatsArePreparedInMySQL",
	},
	{
		"trap: a migration with no more time than a heartbeat", "internal/sqldb/database.go",
		"return r == RoleStore || r == RoleHeartbeat }", "return r != RoleDealers }",
		"./center -run MigrationsTakeTheirTime",
	},
	{
		"trap: a migration behind which all wait", "center/mysql/connector.go",
		`cfg.Params["lock_wait_timeout"] = "2"`, `cfg.Params["lock_wait_timeout"] = "300"`,
		"./schema -run MigrationsLetOthersPass",
	},
}
