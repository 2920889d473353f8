package main

// serverMutants break the life of a server: rules S.
var serverMutants = []mutant{
	{
		"S1", "a third statement with each heartbeat",
		"sendHeartbeat", "\tstart := time.Now()\n",
		"\t_, _ = h.roster.DB().ExecContext(ctx, `SELECT CAST($1 AS int)`, 1)\n\tstart := time.Now()\n",
		"TestTwoStatementsPerHeartbeat",
	},
	{
		"S1", "a heartbeat waits for the plan",
		"setState", "\tp.newState = n\n",
		"\tp.newState = n\n\t_, _ = l.Exec(ctx, `UPDATE schedule_server SET state = ? WHERE uuid = ?`, n.state, n.uuid)\n",
		"TestServerRowIsWrittenLast",
	},
	{
		"S2", "a change of own queues goes unnoticed",
		"matches", "newest == p.OwnedPlanVersion && ",
		"",
		"TestMatches",
	},
	{
		"S3", "each heartbeat takes the lock",
		"follow", "p.rebalanceDue = r.AnyDead && r.watched > 0 || ",
		"p.rebalanceDue = r.watched >= 0 || ",
		"TestTwoStatementsPerHeartbeat",
	},
	{
		"S4", "the audit repairs nothing",
		"Audit", "len(changes) == 0 && len(in.shares(servers, changes)) == 0 {",
		"len(changes) >= 0 {",
		"TestConformance",
	},
	{
		"S5", "no lease",
		"valid", "func (l *lease) valid() bool { return l.left() > 0 }",
		"func (l *lease) valid() bool { return l != nil }",
		"TestLease",
	},
	{
		"S6", "the old uuid is used again",
		"newRegistration", "newUUID(host),",
		"host + \":1:again\",",
		"TestExpiredServerJoinsAgain",
	},
	{
		"S7", "no expiry guard",
		"mayExpire", "return !w.since.IsZero() && w.watched() >= w.judgeDead",
		"return !w.since.IsZero()",
		"manager.TestWatch",
	},
	{
		"S8", "a waiting server does not poll",
		"wait", "if s.mustPoll() {",
		"if s == nil {",
		"TestHandOverIsNoticedAtOnce",
	},
	{
		"S9", "every standby server raises the alert",
		"Alert", "err == nil && recent == 0",
		"err == nil",
		"TestConformance",
	},
	{
		"S10", "a session waits for its jobs",
		"start", "go func() { r.ended <- j.call(ctx) }()",
		"r.ended <- j.call(ctx)",
		"TestSessionDoesNotWaitForAJob",
	},
	{
		"S11", "work before the first reply",
		"halted", "return h.paused || !h.isConfirmed()",
		"return h.paused",
		"TestWorkerThatJoinsWhilePaused|TestPausedWhileTheDatabaseIsAway",
	},
	{
		"S12", "a server that is not heard keeps its queues",
		"listen", "err != nil || age > 2*every || ",
		"err != nil || age >= 0 || ",
		"TestWorkerThatIsUnheard",
	},
	{
		"S13", "an absurd interval in one row fails the heartbeats of all servers",
		"dialect", "sqldb.ClampedMillis(ms) + \" AS double precision",
		"ms + \" AS double precision",
		"TestConformanceWithoutConstraints",
	},
	{
		"S13", "an infinite time in one row fails the plans",
		"Scan", "\tcase []byte: // PostgreSQL's infinity\n\t\t*i = Instant(clampTime(parseTime(string(v))))\n",
		"",
		"TestConformanceWithoutConstraints",
	},
	{
		"S13", "a list of removals that cannot be read fails the heartbeats of all servers",
		"Scan", "if json.Unmarshal([]byte(t), &elements) != nil {\n\t\treturn nil\n\t}",
		"if err := json.Unmarshal([]byte(t), &elements); err != nil {\n\t\treturn err\n\t}",
		"TestConformanceWithoutConstraints",
	},
	{
		"S13", "a queue whose epoch cannot rise fails the heartbeats of its owner",
		"readReplies", "` + validEpoch\n",
		"` + \"epoch IS NOT NULL\"\n",
		"TestConformanceWithoutConstraints",
	},
	{
		"S13", "the number of queues changes to any number that the row has",
		"numberedQueues", "case !validTotal(l.RequestedTotal):",
		"case l.RequestedTotal > 1_000_000:",
		"TestConformanceWithoutConstraints",
	},
	{
		"S14", "the take-over of a queue from an expired owner is not counted",
		"countCrashes", "SET crash_count = crash_count + 1",
		"SET crash_count = crash_count + 0",
		"TestConformance",
	},
	{
		"S14", "an owner that has released a queue counts as a crash",
		"crashed", "if c.ChangesOwner() && !live[c.OldOwner] {",
		"if c.ChangesOwner() {",
		"TestConformance",
	},
	{
		"S14", "an item begins alone without a record",
		"saveStart", "item.Started = true\n",
		"item.Started = false\n",
		"TestCrashedQueuesAreExecutedOneByOne",
	},
	{
		"S14", "two items are executed alone at the same time",
		"aloneMustWaitLocked", "return l.alone && s.alone.turn != nil && s.alone.turn != l",
		"return false",
		"TestTurnIsPassedOn|TestCrashedQueuesAreExecutedOneByOne",
	},
	{
		"S14", "the item that has ended its process is executed again",
		"judgeStarted", "if !f.Started ||",
		"if f.Started ||",
		"TestItemThatEndsItsProcessIsDead",
	},
}
