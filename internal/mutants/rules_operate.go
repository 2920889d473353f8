package main

// operateMutants are the rules of what operators see and do.
var operateMutants = []mutant{
	{
		"operate: settings written over another's change", "center/apply.go",
		"WHERE task_type = ? AND version = ?`, append(args, l.taskType, version)...)", "WHERE task_type = ?`, append(args, l.taskType)...)",
		"./center -run Conformance$",
	},
	{
		"operate: settings of which nobody is told", "center/apply.go",
		", version = version + 1, gmt_modified", ", gmt_modified", "./center -run Conformance$",
	},
	{
		"operate: another limit without a plan", "center/apply.go",
		"SET membership_version = membership_version + 1 WHERE", "SET membership_version = membership_version WHERE", "./center -run Conformance$",
	},
	{
		"operate: what the file leaves open stays as it is", "center/apply.go",
		"if rows[i].Value != w.Value {", "if rows[i].Value != w.Value && w.Text != \"0\" {", "./center -run Conformance$",
	},
	{
		"operate: a task type deleted under the living", "center/delete.go",
		"if live > 0 {", "if live < 0 {", "./center -run Conformance$",
	},
	{
		"operate: a deleted task type comes back paused", "center/delete.go",
		"SET paused = ? WHERE", "SET paused = (paused AND NOT ?) WHERE", "./center -run Conformance$",
	},
	{
		"operate: a plan that counts on the dead", "center/preview.go",
		"s.state == stateStops || p.overdue(s)", "s.state == stateStops", "./center -run Conformance$",
	},
	{
		"operate: a plan's minimum of nothing", "internal/plan/plan.go",
		"\t\tmoves += missing\n", "\t\tmoves += missing * 0\n", "./internal/plan",
	},
	{
		"operate: queue 10 before queue 2", "center/inspect_queue.go",
		"\tsortQueues(list)\n", "", "./center -run Conformance$",
	},
	{
		"operate: a status unlike the view's", "center/inspect_queue.go",
		"WHEN c.uuid IS NULL OR c.task_type", "WHEN c.uuid IS NULL AND c.task_type", "./center -run Conformance$",
	},
	{
		"operate: a stalled dealer is not seen", "center/doctor_roster.go",
		"s.Overdue || *s.OldestInHandAge < after.Seconds()", "s.Overdue || true", "./center -run Conformance$",
	},
	{
		"operate: rights are not looked at", "center/doctor_database.go",
		"verbs = append(verbs, verb)", "", "./cmd/rota -run Rights",
	},
	{
		"operate: a question per queue", "center/inspect_server.go",
		"\t\tlist[i].reckon()\n", "\t\tlist[i].reckon()\n\t\t_, _ = c.clock(ctx)\n", "./center -run QuestionsAreFew",
	},
	{
		"operate: problems without an exit code", "cmd/rota/doctor.go",
		"return problems(findings)", "return nil", "./cmd/rota -run Doctor",
	},
	{
		"operate: deleting without a yes", "cmd/rota/confirm.go",
		"if !ok || !isTerminal(in) {", "if !ok || !isTerminal(in) {\n\t\treturn nil\n\t}\n\tif false {", "./cmd/rota -run Deleting|ApplyQueues",
	},
	{
		"operate: a mistyped URL makes a roster", "cmd/rota/roster.go",
		"Schema: center.SchemaRequire", "Schema: center.SchemaCreate", "./cmd/rota -run CommandsWithout",
	},
	{
		"operate: a dry run that writes", "cmd/rota/task_apply.go",
		"if !a.dryRun {", "if a.path != \"\" {", "./cmd/rota -run Apply",
	},
	{
		"operate: colours in a pipe", "cmd/rota/screen.go",
		"\t\treturn screen{}\n", "\t\treturn screen{color: true}\n", "./cmd/rota -run Lists|Watch",
	},
	{
		"operate: short uuids in a pipe", "cmd/rota/render.go",
		"if s.width > 0 && g.width() > s.width {", "if g.width() > s.width {", "./cmd/rota -run Lists|Fit",
	},
	{
		"operate: SIGINT kills a watch", "cmd/rota/watch.go",
		"signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)", "signal.NotifyContext(ctx, os.Kill, syscall.SIGTERM)",
		"./cmd/rota -run Watch",
	},
}

func init() { mutants = append(mutants, operateMutants...) }
