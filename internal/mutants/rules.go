package main

import "slices"

// mutants break the rules of docs/protocol*.md, about one mutant for each rule, and then the guarantees without a rule
// that would hurt most. Each group has a file: rules_plan.go and so on.
//
// Some lines have no mutant, because other rules cover them: nothing goes wrong without them. S2, queues that are read
// before their version: the reply to a heartbeat is compared by counts and sums, too, and a release for an earlier
// requester is rejected. S6, a fresh read before work resumes: while the row is there, no other server has taken a queue,
// and the retired epochs are known. S6, a heartbeat that inserts its row again: heartbeats from the future count as dead,
// and the epochs have risen meanwhile. H7, a comparison because of a view: a server reads its rows after a heartbeat,
// which is lost, too. H8, no release below the floor: a plan raises the row before, unless a transaction holds it.
var mutants = slices.Concat(planMutants, loadMutants, lockMutants, serverMutants, handoverMutants, fenceMutants, programMutants, processMutants, runMutants,
	otherMutants)

// otherMutants break guarantees without a rule.
var otherMutants = []mutant{
	{
		"", "settings overwrite a concurrent change",
		"writeSettings", "WHERE task_type = ? AND version = ?`",
		"WHERE task_type = ? AND version <> -?`",
		"TestConformance",
	},
	{
		"", "a mistyped URL creates a roster",
		"openConnection", "Schema: center.SchemaRequire",
		"Schema: center.SchemaCreate",
		"TestCommandsWithoutSchema",
	},
	{
		"", "a deletion without confirmation",
		"Confirm", "if !CanAsk(cmd) {",
		"if !CanAsk(cmd) {\n\t\treturn nil\n\t}\n\tif false {",
		"TestDeletingNeedsYes",
	},
	{
		"", "statements are prepared behind a connection pooler",
		"direct", "return err == nil && ",
		"return err == nil || ",
		"TestNoStatementIsPreparedBehindAProxy",
	},
	{
		"", "a migration has no more time than a heartbeat",
		"Brief", "return r == RoleStore ",
		"return r != RoleDealers || r == RoleStore ",
		"TestMigrationsHaveNoTimeout",
	},
	{
		"", "newer rows of others hide all rows that a person may see",
		"load", "len(all) < l.limit || len(rows) == len(all) {",
		"len(all) < l.limit || len(rows) <= len(all) {",
		"TestRowsOfOthersHideNone",
	},
	{
		"", "a certificate that is missing is an outage",
		"ofNetwork", "ok && e.Timeout() {",
		"ok && e != nil {",
		"TestUnreachableErrors",
	},
	{
		"", "a connection that is reset is no outage",
		"broken", "syscall.ECONNRESET, ",
		"",
		"TestErrorsOfTheNetwork",
	},
	{
		"", "a password that is refused is an outage",
		"classes", `"57P05": sqldb.Broken,`,
		`"57P05": sqldb.Broken, "28P01": sqldb.Broken,`,
		"postgres.TestErrorClasses",
	},
	{
		"", "a worker ends if the database is lost while it looks for the tables",
		"open", "g.reach(ctx, g.tables)",
		"g.tables(ctx)",
		"TestOpenWaits -timeout 60s",
	},
	{
		"", "settings are written although the number of queues is refused",
		"applySettings", "case !d.Repartitions():",
		"case !d.Repartitions() || len(d.Changes) > 0:",
		"TestApplyWritesAllOrNothing",
	},
	{
		"", "a file that is refused leaves tables behind",
		"open", "if c.options.BeforeTables != nil {",
		"if err := g.tables(ctx); err != nil {\n\t\treturn err\n\t}\n\tif c.options.BeforeTables != nil {",
		"TestARefusedStatementLeavesNoTables",
	},
	{
		"", "a pool stays with an old primary that is read-only",
		"leave", "_ = c.Close()",
		"_ = c",
		"TestThePoolLeavesAReadOnlyServer",
	},
	{
		"", "a MySQL that goes down refuses for good",
		"classes", "1053: sqldb.Broken",
		"1053: sqldb.Refused",
		"mysql.TestErrorClasses",
	},
	{
		"", "a page with a huge number panics",
		"pageOf", "min(n, lastPage)",
		"n",
		"TestPageNumbersBeyondAll",
	},
}
