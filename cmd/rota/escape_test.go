package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/records"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/runs"
)

// hostile starts as a formula, sets a terminal's title, clears it, returns the cursor and reverses what follows.
const hostile = "=\x1b]0;x\x07\u009b2J\x7f\r\t\u202e\u2028\u200b"

// hostileColumns are the columns that hold free text, by table. Other columns hold words and numbers of the program.
var hostileColumns = map[string]string{
	"schedule_task_type":      "task_type task_parameter",
	"schedule_task_running":   "task_type last_assign_server",
	"schedule_task_after":     "task_type upstream",
	"schedule_server":         "uuid task_type ip host_name last_error library_version",
	"schedule_server_history": "uuid task_type ip host_name last_error library_version",
	"schedule_queue":          "task_type queue_id cur_server req_server queue_parameter cursor_value",
	"schedule_queue_setting":  "task_type queue_id labels",
	"schedule_data":           "name address",
	"schedule_event":          "task_type queue_id from_server to_server reason actor",
	"schedule_failed_item":    "task_type item_key queue_id last_error",
	"schedule_trigger":        "name target params message",
	"schedule_run":            "task_type run_key trigger_name params trace_parent message",
	"schedule_submission":     "task_type run_key request",
	"schedule_backfill":       "task_type trigger_name params message actor",
	"schedule_run_queue":      "queue_id server cursor_value last_error",
	"schedule_run_item":       "queue_id item_key last_error",
	"schedule_backlog":        "task_type queue_id",
}

// newHostileRoster returns a roster with rows in all tables, whose texts all start with hostile.
func newHostileRoster(t *testing.T, url string) *testRoster {
	t.Helper()
	s := newTestRoster(t, url)
	s.runs()
	s.serve("extract", web3)
	s.sweep("extract", web3, "0")
	_, err := s.c.Engine().Backfills.Start(t.Context(), runs.BackfillRange{TaskType: "extract", From: time.Date(2025, 3, 28, 0, 0, 0, 0, time.UTC)}, "x")
	s.must(err)
	s.exec(`INSERT INTO schedule_failed_item (task_type, item_hash, item_key, queue_id, state) VALUES ('settle', 'h', 'k', '0', 'DEAD')`)
	s.exec(`INSERT INTO schedule_run_item (run_id, queue_id, item_no, item_key, attempt, failed_at)
		SELECT run_id, '0', 1, 'k', 1, '2026-01-01 00:00:00.000000' FROM schedule_run WHERE task_type = 'extract'`)
	s.exec(`INSERT INTO schedule_data (name, data_id, address) VALUES ('orders', 'x', 'sqlite:orders.db')`)
	s.exec(`INSERT INTO schedule_server_history (uuid, task_type, register_time, heartbeat_time, reason)
		SELECT 'gone:1:00000001', task_type, register_time, heartbeat_time, 'EXPIRED' FROM schedule_server WHERE uuid = '` + web1 + `'`)
	for table, columns := range hostileColumns {
		var set []string
		for column := range strings.FieldsSeq(columns) {
			set = append(set, column+" = CASE WHEN "+column+" IS NOT NULL THEN CONCAT('"+hostile+"', "+column+") END")
		}
		s.exec("UPDATE " + table + " SET " + strings.Join(set, ", "))
	}
	return s
}

// hostileCommands are the arguments of each command that reads the database. TASK, RUNTASK, WORKER, QUEUE, TRIGGER and
// RUN stand for names in it. The commands that change something come last, in an order in which each has something to
// change.
var hostileCommands = []string{
	"migrate status", "migrate up",
	"task list", "task list TASK", "task show TASK", "task show RUNTASK", "task show RUNTASK -o yaml", "task wait TASK --timeout 1ms", "task wait nope",
	"data list", "queue list", "queue list TASK --host =", "worker list", "worker list --gone", "worker list TASK",
	"item list", "item list TASK --queue QUEUE", "item list --run RUN", "event list", "event list --worker WORKER",
	"run list", "run show RUN", "run show RUNTASK", "run wait RUN --timeout 1ms", "run wait nope",
	"run backfill list", "run backfill show RUNTASK", "run backfill RUNTASK --from 2025-03-28 --dry-run",
	"trigger list", "plan TASK", "plan TASK --remove WORKER", "plan TASK --add 2", "plan TASK --by-load", "plan nope", "doctor", "doctor TASK", "doctor ack", "top --once",
	"version",
	"task apply", "task set TASK fetch_number=7 task_parameter=\x1bp", "task pause TASK", "task resume TASK", "task wake TASK", "task wake TASK \x1bk",
	"queue add TASK a\x1bb", "queue pin TASK QUEUE zone=\x1bb", "queue pin TASK QUEUE zone=b", "queue unpin TASK QUEUE", "queue split TASK QUEUE", "queue merge TASK QUEUE", "queue set TASK QUEUE --weight \x1b", "queue set TASK QUEUE --weight 2", "queue remove TASK QUEUE --yes", "queue remove TASK QUEUE",
	"worker pause WORKER", "worker resume WORKER", "worker drain WORKER", "worker drain WORKER --force", "worker weight WORKER 1", "worker pause web",
	"item retry TASK \x1bk", "item retry TASK --all", "item drop TASK --all --yes", "item drop TASK --all",
	"run submit RUNTASK", "run submit RUNTASK --key \x1bk", "run submit TASK",
	"run backfill pause RUNTASK", "run backfill resume RUNTASK", "run backfill cancel RUNTASK", "run backfill RUNTASK --from 2025-03-28 --to 2025-03-29",
	"run pause RUN", "run resume RUN", "run cancel RUN", "run ack RUN", "run rerun RUN", "run depend RUN RUN",
	"trigger apply TRIGGER --task RUNTASK --every 1h --dry-run", "trigger apply TRIGGER --task RUNTASK --every 1h", "trigger apply new --task RUNTASK --every 1h",
	"trigger pause TRIGGER", "trigger resume TRIGGER", "trigger fire TRIGGER", "trigger delete TRIGGER", "trigger delete TRIGGER --yes",
	"task delete TASK", "task delete TASK --yes",
	"__complete task show ", "__complete worker drain ", "__complete run show ", "__complete run backfill show ", "__complete item retry TASK ", "__complete trigger fire ", "__complete queue list --host ",
}

