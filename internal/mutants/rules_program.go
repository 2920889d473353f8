package main

// programMutants break what programs of other languages rely on.
var programMutants = []mutant{
	{
		"F12", "a program of SQLite gets a function of ours",
		"Statement", "cmp.Or(f.DB.PlainNow, `{now}`)",
		"cmp.Or(`{now}`, f.DB.PlainNow)",
		"TestProgramFence/sqlite",
	},
	{
		"", "what a program has started outlives it",
		"killGroup", "syscall.Kill(-cmd.Process.Pid,",
		"syscall.Kill(cmd.Process.Pid,",
		"TestKilledWithItsChildren",
	},
	{
		"", "a reply lacks a row, which counts as done",
		"outcome", "if open[item.Key] {",
		"if open[item.Key] && len(items) == 0 {",
		"TestReply",
	},
	{
		"", "a cursor passes rows that a program has not done",
		"callProgram", "d.cursor != nil && len(marked) < len(rows)",
		"d.cursor != nil && len(marked) > len(rows)",
		"TestProgramWithCursor",
	},
	{
		"", "a program is believed that it is fenced",
		"checkFenced", "func(*sql.Tx) error { return nil }); err != nil {",
		"func(*sql.Tx) error { return center.ErrFenced }); err != nil {",
		"TestProgramFence/sqlite",
	},
	{
		"", "a program sees the passwords of the worker",
		"Select", "Passed(name) || slices.Contains(named, name)",
		`name != ""`,
		"TestProgramFindsNoSecrets",
	},
	{
		"", "a signature does not cover the time",
		"Signature", `timestamp+"."`,
		`"."`,
		"TestSignature",
	},
}
