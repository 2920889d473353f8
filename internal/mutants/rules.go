package main

import "slices"

// mutants break the rules of docs/protocol.md, about one mutant for each rule, and then the guarantees without a rule
// that would hurt most. Each group has a file: rules_plan.go and so on.
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
