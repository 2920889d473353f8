package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"go.uber.org/goleak"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/runs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const whole = `
database: postgres://app@db/shop?sslmode=verify-full
own_sign: 007
http: 127.0.0.1:9090
schema: require
tasks:
  Settle:
    queues: 8
    processor_type: SLEEP
    heartbeat_interval: 1s
    judge_dead_interval: 1m
    thread_number: 3
    fetch_number: 1_000
    execute_number: 100
    sleep_time_nodata: 250ms
    sleep_time_interval: 0
    task_parameter: 2026
    max_queues_per_server: 4
    max_servers: 20
    max_servers_per_host: 3
    max_in_flight: 7
    drain_timeout: 90s
    item_retry: 2s
    item_retry_max: 10m
    mode: RUN
    queue_max_attempts: 4
    queue_retry: 45s
    max_recoveries: 6
    run_timeout: 4h
    run_start_timeout: 90m
    coalesce: true
    cron: 0 0 2 * * ?
    time_zone: Europe/Berlin
    after: [extract, 'load': FINISHED]
    dealer:
      sql: &sql
        select: SELECT id FROM orders LIMIT {{limit}}
        execute: UPDATE orders SET state = 1 WHERE id IN ({{keys}})
        key: id
  push:
    queues: [north, south]
    dealer: {sql: *sql}
  sum:
    queues: 1
    dealer:
      sql:
        cursor: [xid, id]
        cursor_start: [0, 0]
        cursor_lag: 5m
        cursor_newest: SELECT max(xid) FROM sales
        commits_in_order: true
  tail:
    queues: 1
    dealer: {sql: {cursor: id, cursor_start: 0, after_start: [a, 1], key: [region, id], discard: DELETE FROM orders}}
  call:
    queues: 1
    dealer: {sql: *sql, command: [python3, settle.py]}
  list:
    queues: 1
    mode: RUN
    dealer: {command: [./list], answers: [select]}
  post:
    queues: 1
    dealer: {sql: *sql, http: {url: 'https://h/', secret_file: s, secret_variable: '', ca_file: c, connections: 3, each: true, method: PUT, headers: {A: 1, B: '{{b}}'}, body: '{}', permanent: [404, 410]}}
`

var wholeSQL = SQLDealer{
	Select:  "SELECT id FROM orders LIMIT {{limit}}",
	Execute: "UPDATE orders SET state = 1 WHERE id IN ({{keys}})",
	Key:     []string{"id"},
}

// wholeFile returns what Load reads from the text whole.
func wholeFile() *File {
	return &File{
		Connection: Connection{
			Database: "postgres://app@db/shop?sslmode=verify-full",
			Options:  center.Options{OwnSign: "007", Schema: center.SchemaRequire},
		},
		HTTP: "127.0.0.1:9090",
		Tasks: []Task{{
			Name: "Settle",
			Settings: center.Settings{
				Queues:             8,
				ProcessorType:      "SLEEP",
				HeartbeatInterval:  time.Second,
				JudgeDeadInterval:  time.Minute,
				ThreadNumber:       3,
				FetchNumber:        1000,
				ExecuteNumber:      100,
				SleepTimeNoData:    250 * time.Millisecond,
				TaskParameter:      "2026",
				MaxQueuesPerServer: 4,
				MaxServers:         20,
				MaxServersPerHost:  3,
				MaxInFlight:        7,
				DrainTimeout:       90 * time.Second,
				ItemRetry:          2 * time.Second,
				ItemRetryMax:       10 * time.Minute,
				Mode:               center.ModeRun,
				QueueMaxAttempts:   4,
				QueueRetry:         45 * time.Second,
				Cron:               "0 0 2 * * ?",
				TimeZone:           "Europe/Berlin",
				After:              []runs.After{{Upstream: "extract"}, {Upstream: "load", Rule: runs.RuleFinished}},
				MaxRecoveries:      6,
				RunTimeout:         4 * time.Hour,
				RunStartTimeout:    90 * time.Minute,
				Coalesce:           true,
			},
			SQL: wholeSQL,
		}, {
			Name: "call", Settings: center.Settings{Queues: 1}, SQL: wholeSQL, Program: Program{Command: []string{"python3", "settle.py"}},
		}, {
			Name: "list", Settings: center.Settings{Queues: 1, Mode: center.ModeRun},
			Program: Program{Command: []string{"./list"}, Answers: []string{"select"}},
		}, {
			Name: "post", Settings: center.Settings{Queues: 1}, SQL: wholeSQL,
			Program: Program{HTTP: Service{URL: "https://h/", SecretFile: "s", CAFile: "c", Connections: 3, Each: true, Method: "PUT", Headers: map[string]string{"A": "1", "B": "{{b}}"}, Body: "{}", Permanent: []int{404, 410}}},
		}, {
			Name:     "push",
			Settings: center.Settings{QueueNames: []string{"north", "south"}},
			SQL:      wholeSQL,
		}, {
			Name:     "sum",
			Settings: center.Settings{Queues: 1},
			SQL: SQLDealer{
				Cursor: []string{"xid", "id"}, CursorStart: []string{"0", "0"}, CursorLag: 5 * time.Minute,
				CursorNewest: "SELECT max(xid) FROM sales", CommitsInOrder: true,
			},
		}, {
			Name:     "tail",
			Settings: center.Settings{Queues: 1},
			SQL: SQLDealer{
				Cursor: []string{"id"}, CursorStart: []string{"0"}, AfterStart: []string{"a", "1"}, Key: []string{"region", "id"}, Discard: "DELETE FROM orders",
			},
		}},
	}
}

