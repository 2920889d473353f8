package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/cmd/rota/internal/environ"
	"github.com/dutyrota/rota/schema"
)

// runAsRota makes the test binary run as the command, so that tests start real
// processes without a second build.
const runAsRota = "ROTA_TEST_BE_ROTA"

func TestMain(m *testing.M) {
	if err := environ.Restore(); err != nil { // it may be a worker that has hidden its environment, which says so
		panic(err)
	}
	if os.Getenv(runAsRota) != "" {
		main()
	}
	os.Exit(m.Run())
}

// rota prepares a process in dir without the ROTA_* of our environment.
func rota(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Dir = dir
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "ROTA_") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	cmd.Env = append(cmd.Env, runAsRota+"=1", "GORACE=atexit_sleep_ms=0") // the race detector sleeps a second by default
	return cmd
}

// runRota runs a command to its end.
func runRota(t *testing.T, dir string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := rota(ctx, dir, args...)
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return out.String(), err.String(), cmd.ProcessState.ExitCode()
}

const goodDealer = `
    dealer:
      sql:
        select: SELECT id FROM orders WHERE state = 'NEW' AND {{mine id}} ORDER BY id LIMIT {{limit}}
        execute: UPDATE orders SET state = 'SETTLED', settled_by = {{server}}, times = times + 1 WHERE state = 'NEW' AND id IN ({{keys}})
        key: id
`

// An empty argument is a variable of a script that has no value. rota run wait "" would wait for the newest run of all
// task types and report its success, and rota queue list "" would list all queues.
func TestEmptyArgumentIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "wait", ""}, "run wait: the argument RUN is empty (see rota run wait --help)"},
		{[]string{"run", "backfill", "show", ""}, "run backfill show: the argument BACKFILL is empty (see rota run backfill show --help)"},
		{[]string{"queue", "list", ""}, "queue list: the argument TASK is empty (see rota queue list --help)"},
		{[]string{"item", "drop", "settle", "--all", "--yes", "--queue", ""}, `invalid argument "" for "--queue" flag: it is empty (see rota item drop --help)`},
		{[]string{"run", "submit", "report", "--key", ""}, `invalid argument "" for "--key" flag: it is empty (see rota run submit --help)`},
		{[]string{"run", "submit", "report", "--after", ""}, `invalid argument "" for "--after" flag: it is empty (see rota run submit --help)`},
		{[]string{"item", "retry", "settle", "7", ""}, "item retry: the argument ITEM is empty (see rota item retry --help)"},
	} {
		_, stderr, code := runRota(t, t.TempDir(), append(c.args, "--database", "sqlite:rota.db")...)
		if want := "rota: " + c.want + "\n"; stderr != want || code != 2 {
			t.Errorf("rota %q: code %d, %swant %s", c.args, code, stderr, want)
		}
	}
}