// notSwept are the commands that the sweep leaves out: they show a roster of their own, or nothing of the database.
var notSwept = []string{"console", "console password", "demo", "witness", "worker", "worker check", "completion bash", "completion fish", "completion powershell", "completion zsh", "help", "man"}

// sweepArgs returns the arguments of a command of hostileCommands.
func sweepArgs(command, url string) (args []string) {
	names := map[string]string{
		"TASK": hostile + "settle", "RUNTASK": hostile + "extract", "WORKER": hostile + web1, "QUEUE": hostile + "0", "TRIGGER": hostile + "nightly", "RUN": hostile + "extract",
	}
	for word := range strings.SplitSeq(command, " ") {
		if name, ok := names[word]; ok {
			word = name
		}
		args = append(args, word)
	}
	if args[0] == "version" {
		return args
	}
	if args[0] == "__complete" {
		return slices.Insert(args, len(args)-1, "--database", url)
	}
	return append(args, "--database", url)
}

// No output of any command has a control, format or bidi character of the database.
func TestNoCommandPrintsHostileText(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newHostileRoster(t, url)
		s.file("  settle: {queues: 4}\n  push: {queues: 1}\n")
		shown := 0
		for _, command := range hostileCommands {
			for _, format := range []string{"", "-o=csv", "-o=json"} {
				args := sweepArgs(command, url)
				if format != "" {
					if !hasOutputFlag(command) {
						continue
					}
					args = append(args, format)
				}
				if command == "task apply" {
					args = append(args, "-f", s.dir+"/rota.yaml")
				}
				var stdout, stderr bytes.Buffer
				run(args, &stdout, &stderr)
				out := stdout.String() + stderr.String()
				if out == "" && !strings.HasPrefix(command, "task ") {
					t.Errorf("rota %s %s: no output", command, format)
				}
				if format == "-o=json" || format == "" && strings.HasSuffix(command, "-o yaml") {
					out = controlOnly(out)
				}
				if strings.HasPrefix(command, "__complete ") {
					out = strings.ReplaceAll(out, "\t", " ") // cobra separates a value from its description with a tab
				}
				if escape.Lines(out) != out {
					t.Errorf("rota %s %s: %s", command, format, escape.Lines(out))
				}
				if strings.Contains(out, `\x1b]0;x`) {
					shown++
				}
			}
		}
		if shown < len(hostileCommands)/2 {
			t.Errorf("only %d outputs show a hostile text", shown)
		}
	})
}

// controlOnly drops from JSON and YAML what these do not escape. A program reads it, not a terminal.
func controlOnly(doc string) string {
	return strings.Map(func(r rune) rune {
		if r > 0x7e {
			return -1
		}
		return r
	}, doc)
}

func hasOutputFlag(command string) bool {
	cmd, _, err := newRootCommand().Find(strings.Fields(command))
	return err == nil && cmd.Flags().Lookup("output") != nil
}

// The sweep runs each command.
func TestSweepIsComplete(t *testing.T) {
	t.Parallel()
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			check(sub)
		}
		path := strings.TrimPrefix(cmd.CommandPath(), "rota ")
		swept := slices.ContainsFunc(hostileCommands, func(c string) bool { return c == path || strings.HasPrefix(c, path+" ") })
		if !cmd.HasSubCommands() && !swept && !slices.Contains(notSwept, path) {
			t.Errorf("the sweep leaves out: rota %s", path)
		}
	}
	check(newRootCommand())
}

// A cell that a spreadsheet would take for a formula starts with an apostrophe.
func TestCSVHasNoFormulas(t *testing.T) {
	t.Parallel()
	type record struct {
		A string   `json:"a"`
		B []string `json:"b"`
		C float64  `json:"c"`
	}
	var out bytes.Buffer
	if err := records.WriteCSV(&out, []record{
		{"=1+1", []string{"+x", "y"}, -1.5},
		{"-1", nil, 0},
		{"@SUM(1)", nil, 1},
		{"\t=1", nil, 1},
		{"\r=1", nil, 1},
		{"\n=1", nil, 1},
		{"＝1", nil, 1},
		{`a;=1`, []string{"x", "=y"}, 1},
		{`say "=1", twice`, nil, 1},
		{"a-b=c", nil, 1},
	}, true); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"a,b,c", `'=1+1,'+x y,-1.5`, `'-1,,0`, `'@SUM(1),,1`, `'\t=1,,1`, `'\r=1,,1`, "\"'\n=1\",,1", `'＝1,,1`,
		`"a;=1",x =y,1`, `"say ""=1"", twice",,1`, "a-b=c,,1", "",
	}, "\n")
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
