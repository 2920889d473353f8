package main

// fenceMutants break the fence: rules F.
var fenceMutants = []mutant{
	{
		"F1", "the fence ignores the epoch",
		"compareOwner", "if !slices.Contains(rows, owned{q.ID, q.Epoch, sqldb.Text(f.Server)}) {",
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
		"F1", "a transaction goes on after an interrupt has ended it",
		"ended", "return within == nil",
		"return false",
		"TestInterruptThatEndsTheTransaction",
	},
	{
		"F1", "a transaction goes on after a deadlock has ended it",
		"leave", "if err != nil && c.inTx && c.of.Ended != nil && c.of.Ended(c.Conn, err) {",
		"if false {",
		"TestATransactionThatTheServerHasEnded",
	},
	{
		"F1", "a statement under the fence has its effect without the queue",
		"dialect", "CASE COUNT(*) WHEN 1 THEN 1",
		"CASE COUNT(*) WHEN COUNT(*) THEN 1",
		"TestConformance/postgres.*/exec_fenced",
	},
	{
		"F1", "a statement is executed without its fence",
		"ExecFenced", "err = InTx(ctx, db, execute(ctx, query, args))",
		"_, err = db.ExecContext(ctx, query, args...)",
		"TestConformance",
	},
	{
		"F1", "a statement is executed without its fence, after its process stood still",
		"ExecFenced", "err = InTx(ctx, db, execute(ctx, query, args))",
		"_, err = db.ExecContext(ctx, query, args...)",
		"TestScenarios/statement-of-a-process-that-stood-still",
	},
	{
		"F11", "a statement in a data database is executed without its fence",
		"ExecFenced", "return d.InTx(ctx, execute(ctx, query, args))",
		"_, err := d.DB().ExecContext(ctx, query, args...)\n\treturn err",
		"TestDataExecFenced",
	},
	{
		"F1", "a statement goes over a connection that a restart has closed",
		"Answering", "idle = ok && time.Since(c.usedAt) >= longIdle",
		"idle = ok && c.usedAt.IsZero()",
		"TestExecFencedAfterARestart",
	},
	{
		"F1", "a mark without a parameter reads one of the fence",
		"Guarded", `range strings.Count(head, "?") {`,
		"range 0 {",
		"TestExecFenced/postgres",
	},
	{
		"F1", "a SELECT is executed under the fence, where nobody reads it",
		"Guarded", `[]string{"INSERT",`,
		`[]string{"WITH", "INSERT",`,
		"TestExecFenced/postgres",
	},
	{
		"", "the statements of users are prepared, too",
		"prepares", "if ctx.Value(repeatedKey{}) == nil {",
		"if false {",
		"TestExecFencedIsPrepared",
	},
	{
		"F3", "the owner changes under a statement with its fence",
		"dialect", "<> '' FOR SHARE OF q), rota_work",
		"<> ''), rota_work",
		"TestConformance/postgres.*/exec_fenced",
	},
	{
		"F1", "the fence ignores the owner",
		"compareOwner", "if !slices.Contains(rows, owned{q.ID, q.Epoch, sqldb.Text(f.Server)}) {",
		"if !slices.ContainsFunc(rows, func(r owned) bool { return r.ID == q.ID && r.Epoch == q.Epoch }) {",
		"TestDataItemsChangeIsLost",
	},
	{
		"F2", "the fence accepts a context without a batch",
		"batchOf", "ErrNoBatch",
		"nil",
		"TestConformance",
	},
	{
		"F3", "a release does not wait for a fenced transaction",
		"dialect", `Share:      " FOR SHARE OF q"`, // PostgreSQL
		`Share: " "`,
		"TestConformance",
	},
	{
		"F3", "a release does not wait for a fenced transaction on MySQL",
		"dialect", `Share:         " FOR SHARE OF q"`,
		`Share: " "`,
		"TestConformance/mysql.*",
	},
	{
		"F4", "a cursor is saved under an old epoch",
		"statement", "` + where + ofOwner + settings",
		"` + where + ofTask + ` AND queue_id = ? AND (cur_server = ? OR epoch <> ?)` + settings",
		"TestConformance",
	},
	{
		"F4", "the cursor of a transaction that has failed counts as saved",
		"ended", "case err == nil && in == b.data:",
		"case !errors.Is(err, ErrUnknownCommit):",
		"TestConformance",
	},
	{
		"F4", "the cursor of a data database counts as saved by a transaction of the roster's",
		"ended", "case err == nil && in == b.data:",
		"case err == nil:",
		"TestDataCursorBesideTheRoster",
	},
	{
		"F4", "a batch moves the cursor from where it does not stand",
		"MoveCursor", "CursorStands+` AND `",
		"`TRUE IN (TRUE, `+CursorStands+`) AND `",
		"TestCursorIsSetBack",
	},
	{
		"F4", "the batch of a sweep moves the cursor from where it does not stand",
		"fenceRun", "AND epoch = ? AND `+roster.CursorStands",
		"AND epoch = ? AND TRUE IN (TRUE, `+roster.CursorStands+`)`",
		"TestConformance",
	},
	{
		"F5", "an unknown commit is run again",
		"CommitError", `return fmt.Errorf("%w: %w", ErrUnknownCommit, err)`,
		`return fmt.Errorf("commit: %w", err)`,
		"TestUnknownCommit",
	},
	{
		"F5", "a commit without a reply is not noted",
		"ended", "b.c.commits.note(b)",
		"",
		"TestCommitUnderWay",
	},
	{
		"F5", "a wait in vain is the last one",
		"asked", "of.held = true\n\t\tc.queues[key] = of",
		"delete(c.queues, key)",
		"TestCommitUnderWay",
	},
	{
		"F5", "nobody is told of a wait in vain",
		"asked", "of.held = true",
		"of.held = false",
		"TestCommitUnderWay",
	},
	{
		"F5", "a transaction whose COMMIT is under way passes for one that has ended",
		"End", "f.HoldByWriting(ctx, t.Raw, q)",
		"f.Check(ctx, q)",
		"TestCommitUnderWay",
	},
	{
		"F5", "a queue of a data database waits for no COMMIT in the roster's database",
		"EndCommits", "err = c.roster.Server(taskType, server).Fence().End(ctx, q)",
		"if of.data == nil {\n\t\terr = c.roster.Server(taskType, server).Fence().End(ctx, q)\n\t}",
		"TestRosterCommitOfADataQueueUnderWay",
	},
	{
		"F5", "a sweep loads its cursor while a COMMIT is under way",
		"checkCommitted", "_, err := b.env.Enter(b.ctx, queue, false)",
		"var err error",
		"TestSweepLoadsTheCursorAfterTheCommitHasEnded",
	},
	{
		"F5", "an item is discarded while its COMMIT is under way",
		"discardFailed", "ended || err != nil {",
		"ended && err != nil {",
		"TestNoDiscardWhileACommitIsUnderWay",
	},
	{
		"F5", "a queue is selected while its COMMIT is under way",
		"enter", "ended, err := s.roster.EndCommits(ctx, s.taskType, s.session.Load().uuid, epoch)",
		"ended, err := false, error(nil)",
		"TestFaults/postgres/commit-under-way",
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
		"atMost", "@@%[1]s > 0 AND",
		"@@%[1]s < 0 AND",
		"TestMariaDBKeepsAShorterIdleLimit",
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
		"F8", "a database that lacks an emoji is accepted",
		"probe", `case encoding != "UTF8":`,
		`case encoding == "":`,
		"TestOtherEncodingsAreRefused",
	},
	{
		"F2", "a fence in another roster passes for a lost queue",
		"passes", "return b.rows().Check(ctx, b.Queue, cursor) == nil",
		"return b.rows().Check(ctx, b.Queue) != nil && ctx.Err() != nil",
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
	{
		"F10", "a data database has the limit of a roster that is alone",
		"FenceIn", "o.ReplyLimit(true)",
		"o.ReplyLimit(false)",
		"TestDataLimitsStatementsOfDealers",
	},
	{
		"F12", "a program fences a data database with the roster's row",
		"FenceStatementOf", "rows = b.data.fence(b.TaskType, b.Server)",
		"_ = b.data",
		"TestDataFence",
	},
	{
		"F11", "the raise comes after the first select, seen by processes",
		"perform", prepareThenSelect,
		selectThenPrepare,
		"TestFaults/postgres/data-pause-before-commit",
	},
	{
		"F11", "a queue is selected although its database was not entered",
		"enter", "c.outside = err != nil\n\treturn err",
		"c.outside = err != nil\n\treturn nil",
		"TestQueueIsSelectedAfterItsDatabaseIsEntered",
	},
	{
		"F11", "the items stay in the rows that had them",
		"newItems", "if err := r.take(ctx, t, rows); err != nil {",
		"if err := r.take(ctx, t, nil); err != nil {",
		"TestDataItemsChangeTheirQueue",
	},
	{
		"F11", "a raise does not look again when it has the lock",
		"newItems", "err == nil && len(rows) > 0 {",
		"err == nil && len(rows) > 1000 {",
		"TestDataRaisesWaitForTheLock",
	},
	{
		"F11", "a cursor that cannot be read after the raise counts as read",
		"finishLocked", "} else if c.cursor.unknown {",
		"} else if c.cursor.unknown && c.err == nil {",
		"TestCursorIsLoadedAgainAfterTheRaise",
	},
	{
		"F11", "items of another division are compared by their numbers",
		"mayShare", "case i.Division != other.Division:",
		"case i.Division == \"\":",
		"TestItemsMayShare",
	},
	{
		"F11", "an earlier queue of the items may still raise its epoch",
		"mustBeBelow", "if row.Epoch < r.queue.Epoch {",
		"if row.Epoch < r.queue.Epoch || row.ID != r.queue.ID {",
		"TestDataLateRaise",
	},
	{
		"F11", "a named queue that is added again is not raised",
		"sameItems", " OR queue_total = 0)",
		")",
		"TestDataNameIsAddedAgain",
	},
	{
		"F11", "a queue is selected with other items than those that were raised",
		"sameItems", "case row.Ownership == Ownership{r.Server, r.queue.Epoch, r.items}:",
		"case row.Owner == r.Server && row.Epoch == r.queue.Epoch:",
		"TestDataItemsChangeIsLost",
	},
	{
		"L5", "a raise that waits for one queue holds the lock of all",
		"newItems", "if err := r.take(ctx, t, rows); err != nil {",
		"if err := cmp.Or(r.lockItems(ctx, t), r.take(ctx, t, rows)); err != nil {",
		"TestDataRaiseHoldsNoOtherRow/other_items/postgres",
	},
	{
		"F11", "a raise does not wait for earlier transactions",
		"holdByReading", "settings, f.DB.Share, params...)",
		"settings, map[string]string{queueTable: f.DB.Share}[f.Table], params...)",
		"TestDataRaiseWaitsForEarlierWrites/postgres",
	},
	{
		"F11", "the fence of a data database ignores the epoch",
		"compareOwner", "if !slices.Contains(rows, owned{q.ID, q.Epoch, sqldb.Text(f.Server)}) {",
		"if f.Table == queueTable && !slices.Contains(rows, owned{q.ID, q.Epoch, sqldb.Text(f.Server)}) || len(rows) == 0 {",
		"TestDataFence",
	},
	{
		"F11", "the fence of a data database accepts a missing row",
		"compareOwner", "if !slices.Contains(rows, owned{q.ID, q.Epoch, sqldb.Text(f.Server)}) {",
		"if !slices.Contains(rows, owned{q.ID, q.Epoch, sqldb.Text(f.Server)}) && (f.Table == queueTable || len(rows) > 0) {",
		"TestDataIsRestored",
	},
	{
		"F11", "an owner raises its first epoch only",
		"admit", "return d.entered[key] == own && !suspect, nil",
		"return d.entered[key].server == own.server && !suspect, nil",
		"TestDataFence",
	},
	{
		"F11", "a database that is another one by now is not asked for its id again",
		"forget", "d.checked.Store(false)",
		"_ = d.checked.Load()",
		"TestDataIsAnotherDatabase",
	},
	{
		"F11", "an owner does not raise again after a write was rejected",
		"Fence", "d.forget(b.TaskType, b.Queue)",
		"",
		"TestDataIsRestored",
	},
	{
		"F11", "two servers work under one epoch",
		"mustBeBelow", "if row.Epoch < r.queue.Epoch {",
		"if row.Epoch <= r.queue.Epoch {",
		"TestDataAheadOfTheRoster",
	},
	{
		"F11", "a data database that is ahead proves nothing",
		"enterData", "offer(s.ahead, *ahead)",
		"_ = ahead",
		"TestDataDatabaseAheadOfTheRoster",
	},
	{
		"F11", "a data database is blamed for an outage of the roster",
		"leave", "case roster.IsOfRoster(err), ctx.Err() != nil:",
		"case ctx.Err() != nil:",
		"TestDataIsNotBlamedForTheRoster",
	},
	{
		"F11", "the data database of another roster is accepted",
		"sameMark", "case got.ID != want.ID:",
		"case want.ID == \"\":",
		"TestDataHasAnID",
	},
	{
		"F11", "a data database without an id is accepted",
		"Mark", "if !found && !marked {",
		"if !found {",
		"TestDataHasAnID",
	},
	{
		"F11", "a server registers that has read another setting",
		"suits", "row.Database != s.Database",
		"row.Database == s.Database+s.UUID",
		"TestDatabaseChangesWithoutServers",
	},
	{
		"F11", "the database of queues changes under a server",
		"AtStart", `name == "database"`,
		`name == "databases"`,
		"TestDatabaseChangesWithoutServers",
	},
	{
		"F11", "the cursor is from before the raise",
		"enter", "changed && c.capabilities.Cursored",
		"changed && !c.capabilities.Cursored",
		"TestCursorIsLoadedAfterTheRaise",
	},
	{
		"F11", "a database that is away counts as an outage",
		"evidence", "c.outside || c.env.blames(c.err)",
		"c.env.blames(c.err)",
		"TestQueueIsSelectedAfterItsDatabaseIsEntered",
	},
	{
		"F11", "the cursors of one task type stop all others of the database",
		"leave", "case errors.Is(err, roster.ErrDataCursors):",
		"case err == nil:",
		"TestDataCursorsOfOneTaskType",
	},
	{
		"F11", "no backlog is counted while one data database is away",
		"at", "m.failing[s.Queue.Database].until",
		`m.failing["west"].until`,
		"TestBacklogOfTheOtherDataDatabases",
	},
	{
		"F11", "a cursor without a row of rota_fence stops its queue for ever",
		"Cursor", "d.forget(taskType, q)",
		"",
		"TestDataIsRestoredUnderACursor",
	},
	{
		"F11", "an owner that saves cursors without a fence does not raise again",
		"SaveCursor", "b.data.forget(b.TaskType, b.Queue)",
		"",
		"TestDataIsRestoredUnderACursor",
	},
	{
		"F11", "nobody is told that a database is away",
		"checkData", "if problem.Err != nil && len(works[d.Name()]) > 0 {",
		"if problem.Err != nil && problem.Since.IsZero() {",
		"TestDataDatabaseThatCannotBeUsed",
	},
	{
		"F11", "nobody is told that a worker has not opened the database of a queue",
		"checkData", `if name != "" && a.roster.Data(name) == nil {`,
		`if name == "?" {`,
		"TestDataDatabaseOfANewQueueIsNotOpened",
	},
	{
		"F11", "all executors wait for a database that is away",
		"admit", "case d.trying, time.Now().Before(d.retryAt):",
		"case d.trying && false:",
		"TestDataThatCannotBeUsed",
	},
	{
		"F11", "a raise waits for a database that does not answer",
		"Enter", "f.Raise(short, ",
		"f.Raise(ctx, ",
		"TestDataThatDoesNotAnswer/postgres",
	},
	{
		"F11", "a fenced transaction waits again and again",
		"InTx", "return clean && !silent, err",
		"return clean && (silent || !silent), err",
		"TestDataThatDoesNotAnswer/postgres",
	},
}

// prepareThenSelect are the first steps of a select, and selectThenPrepare are the same in the wrong order.
const (
	prepareThenSelect = `	if err := c.prepare(); err != nil {
		return err
	}
	if err := c.ctx.Err(); err != nil { // revoked while it was prepared
		return err
	}
	list, err := c.selectItems()
	if err != nil {
		return err
	}
`
	selectThenPrepare = `	list, err := c.selectItems()
	if err != nil {
		return err
	}
	if err := c.prepare(); err != nil {
		return err
	}
`
)