// Bad input gives one line on stderr, nothing on stdout, and creates nothing.
func TestBadInput(t *testing.T) {
	t.Parallel()
	const head = "database: sqlite:rota.db\ntasks:\n  settle:\n    "
	for name, test := range map[string]struct {
		args string
		file string // rota.yaml
		code int
		want string // "..." stands for the rest of the line
	}{
		"unknown command":       {args: "worked", code: 2, want: `unknown command "worked" for rota (did you mean worker?)`},
		"unknown command, far":  {args: "xyz", code: 2, want: `unknown command "xyz" for rota (see rota --help)`},
		"nonsense":              {args: "foo", code: 2, want: `unknown command "foo" for rota (see rota --help)`},
		"letters swapped":       {args: "task lits", code: 2, want: `unknown command "lits" for rota task (did you mean list?)`},
		"unknown help":          {args: "help task lits", code: 2, want: `unknown command "lits" for rota task (did you mean list?)`},
		"too many shells":       {args: "completion bash zsh", code: 2, want: `completion bash: unexpected argument "zsh" (see rota completion bash --help)`},
		"unknown shell":         {args: "completion foo", code: 2, want: `unknown command "foo" for rota completion (see rota completion --help)`},
		"unknown subcommand":    {args: "migrate upp", code: 2, want: `unknown command "upp" for rota migrate (did you mean up?)`},
		"unknown task command":  {args: "task shows", code: 2, want: `unknown command "shows" for rota task (did you mean show?)`},
		"unknown flag":          {args: "worker --databse x", code: 2, want: "unknown flag: --databse (see rota worker --help)"},
		"flag without value":    {args: "worker -c", code: 2, want: "flag needs an argument: 'c' in -c (see rota worker --help)"},
		"argument":              {args: "worker rota.yaml", code: 2, want: `unknown command "rota.yaml" for rota worker (see rota worker --help)`},
		"no file":               {args: "worker -c absent.yaml", code: 2, want: "absent.yaml: no such file or directory"},
		"not YAML":              {args: "worker", file: "a: b: c", code: 2, want: "rota.yaml:1: not valid YAML: mapping values are not allowed in this context"},
		"unknown key":           {args: "worker", file: head + "queue: 1" + goodDealer, code: 2, want: "rota.yaml:4: tasks.settle.queue: unknown key; did you mean queues?"},
		"bad value":             {args: "worker", file: head + "queues: 1\n    drain_timeout: 30" + goodDealer, code: 2, want: "rota.yaml:5: tasks.settle.drain_timeout (30): must be a duration..."},
		"a rule between two":    {args: "worker", file: head + "queues: 1\n    judge_dead_interval: 8s" + goodDealer, code: 2, want: "rota.yaml:3: tasks.settle: judge_dead_interval (8s) must be at least 5 x heartbeat_interval (2s)"},
		"zero queues":           {args: "worker", file: head + "queues: 0" + goodDealer, code: 2, want: "rota.yaml:4: tasks.settle.queues (0): must be a number of at least 1, or a list of names"},
		"two of one name":       {args: "worker", file: head + "queues: 1" + goodDealer + "  settle: {queues: 2}", code: 2, want: "rota.yaml:10: tasks: settle is defined twice (first in line 3)"},
		"no tasks":              {args: "worker", file: "database: sqlite:rota.db", code: 2, want: "rota.yaml: tasks: must name at least one task type"},
		"no dealer":             {args: "worker", file: head + "queues: 1", code: 2, want: "rota.yaml: tasks.settle.dealer.sql is missing: give it select, execute and key"},
		"no such variable":      {args: "worker", file: head + "queues: 1" + goodDealer + "      command: [sh]\n      env: [NO_SUCH]\n", code: 2, want: `rota.yaml: tasks.settle.dealer.env (NO_SUCH): the environment has no such variable`},
		"the worker's variable": {args: "worker", file: head + "queues: 1" + goodDealer + "      command: [sh]\n      env: [ROTA_DATABASE]\n", code: 2, want: `rota.yaml:11: tasks.settle.dealer.env (ROTA_DATABASE): is the worker's own: give the program a variable of another name`},
		"a variable's value":    {args: "worker", file: head + "queues: 1" + goodDealer + "      command: [sh]\n      env: [A=b]\n", code: 2, want: `rota.yaml:11: tasks.settle.dealer.env (A=b): must be names of variables without their values, such as [SHOP, AWS_REGION]`},
		"env without a command": {args: "worker", file: head + "queues: 1" + goodDealer + "      env: [A]\n", code: 2, want: `rota.yaml:10: tasks.settle.dealer.env: needs command, the program that gets the variables`},
		"no such program":       {args: "worker", file: head + "queues: 1" + goodDealer + "      command: [no-such-program]\n", code: 2, want: `rota.yaml: tasks.settle.dealer.command: exec: "no-such-program": executable file not found in $PATH`},
		"a URL with a password": {args: "worker", file: head + "queues: 1" + goodDealer + "      http: https://u:secret@h/\n", code: 2, want: "rota.yaml: tasks.settle.dealer.http.url must have no user and no password: the log would show them; use a secret"},
		"no such secret":        {args: "worker", file: head + "queues: 1" + goodDealer + "      http: {url: https://h/, secret_file: absent}\n", code: 2, want: "rota.yaml: tasks.settle.dealer.http.secret_file (absent): no such file or directory"},
		"no CA":                 {args: "worker", file: head + "queues: 1" + goodDealer + "      http: {url: https://h/, ca_file: absent}\n", code: 2, want: "rota.yaml: tasks.settle.dealer.http.ca_file: open absent: no such file or directory"},
		"unknown placeholder":   {args: "worker", file: head + "queues: 1" + strings.Replace(goodDealer, "{{keys}}", "{{key}}", 1), code: 2, want: "rota.yaml: tasks.settle.dealer.sql.execute has the unknown placeholder {{key}}: known are {{keys}}, ..."},
		"newline in a name":     {args: "worker", file: "database: sqlite:rota.db\ntasks:\n  \"set\\ntle\":\n    queues: 1" + goodDealer, code: 2, want: `rota.yaml:3: tasks: task type ("set\ntle") must be printable, without white space around it`},
		"a long name":           {args: "worker", file: "database: sqlite:rota.db\ntasks:\n  " + strings.Repeat("a", 300) + ":\n    queues: 1" + goodDealer, code: 2, want: "rota.yaml:3: tasks: task type (..."},
		"a flag as a name":      {args: "worker", file: "database: sqlite:rota.db\ntasks:\n  -x:\n    queues: 1" + goodDealer, code: 2, want: `rota.yaml:3: tasks: task type ("-x") must not begin with -, as a flag of a command does`},
		"newline in a queue":    {args: "worker", file: head + "queues: [\"a\\nb\"]" + goodDealer, code: 2, want: `rota.yaml:3: tasks.settle: queue ("a\nb") must be printable, without white space around it`},
		"newline in own_sign":   {args: "worker", file: "own_sign: \"a\\nb\"\n" + head + "queues: 1" + goodDealer, code: 2, want: `rota.yaml:1: own_sign (a\nb): must have at most 50 bytes, and be printable, without white space around it`},
		"newline in a setting":  {args: "worker", file: head + "queues: 1\n    time_zone: \"a\\nb\"" + goodDealer, code: 2, want: `rota.yaml:3: tasks.settle: ...`},
		"newline in a key":      {args: "worker", file: "\"a\\nb\": 1\n" + head + "queues: 1" + goodDealer, code: 2, want: `rota.yaml:1: a\nb: unknown key; ...`},
		"an impossible port":    {args: "worker --http 127.0.0.1:99999", file: head + "queues: 1" + goodDealer, code: 2, want: "--http (127.0.0.1:99999): must be host:port, such as 127.0.0.1:9090, with a port of at most 65535"},
		"a folder as the file":  {args: "worker -c .", code: 2, want: ".: must be a regular file, not a directory"},
		"a folder as a secret":  {args: "worker --database-file .", file: head + "queues: 1" + goodDealer, code: 2, want: "--database-file (.): must be a regular file, not a directory"},
		"no database":           {args: "worker", file: "tasks:\n  settle:\n    queues: 1" + goodDealer, code: 2, want: "rota.yaml: database is missing: set it in the file, with --database or in ROTA_DATABASE"},
		"unknown URL scheme":    {args: "worker --database oracle://h/d", file: head + "queues: 1" + goodDealer, code: 2, want: `database URL: unknown scheme; want postgres://..., mysql://..., mariadb://... or sqlite:FILE`},
		"unreachable database":  {args: "worker --exit-on-unreachable --database postgres://u:secret@127.0.0.1:1/d", file: head + "queues: 1" + goodDealer, code: 1, want: "open postgres://u@127.0.0.1:1/d..."},
		"tables are missing":    {args: "worker --schema require", file: head + "queues: 1" + goodDealer, code: 1, want: `open sqlite:...`},
		"bad data database":     {args: "worker --data a=oracle://h/d", file: head + "queues: 1" + goodDealer, code: 2, want: `data.a: database URL: unknown scheme; want postgres://..., mysql://..., mariadb://... or sqlite:FILE`},
		"no such data database": {args: "worker", file: head + "queues: 1\n    database: a" + goodDealer, code: 2, want: "rota.yaml:5: tasks.settle.database (a): names a, and there is no data"},
		"data without a name":   {args: "data list --database sqlite:rota.db --data postgres://app:secret@h/d", code: 2, want: "--data must be NAME=URL, such as orders=postgres://app@db2/shop"},
		"migrate data, scheme":  {args: "migrate up --database sqlite:rota.db --data a=x", code: 2, want: "data.a: database URL: no scheme; ..."},
		"migrate what":          {args: "migrate up", code: 2, want: "database is missing: set it in the file, with --database or in ROTA_DATABASE"},
		"migrate, no folder":    {args: "migrate up --database sqlite:/absent/r.db", code: 1, want: "sqlite:/absent/r.db: cannot connect: unable to open database file (14): there is no folder /absent"},
		"migrate, no such file": {args: "migrate up -c absent.yaml", code: 2, want: "absent.yaml: no such file or directory"},
		"migrate, bad scheme":   {args: "migrate status --database oracle:x", code: 1, want: `database URL: no scheme; want postgres://..., mysql://..., mariadb://... or sqlite:FILE`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if test.file != "" {
				writeFile(t, filepath.Join(dir, "rota.yaml"), test.file)
			}
			stdout, stderr, code := runRota(t, dir, strings.Fields(test.args)...)
			line, cut := strings.CutSuffix(test.want, "...")
			switch {
			case !strings.HasPrefix(stderr, "rota: "+line), !cut && stderr != "rota: "+line+"\n":
				t.Errorf("stderr is\n%swant\nrota: %s", stderr, test.want)
			case strings.Count(stderr, "\n") != 1:
				t.Errorf("more than one line:\n%s", stderr)
			case stdout != "" || code != test.code:
				t.Errorf("exit code %d, want %d; stdout %q", code, test.code, stdout)
			}
			if _, err := os.Stat(filepath.Join(dir, "rota.db")); err == nil {
				t.Error("a database was created")
			}
		})
	}
}

