package main

// lockMutants break locking and the clock: rules L.
var lockMutants = []mutant{
	{
		"L7", "a session of PostgreSQL that began read-only stays in its pool",
		"connector", "sqldb.Leaving{Connector: explaining{c, cfg}, Classify: classify}",
		"explaining{c, cfg}",
		"TestSessionsThatBeganReadOnly",
	},
	{
		"L1", "no lock",
		"lockBySetting", "+set+` WHERE task_type = ? AND own_sign = ?`+line, args...)",
		"+set+` WHERE version < 0 AND task_type = ? AND own_sign = ?`+line, args...)\n\tn = 1",
		"TestConformance",
	},
	{
		"L1", "a role that holds the line stops the roster",
		"passLine", "if !l.mayPassLine ||",
		"if true ||",
		"TestHeldLineDoesNotStopTheRoster",
	},
	{
		"L2", "the local clock decides",
		"read", "\treturn sqldb.Wrap(err, \"read the lock row\")",
		"\tl.Now = time.Now().UTC()\n\treturn sqldb.Wrap(err, \"read the lock row\")",
		"TestConformanceWithSkewedClocks",
	},
	{
		"L3", "a plan of many changes holds the lock row until all are written",
		"write", "len(changes) > mostChanges",
		"len(changes) > 10*mostChanges",
		"TestPlanOfManyChangesIsWrittenInParts",
	},
	{
		"L3", "nobody plans what a plan has left",
		"record", "return p.l.membershipChanged(ctx)",
		"return nil",
		"TestPlanOfManyChangesIsWrittenInParts",
	},
	{
		"L3", "a server that has just sent a heartbeat is expired",
		"lockServerRows", "if seen := read[b.UUID]; seen.IsZero() || seen.Equal(b.At) {",
		"if seen := read[b.UUID]; seen.IsZero() || true {",
		"TestExpirySparesServersWithANewHeartbeat",
	},
	{
		"L4", "a queue of another epoch is changed",
		"writeChange", "AND queue_id = ? AND epoch = ?`+owned",
		"AND queue_id = ? AND epoch <> -?`+owned",
		"TestPlanIsCompareAndSet",
	},
	{
		"L5", "the fence holds a place in the index of owners",
		"statement", " + f.DB.ByKey + ", // MariaDB
		"+",
		"TestConformance/mariadb.*/stalled_transaction",
	},
	{
		"L5", "a plan waits for a stalled transaction",
		"dialect", `SkipLocked: " FOR UPDATE OF q SKIP LOCKED"`, // PostgreSQL
		`SkipLocked: " FOR UPDATE OF q"`,
		"TestConformance",
	},
	{
		"L5", "a plan waits for a stalled transaction on MySQL",
		"dialect", `SkipLocked:    " FOR UPDATE OF q SKIP LOCKED"`,
		`SkipLocked: " FOR UPDATE OF q"`,
		"TestConformance/mysql.*",
	},
	{
		"L5", "a plan that skipped rows is due at each heartbeat",
		"planDue", "last_assign_time > {now} OR",
		"last_assign_time <= {now} OR",
		"TestConformance",
	},
	{
		"L5", "what a plan skipped is never retried",
		"planDue", "last_assign_time < {ago %d}",
		"last_assign_time > {ago -%d}",
		"TestConformance",
	},
	{
		"L5", "an owner does not drain what a plan skipped",
		"block", "p.blocked = make(map[string]bool, len(queues))\n",
		"p.blocked = make(map[string]bool, len(queues))\n\tqueues = nil\n",
		"TestQueuesMoveFromAnOwnerThatIsAlwaysBusy",
	},
	{
		"L6", "the state is overwritten before it is read",
		"claimOne", "UPDATE schedule_run_queue SET\n",
		"UPDATE schedule_run_queue SET state = '`+QueueRunning+`',\n",
		"TestConformance",
	},
	{
		"L7", "a caller that gives up waiting leaves a session behind",
		"limits", "set_config('lock_timeout', '1000', true)",
		"set_config('lock_timeout', '0', true)",
		"TestTimedOutWaitLeavesNoSession",
	},
	{
		"L7", "a client that is stopped while it reads keeps the lock row",
		"limits", `unsentLimit("'10s'")`,
		`unsentLimit("'0s'")`,
		"TestStoppedReaderDoesNotKeepTheLockRow",
	},
	{
		"L7", "a silent client keeps the lock row on MySQL",
		"limitIdle", `atMost(cfg, ofMySQL, "wait_timeout", limit)`,
		"",
		"TestSilentClientDoesNotKeepTheLockRow/mysql",
	},
	{
		"L8", "the clocks of nodes may differ by any time",
		"nodeClocks", "case apart > limit+",
		"case apart > 100*limit+",
		"TestClocksOfNodes",
	},
	{
		"L9", "a session keeps synchronous_commit = off",
		"durable", "THEN 'remote_apply' ELSE 'on' END",
		"THEN 'remote_apply' ELSE current_setting('synchronous_commit') END",
		"TestCommitsSurviveACrashWithoutSynchronousCommit",
	},
	{
		"L9", "a fenced transaction keeps synchronous_commit = off",
		"fenceSettings", "return f.DB.Durable + f.DB.IdleLimit",
		"return f.DB.IdleLimit",
		"TestCommitsSurviveACrashWithoutSynchronousCommit",
	},
	{
		"L9", "a loss of power takes back commits in a SQLite file",
		"dataSource", "synchronous(FULL)",
		"synchronous(NORMAL)",
		"TestSQLiteCommitsAreSynchronous",
	},
}