func TestLoadReadsEveryKey(t *testing.T) {
	want, path := wholeFile(), write(t, whole)
	want.DatabaseFrom = path
	got, err := Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if given := got.Tasks[4].Given; !slices.Equal(given, []string{"queues"}) || !slices.Contains(got.Tasks[0].Given, "item_retry") {
		t.Errorf("push gives %q, and %s gives %q", given, got.Tasks[0].Name, got.Tasks[0].Given)
	}
	for i := range got.Tasks {
		got.Tasks[i].Given = nil
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// after_any is after with Any; its elements have rules too.
func TestAfterAny(t *testing.T) {
	got, err := Load(write(t, "database: sqlite:x.db\ntasks: {settle: {queues: 1, mode: RUN, after_any: [extract, load: FINISHED]}}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []runs.After{{Upstream: "extract", Any: true}, {Upstream: "load", Rule: runs.RuleFinished, Any: true}}
	if diff := cmp.Diff(want, got.Tasks[0].Settings.After); diff != "" {
		t.Errorf("after (-want +got)\n%s", diff)
	}
}

const minimal = "database: sqlite:x.db\ntasks: {settle: {queues: 1}}\n"

func TestPrecedence(t *testing.T) {
	for name, test := range map[string]struct {
		file, env, flag string
		want            string
	}{
		"default":               {want: ""},
		"file":                  {file: "FILE", want: "FILE"},
		"environment only":      {env: "ENV", want: "ENV"},
		"environment over file": {file: "FILE", env: "ENV", want: "ENV"},
		"flag over all":         {file: "FILE", env: "ENV", flag: "FLAG", want: "FLAG"},
	} {
		t.Run(name, func(t *testing.T) {
			text := minimal
			if test.file != "" {
				text += "own_sign: " + test.file + "\n"
			}
			t.Setenv("ROTA_OWN_SIGN", test.env)
			f, err := Load(write(t, text), flagSet(t, "own-sign", test.flag))
			if err != nil {
				t.Fatal(err)
			}
			if f.OwnSign != test.want {
				t.Errorf("own_sign is %q, want %q", f.OwnSign, test.want)
			}
		})
	}
}

func TestEveryScalarComesFromTheEnvironment(t *testing.T) {
	t.Setenv("ROTA_DATABASE", "sqlite:env.db")
	t.Setenv("ROTA_OWN_SIGN", "ENV")
	t.Setenv("ROTA_SCHEMA", "create")
	t.Setenv("ROTA_HTTP", "127.0.0.1:1")
	f, err := Load(write(t, "tasks: {settle: {queues: 1}}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Connection{Database: "sqlite:env.db", DatabaseFrom: "ROTA_DATABASE", Options: center.Options{OwnSign: "ENV", Schema: center.SchemaCreate}}
	if diff := cmp.Diff(want, f.Connection); diff != "" || f.HTTP != "127.0.0.1:1" {
		t.Errorf("http %s; (-want +got)\n%s", f.HTTP, diff)
	}
}

func TestLoadConnection(t *testing.T) {
	// LoadConnection does not read the tasks.
	c, err := LoadConnection(write(t, "database: sqlite:x.db\ntasks: {settle: {queues: 0}}"), nil)
	if err != nil || c.Database != "sqlite:x.db" {
		t.Errorf("with a file: %+v, %v", c, err)
	}
	c, err = LoadConnection("", flagSet(t, "database", "sqlite:flag.db"))
	if err != nil || c.Database != "sqlite:flag.db" {
		t.Errorf("with a flag: %+v, %v", c, err)
	}
	_, err = LoadConnection("", nil)
	wantLines(t, err, "database is missing: set it in the file, with --database or in ROTA_DATABASE")
}

// task returns a file with one task type.
func task(lines string) string {
	return "database: sqlite:x.db\ntasks:\n  settle:\n    " + strings.ReplaceAll(lines, "\n", "\n    ")
}

// refusals are files that Load refuses, and the error of each. FILE is the path.
var refusals = map[string]struct{ file, want string }{
	"empty": {"", "" +
		"FILE: database is missing: set it in the file, with --database or in ROTA_DATABASE\n" +
		"FILE: tasks: must name at least one task type"},
	"not YAML":                                    {"a: b: c", "FILE:1: not valid YAML: mapping values are not allowed in this context"},
	"not YAML, line 3":                            {"a: 1\nb:\n  - [", "FILE:3: not valid YAML: did not find expected node content"},
	"a line indented less, not YAML":              {task("queues: 1\ndealer:\n  sql:\n   select: x\n    execute: x\n    key: id"), "FILE:7: not valid YAML: line 8 is indented more than line 7, which has its value already"},
	"a line indented more, not YAML":              {task("queues: 1\nfetch_number: 1\n  mode: RUN\nthread_number: 1"), "FILE:6: not valid YAML: line 6 is indented more than line 5, which has its value already"},
	"a line indented more below a list, not YAML": {task("queues: [\n  a]\n\nafter: [a]\n   mode: RUN"), "FILE:8: not valid YAML: did not find expected key"},
	"an unfinished list, not YAML":                {task("queues: [a,\n b\nmode: RUN"), "FILE:4: not valid YAML: did not find expected ',' or ']'"},
	"two documents":                               {minimal + "---\n" + minimal, "FILE:3: not valid YAML: the file has a second document"},
	"a list":                                      {"- a", "FILE:1: must be a mapping of keys to values"},
	"no tasks":                                    {"database: sqlite:x.db\ntasks: {}", "FILE:2: tasks: must name at least one task type"},
	"tasks is a list":                             {"database: sqlite:x.db\ntasks: [settle]", "FILE:2: tasks: must be a mapping of keys to values\n..."},
	"no database":                                 {"tasks: {settle: {queues: 1}}", "FILE: database is missing: set it in the file, with --database or in ROTA_DATABASE"},

	"unknown key":          {minimal + "databse: x", "FILE:3: databse: unknown key; did you mean database?"},
	"unknown key, far off": {minimal + "colour: x", "FILE:3: colour: unknown key; the known keys are apply_settings, console, data, database, database_file, dealer_conns, exit_on_unreachable, hints, http, idle_tx_timeout, item_retention, labels, name, own_sign, probes, reply_timeout, return_within, schema, tasks, weight, witness_dir"},
	"unknown schema mode":  {minimal + "schema: yes", "FILE:3: schema (yes): must be auto, create or require"},
	"console, perhaps":     {minimal + "http: 127.0.0.1:9090\nconsole: perhaps", "FILE:4: console (perhaps): must be true or false"},
	"apply, perhaps":       {minimal + "apply_settings: perhaps", "FILE:3: apply_settings (perhaps): must be true or false"},
	"exit, perhaps":        {minimal + "exit_on_unreachable: perhaps", "FILE:3: exit_on_unreachable (perhaps): must be true or false"},
	"console without http": {minimal + "console: true", "FILE:3: console (true): needs http, the address to serve it at"},
	"http without host":    {minimal + "http: 9090", "FILE:3: http (9090): must be host:port, such as 127.0.0.1:9090, with a port of at most 65535"},
	"impossible port":      {minimal + "probes: 127.0.0.1:99999", "FILE:3: probes (127.0.0.1:99999): must be host:port, such as 127.0.0.1:9090, with a port of at most 65535"},
	"a scalar is a list":   {minimal + "own_sign: [A]", "FILE:3: own_sign: must be a single value, not a list or mapping"},
	"scalar twice":         {minimal + "database: x", "FILE:3: database is defined twice (first in line 1)"},

	"labels are a list":     {minimal + "labels: [zone]", "FILE:3: labels: must be a mapping of labels to values, such as {zone: b, disk: ssd}"},
	"mode in small letters": {"database: sqlite:x.db\ntasks:\n  extract: {queues: 1, mode: run, cron: '0 0 2 * * ?'}\n  load: {queues: 1, mode: RUN, after: [extract]}", "FILE:3: tasks.extract: mode (\"run\") must be CONTINUOUS or RUN"},

	"task twice":               {task("queues: 1\n") + "\n  settle: {queues: 2}", "FILE:6: tasks: settle is defined twice (first in line 3)"},
	"a task is a number":       {"database: sqlite:x.db\ntasks: {settle: 8}", "FILE:2: tasks.settle: must be a mapping of keys to values"},
	"unknown setting":          {task("queues: 1\nexecute_nunber: 2"), "FILE:5: tasks.settle.execute_nunber: unknown key; did you mean execute_number?"},
	"another spelling":         {task("queues: 1\nexecuteNumber: 2"), "FILE:5: tasks.settle.executeNumber: unknown key; did you mean execute_number?"},
	"unknown setting, far off": {task("queues: 1\nweather: fine"), "FILE:5: tasks.settle.weather: unknown key; the known keys are after, after_any, ..."},
	"zero queues":              {task("queues: 0"), "FILE:4: tasks.settle.queues (0): must be a number of at least 1, or a list of names"},
	"negative queues":          {task("queues: -2"), "FILE:4: tasks.settle.queues (-2): must be a number of at least 1, or a list of names"},
	"queues is a word":         {task("queues: eight"), "FILE:4: tasks.settle.queues (eight): must be a number of at least 1, or a list of names"},
	"queues is a fraction":     {task("queues: 1.5"), "FILE:4: tasks.settle.queues (1.5): must be a number of at least 1, or a list of names"},
	"queues is a mapping":      {task("queues: {a: 1}"), "FILE:4: tasks.settle.queues (): must be a number of at least 1, or a list of names"},
	"after is a name":          {task("queues: 1\nmode: RUN\nafter: extract"), "FILE:6: tasks.settle.after (extract): must be a list of task types"},
	"after is a nested list":   {task("queues: 1\nmode: RUN\nafter: [[extract]]"), "FILE:6: tasks.settle.after: must be a single value, not a list or mapping"},
	"after and after_any":      {task("queues: 1\nmode: RUN\nafter: [extract]\nafter_any: [load]"), "FILE:3: tasks.settle: after (extract) and after_any (load) must not both be set"},
	"after with a bad rule":    {task("queues: 1\nmode: RUN\nafter: [extract: LUCK]"), "FILE:3: tasks.settle: after extract: rule (\"LUCK\") must be SUCCESS or FINISHED"},
	"after itself":             {task("queues: 1\nmode: RUN\nafter: [settle]"), "FILE:2: tasks: task settle: after makes a cycle: settle after settle"},
	"every without a unit":     {task("queues: 1\nmode: RUN\nevery: 5"), "FILE:6: tasks.settle.every (5): must be a duration with its unit, such as 500ms, 2s or 5m"},
	"cron of five fields":      {task("queues: 1\nmode: RUN\ncron: 0 2 * * *"), "FILE:3: tasks.settle: cron \"0 2 * * *\": has 5 fields, must have 6 or 7: second minute hour day-of-month month day-of-week [year]; write cron5: before five fields of a crontab"},
	"queues is an empty list":  {task("queues: []"), "FILE:4: tasks.settle.queues ([]): must name at least one queue"},
	"queues is a nested list":  {task("queues: [[a]]"), "FILE:4: tasks.settle.queues: must be a single value, not a list or mapping"},
	"a flag is a text":         {task(`queues: 1` + "\n" + `coalesce: "yes"`), "FILE:5: tasks.settle.coalesce (yes): must be true or false"},
	"a number is a text":       {task(`queues: 1` + "\n" + `thread_number: "3"`), "FILE:5: tasks.settle.thread_number (3): must be a whole number"},
	"duration without unit":    {task("queues: 1\ndrain_timeout: 30"), "FILE:5: tasks.settle.drain_timeout (30): must be a duration with its unit, such as 500ms, 2s or 5m"},
	"zero means the default":   {task("queues: 1\nexecute_number: 0\nitem_retry_jitter: 0.0\nsleep_time_nodata: 0s\nbatch_timeout: 0\nqueue_retry:"), "FILE:5: tasks.settle.execute_number (0) must be more than 0: leave it empty for the default, 1\nFILE:6: tasks.settle.item_retry_jitter (0) must be more than 0: leave it empty for the default, 0.5\nFILE:7: tasks.settle.sleep_time_nodata (0s) must be more than 0: leave it empty for the default, 500ms"},
	"unknown dealer":           {task("queues: 1\ndealer: {https: x}"), "FILE:5: tasks.settle.dealer.https: unknown key; did you mean http?"},
	"command is empty":         {task("queues: 1\ndealer: {command: []}"), "FILE:5: tasks.settle.dealer.command: must name a program, and may have arguments: [python3, settle.py]"},
	"command for a shell":      {task("queues: 1\ndealer: {command: python3 settle.py}"), "FILE:5: tasks.settle.dealer.command (python3 settle.py): must be a list, because no shell divides it: [python3, settle.py]"},
	"command and http":         {task("queues: 1\ndealer: {command: a, http: https://h/}"), "FILE:5: tasks.settle.dealer: has both command and http: keep one"},
	"http without a URL":       {task("queues: 1\ndealer: {http: {ca_file: x}}"), "FILE:5: tasks.settle.dealer.http: must be the URL of a service, or have url"},
	"http with two secrets":    {task("queues: 1\ndealer: {http: {url: x, secret_file: x, secret_variable: x}}"), "FILE:5: tasks.settle.dealer.http: has both secret_file and secret_variable: keep one"},
	"http, connections":        {task("queues: 1\ndealer: {http: {url: x, connections: -1}}"), "FILE:5: tasks.settle.dealer.http.connections (-1): must be at least 1"},
	"http, no connections":     {task("queues: 1\ndealer: {http: {url: x, connections: 0}}"), "FILE:5: tasks.settle.dealer.http.connections (0): must be at least 1"},
	"http, unknown key":        {task("queues: 1\ndealer: {http: {url: x, secret: x}}"), "FILE:5: tasks.settle.dealer.http.secret: unknown key; the known keys are body, ca_file, connections, each, headers, method, permanent, secret_file, secret_variable, url"},
	"http, body without each":  {task("queues: 1\ndealer: {http: {url: x, body: x}}"), "FILE:5: tasks.settle.dealer.http: method, headers, body and permanent need each: true, by which each row is a request"},
	"http, no status":          {task("queues: 1\ndealer: {http: {url: x, each: true, permanent: [404, gone]}}"), "FILE:5: tasks.settle.dealer.http.permanent (gone): must be a whole number"},
	"http, no headers":         {task("queues: 1\ndealer: {http: {url: x, each: true, headers: [a]}}"), "FILE:5: tasks.settle.dealer.http.headers: must be a mapping of keys to values"},
	"http each, answers":       {task("queues: 1\ndealer: {answers: [select], http: {url: x, each: true}}"), "FILE:5: tasks.settle.dealer.answers (select): http sends rows of sql, because it has each: keep one"},
	"answers, unknown":         {task("queues: 1\ndealer:\n  command: a\n  answers: [select, discards]"), "FILE:7: tasks.settle.dealer.answers (select, discards): discards is no operation: it may have select, discard, backlog, peek"},
	"answers, twice":           {task("queues: 1\ndealer: {command: a, answers: [select, peek, peek]}"), "FILE:5: tasks.settle.dealer.answers (select, peek, peek): names peek twice"},
	"answers, empty":           {task("queues: 1\ndealer: {command: a, answers: []}"), "FILE:5: tasks.settle.dealer.answers (): must have select: with sql, the other operations are SQL, too"},
	"answers without select":   {task("queues: 1\ndealer: {command: a, answers: [discard]}"), "FILE:5: tasks.settle.dealer.answers (discard): must have select: with sql, the other operations are SQL, too"},
	"answers without program":  {task("queues: 1\ndealer: {answers: [select]}"), "FILE:5: tasks.settle.dealer.answers (select): needs command or http, the program that answers"},
	"answers and sql":          {task("queues: 1\ndealer: {command: a, answers: select, sql: {key: id}}"), "FILE:5: tasks.settle.dealer.answers (select): the program selects the items, and so does sql: keep one"},
	"answers in mode RUN":      {task("queues: 1\nmode: RUN\ndealer: {command: a, answers: [select, peek]}"), "FILE:6: tasks.settle.dealer.answers (select, peek): mode RUN asks for select alone: a run gives up no item, shows its progress by itself, and has no idle queues"},
	"unknown SQL key":          {task("queues: 1\ndealer: {sql: {selct: x}}"), "FILE:5: tasks.settle.dealer.sql.selct: unknown key; did you mean select?"},

	"a rule of center": {task("queues: 1\njudge_dead_interval: 8s"), "FILE:3: tasks.settle: judge_dead_interval (8s) must be at least 5 x heartbeat_interval (2s)"},
	"several, in the order of the file": {task("queues: 0\nfetch_number: x") + "\ncolor: 1", "" +
		"FILE:4: tasks.settle.queues (0): must be a number of at least 1, or a list of names\n" +
		"FILE:5: tasks.settle.fetch_number (x): must be a whole number\n" +
		"FILE:6: color: unknown key; ..."},
}

func TestErrors(t *testing.T) {
	for name, test := range refusals {
		t.Run(name, func(t *testing.T) {
			path := write(t, test.file)
			_, err := Load(path, nil)
			wantLines(t, err, strings.ReplaceAll(test.want, "FILE", path))
		})
	}
}

func TestErrorsOutsideTheFileNameTheirSource(t *testing.T) {
	path := write(t, minimal+"schema: auto")
	t.Setenv("ROTA_SCHEMA", "never")
	_, err := Load(path, nil)
	wantLines(t, err, "ROTA_SCHEMA (never): must be auto, create or require")
	_, err = Load(path, flagSet(t, "schema", "perhaps"))
	wantLines(t, err, "--schema (perhaps): must be auto, create or require")
}

// A mistake in the middle of a long file is named in a moment. With each part of the file parsed, it took minutes.
func TestMistakeInALongFile(t *testing.T) {
	t.Parallel()
	const before = 10_000
	some := "  t%d:\n    queues: 4\n"
	var text strings.Builder
	text.WriteString("tasks:\n")
	for i := range before / 2 {
		fmt.Fprintf(&text, some, i)
	}
	text.WriteString("  bad: [\n")
	for i := range before / 2 {
		fmt.Fprintf(&text, some, before+i)
	}
	path := write(t, text.String())
	loaded := make(chan error, 1)
	go func() {
		_, err := Load(path, nil)
		loaded <- err
	}()
	select {
	case err := <-loaded:
		wantLines(t, err, fmt.Sprintf("%s:%d: not valid YAML: did not find expected ',' or ']'", path, before+2))
	case <-time.After(time.Minute):
		t.Fatal("the mistake is not found within a minute")
	}
}

func TestMissingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rota.yaml")
	_, err := Load(path, nil)
	wantLines(t, err, path+": no such file or directory")
}

// wantLines compares the text of an error. "..." in want matches the rest.
func wantLines(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %q", want)
	}
	got := err.Error()
	if head, _, cut := strings.Cut(want, "..."); cut && strings.HasPrefix(got, head) {
		return
	}
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rota.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// flagSet returns a flag set with one flag, or none if the name is empty. It is set unless the value is empty.
func flagSet(t *testing.T, name, value string) *pflag.FlagSet {
	t.Helper()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	if name != "" {
		flags.String(name, "", "")
	}
	if value != "" {
		if err := flags.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	return flags
}

// An upstream with its rule in quotes is what it is without them.
func TestAfterInQuotes(t *testing.T) {
	got, err := Load(write(t, "database: sqlite:x.db\ntasks: {settle: {queues: 1, mode: RUN, after: [\"extract: FINISHED\", load: FINISHED, 'sweep']}}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []runs.After{{Upstream: "extract", Rule: runs.RuleFinished}, {Upstream: "load", Rule: runs.RuleFinished}, {Upstream: "sweep"}}
	if diff := cmp.Diff(want, got.Tasks[0].Settings.After); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