// A worker reports all mistakes of a file at once: those of its settings, and those of the statements of each dealer
// that could be read. What follows from a mistake is no mistake.
func TestWorkerReportsAllMistakesOfAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bad := strings.NewReplacer("{{limit}}", "{{limt}}", "{{keys}}", "{{key}}").Replace(goodDealer)
	task := func(name, rest string) string { return "  " + name + ":\n    queues: 1" + rest }
	writeFile(t, filepath.Join(dir, "rota.yaml"), "database: oracle://h/d\nhtp: 1\ntasks:\n"+task("settle", "\n    drain_timeout: 30"+bad)+
		task("unread", strings.Replace(bad, "key: id", "keys: id", 1))+task("moody", "\n    mode: RUNN"+bad))
	for args, want := range map[string][]string{
		"worker": {
			"rota.yaml:2: htp: unknown key", "rota.yaml:6: tasks.settle.drain_timeout (30)", "rota.yaml:19: tasks.moody: mode (",
			"rota.yaml:18: tasks.unread.dealer.sql.keys: unknown key", "database URL: unknown scheme",
		},
		"worker --database sqlite:rota.db": {
			"rota.yaml:2: htp: unknown key", "rota.yaml:6: tasks.settle.drain_timeout (30)", "rota.yaml:19: tasks.moody: mode (",
			"rota.yaml:18: tasks.unread.dealer.sql.keys: unknown key",
			"rota.yaml: tasks.settle.dealer.sql.select has the unknown placeholder {{limt}}",
			"rota.yaml: tasks.settle.dealer.sql.execute has the unknown placeholder {{key}}",
		},
	} {
		_, stderr, code := runRota(t, dir, strings.Fields(args)...)
		for _, w := range want {
			if !strings.Contains(stderr, "rota: "+w) {
				t.Errorf("rota %s: want %s, got\n%s", args, w, stderr)
			}
		}
		if n := strings.Count(stderr, "\n"); code != 2 || n != len(want) {
			t.Errorf("rota %s: exit code %d and %d lines, want 2 and %d:\n%s", args, code, n, len(want), stderr)
		}
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"", "--help", "migrate", "worker --help", "migrate up --help"} {
		stdout, stderr, code := runRota(t, t.TempDir(), strings.Fields(args)...)
		if code != 0 || stderr != "" || !strings.Contains(stdout, "Usage:") || strings.Contains(stdout, "\x1b") {
			t.Errorf("rota %s: exit code %d, stderr %q, stdout\n%s", args, code, stderr, stdout)
		}
		for line := range strings.Lines(stdout) {
			if len(line) > 110 {
				t.Errorf("rota %s: a line of %d characters: %s", args, len(line), line)
			}
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	stdout, stderr, code := runRota(t, t.TempDir(), "version")
	want := fmt.Sprintf("\nschema %d, edition %s\ngo     go1.", schema.Latest(), schema.Edition())
	if code != 0 || stderr != "" || !strings.Contains(stdout, want) {
		t.Errorf("exit code %d, stderr %q, stdout\n%s", code, stderr, stdout)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
