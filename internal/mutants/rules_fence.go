package main

// fenceMutants break the fence: rules F.
var fenceMutants = []mutant{
	{
		"F1", "the fence ignores the epoch",
		"compareOwners", "if !found[owned{q, sqldb.Text(f.Server)}] {",
		"if !slices.ContainsFunc(rows, func(r owned) bool { return r.ID == q.ID && string(r.Owner) == f.Server }) {",
		"TestConformance",
	},
	{
		"F1", "no fence, seen by processes",
		"fence", "\tswitch {\n",
		"\tif b.c != nil {\n\t\treturn nil\n\t}\n\tswitch {\n",
		"TestFaults/sqlite/run-pause-in-item",
	},
	{
		"F1", "a connection passes for a transaction",
		"begun", "return nil, ErrNoTx",
		"return tx, nil",
		"TestConformance",
	},
	{
		"F1", "the fence goes through the placeholders of a wrapper",
		"begun", "return raw, nil",
		"return tx, nil",
		"TestConformance",
	},
	{
		"F2", "the fence accepts a context without a batch",
		"batchOf", "ErrNoBatch",
		"nil",
		"TestConformance",
	},
	{
		"F3", "a release does not wait for a fenced transaction",
		"dialect", " FOR SHARE OF q",
		" ",
		"TestConformance",
	},
	{
		"F4", "a cursor is saved under an old epoch",
		"HoldByWriting", "`+ofOwner+settings",
		"`+ofTask+` AND queue_id = ? AND (cur_server = ? OR epoch <> ?)`+settings",
		"TestConformance",
	},
	{
		"F5", "an unknown commit is run again",
		"CommitError", `return fmt.Errorf("%w: %w", ErrUnknownCommit, err)`,
		`return fmt.Errorf("commit: %w", err)`,
		"TestUnknownCommit",
	},
	{
		"F6", "a fenced transaction has no limit",
		"fenceSettings", "if f.IdleTxTimeout <= 0 ||",
		"if f.IdleTxTimeout >= 0 ||",
		"TestHostVanishesInsideAFencedTransaction/postgres",
	},
	{
		"F6", "a shorter limit of PostgreSQL is replaced",
		"atMost", "` + span + ` > interval '0' AND",
		"` + span + ` < interval '0' AND",
		"TestPostgresKeepsAShorterIdleLimit",
	},
	{
		"F6", "a shorter limit of MariaDB is replaced",
		"atMost", "@@%[2]s > 0 AND",
		"@@%[2]s < 0 AND",
		"TestMySQLKeepsAShorterIdleLimit",
	},
	{
		"F7", "sessions on Galera do not wait for the cluster",
		"Connect", "return c.waiting.Connect(ctx)",
		"return c.Connector.Connect(ctx)",
		"TestSessionsOnGaleraWait",
	},
	{
		"F7", "a server is gone although its heartbeat reached a node that lags",
		"confirmGone", "if rows > 0 {",
		"if rows < 0 {",
		"TestHeartbeatOnANodeThatLags",
	},
	{
		"F8", "a group with several primaries is accepted",
		"writers", "known && !isOn(mode)",
		"known && mode == \"\"",
		"TestServersThatSeveralWritersShare",
	},
	{
		"F8", "another product passes for PostgreSQL or MySQL",
		"Refuse", "if strings.Contains(strings.ToLower(text), vendor.Word) {",
		"if strings.ToLower(text) == vendor.Word {",
		"TestOtherProductsThanPostgreSQLAreRefused",
	},
	{
		"F8", "a product that nobody knows passes for PostgreSQL",
		"checkVendor", "case !genuine.MatchString(says):",
		"case !genuine.MatchString(says) && err != nil:",
		"TestOtherProductsThanPostgreSQLAreRefused",
	},
	{
		"F2", "a fence in another roster passes for a lost queue",
		"owned", "return b.rows().Check(ctx, b.Queues) == nil",
		"return b.rows().Check(ctx, b.Queues) != nil && ctx.Err() != nil",
		"TestFenceInAnotherRoster",
	},
	{
		"F9", "a pool of the program is not asked",
		"checkPool", "if db == c.db.Dealers || c.ownPools.isFit(db) {",
		"if db != nil {",
		"TestUnfitPools",
	},
	{
		"F10", "a dealer waits for a frozen server for ever",
		"ReplyLimit", "return max(o.ReplyTimeout, 0)",
		"return 0",
		"TestAFrozenWayStopsNoQueue",
	},
}
