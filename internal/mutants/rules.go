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
		"AND epoch = ? AND req_server = ?`,\n\t\tl.taskType, l.ownSign, q.QueueID, uuid, q.Epoch, q.To)",
		"AND epoch = ?`,\n\t\tl.taskType, l.ownSign, q.QueueID, uuid, q.Epoch)",
		"./center -run Conformance",
	},
	{
		"H2: release to one that is not eligible", "center/release.go",
		"err == nil && state != StateServing && state != StateStandby", "false",
		"./center -run Conformance",
	},
	{
		"H3: a queue worked on after its release was sent", "manager/decide.go",
		"spent := f.spent[row.ID] == row.Epoch", "spent := false",
		"./manager -run Decide",
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
		"H6: no new epoch for a queue that loses its owner", "center/assign.go",
		"if c.Regrants() {\n\t\trow.Bump", "if c.Cur != \"\" && c.Regrants() {\n\t\trow.Bump",
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
		"F5: an unknown commit run again", "center/retry.go",
		"return fmt.Errorf(\"%w: %w\", ErrUnknownCommit, err)", "return fmt.Errorf(\"commit: %w\", err)",
		"./center -run Unknown|Conformance",
	},
	{
		"P2: the larger quota to the one that holds least", "center/plan.go",
		"return cmp.Compare(held[b], held[a]) })", "return cmp.Compare(held[a], held[b]) })",
		"./center -run Plan",
	},
	{
		"P3: any queues are kept", "center/plan.go",
		"(i%n == s) == ownPosition", "(i%n >= 0) == ownPosition",
		"./center -run Plan",
	},
	{
		"P4: dealt from the first server on", "center/plan.go",
		"free.from(i % n)", "free.from(0)",
		"./center -run Plan",
	},
	{
		"L1: no lock", "center/lock.go",
		"SET version = version + 1 WHERE task_type = ? AND own_sign = ?`, l.taskType, l.ownSign)\n\tif err != nil {\n\t\treturn fmt.Errorf(\"lock: %w\", err)\n\t}\n\tif n == 0 {",
		"SET version = version + 1 WHERE task_type = ? AND own_sign = ? AND 1 = 0`, l.taskType, l.ownSign)\n\tif err != nil {\n\t\treturn fmt.Errorf(\"lock: %w\", err)\n\t}\n\tif n < 0 {",
		"./center -run Conformance",
	},
	{
		"L6: the requester overwritten before it is read", "center/release.go",
		"SET cur_server = req_server, req_server = NULL, req_since = NULL,", "SET req_server = NULL, req_since = NULL, cur_server = req_server,",
		"./center -run Conformance",
	},
	{
		"S2: queues read before the version", "center/view.go",
		"\treturn v, nil\n", "\terr = c.store.QueryRowContext(ctx, c.dialect.sql(`SELECT plan_version FROM schedule_task_running WHERE task_type = ? AND own_sign = ?`), taskType, c.ownSign).Scan(&v.PlanVersion)\n\treturn v, err\n",
		"./center -run Conformance",
	},
	{
		"S3: the lock is taken with every heartbeat", "manager/follow.go",
		"dead || p.MembershipVersion != p.PlannedVersion {", "dead || true {",
		"./manager -run TwoStatements",
	},
	{
		"L2: the local clock", "center/lock.go",
		"\tif err != nil {\n\t\treturn fmt.Errorf(\"read the lock row: %w\", err)\n\t}",
		"\tif err != nil {\n\t\treturn fmt.Errorf(\"read the lock row: %w\", err)\n\t}\n\tl.now = time.Now().UTC()",
		"./center -run Skewed",
	},
	{
		"L2: the clock before the lock", "center/postgres.go",
		`"clock_timestamp()", // now() would`, `"now()", // now() would`,
		"./center -run ClockIsRead",
	},
	{
		"L3: expiry of one that has just beaten", "center/server.go",
		"if seen := read[uuid]; seen.IsZero() || seen.Equal(heartbeat) {", "if seen := read[uuid]; seen.IsZero() || true {",
		"./center -run Spares",
	},
	{
		"L4: a plan written in part", "center/assign.go",
		"if n != len(part) {", "if n > len(part) {",
		"./center -run CompareAndSet",
	},
	{
		"L5: waiting for a stalled transaction", "center/postgres.go",
		" FOR UPDATE OF q SKIP LOCKED", " FOR UPDATE OF q",
		"./center -run Conformance",
	},
	{
		"L5: a busy owner is not drained for a request", "manager/follow.go",
		"s.life.blocked[id] = true", "_ = id",
		"./manager -run AlwaysBusy",
	},
	{
		"N1: the number of queues changed without the barrier", "center/repartition.go",
		"err != nil || busy > 0 || l.requestedTotal == 0", "err != nil || l.requestedTotal == 0",
		"./center -run Conformance",
	},
	{
		"N1: work goes on behind the barrier", "manager/follow.go",
		" || p.RequestedTotal > 0\n", "\n",
		"./manager -run Repartition",
	},
	{
		"P5: taking from the living", "center/plan.go",
		"if t.rows[i].Cur == \"\" {\n\t\t\tt.rows[i].Cur = to", "if to != \"\" {\n\t\t\tt.rows[i].Cur = to",
		"./center -run Plan",
	},
	{
		"P6: no second deal", "center/plan.go",
		"\tt.request() // deals", "\t// deals",
		"./center -run Plan",
	},
	{
		"S2: a change of plan unnoticed", "manager/life.go",
		"l.view.PlanVersion == p.PlanVersion && ", "",
		"./manager -run Matches",
	},
	{
		"S5: no trust", "manager/lease.go",
		"func (l *lease) valid() bool { return l.left() > 0 }", "func (l *lease) valid() bool { return l != nil }",
		"./manager -run Lease",
	},
	{
		"S6: the old uuid used again", "manager/life.go",
		"uuid:       newUUID(host),", "uuid:     fmt.Sprintf(\"%s:%d:again\", host, os.Getpid()),",
		"./manager -run JoinsAnew",
	},
	{
		"S6: two processes with one uuid", "center/beat.go",
		"`) AND beat_token IN (` + marks(len(b.Was)+1) + `)`, args", "`) AND (1 = 1 OR beat_token IN (` + marks(len(b.Was)+1) + `))`, args",
		"./center -run Conformance",
	},
	{
		"S7: no expiry guard", "manager/lease.go",
		"return !w.since.IsZero() && w.watched() >= w.judgeDead", "return !w.since.IsZero()",
		"./manager -run Watch",
	},
	{
		"S7: judging after an absence of one's own", "center/assign.go",
		"return now.Sub(beat).Abs() <= p.BeatWithin && ", "return ",
		"./center -run Conformance",
	},
	{
		"S8: waiting without looking", "manager/states.go",
		"if s.awaiting() {", "if s == nil {",
		"./manager -run HandOver",
	},
	{
		"X1: what was in hand is selected again", "processor/schedule.go",
		"\tp.lookInHand(c, l)\n", "",
		"./processor -run NotSleep",
	},
	{
		"X3: a cursor that moves on past a failed batch", "processor/cursor.go",
		"if c.verdict == done && c.moved {", "if c.verdict == done && c.moved || c.verdict == failed {",
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
		"asked := row.Req != \"\" && row.Known", "asked := row.Req != \"\"",
		"./manager -run Decide",
	},
	{
		"a window that closes for the one who found it empty only", "manager/window.go",
		"!q.WindowDone.Before(window.Since)", "false",
		"./manager -run OpenEnded",
	},
}
