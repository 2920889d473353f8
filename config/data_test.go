package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// dataFlagSet returns the flags of a command line.
func dataFlagSet(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags.String("config", "", "")
	AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return flags
}

// Each data database has its URL from the flags, the file or the environment, as the roster's database has.
func TestData(t *testing.T) {
	secret := write(t, secretURL+"\n")
	file := write(t, "database: sqlite:roster.db\ndata:\n  a: sqlite:a.db\n  b: {database: mysql://app@db/b}\n  c:\n    database_file: "+secret+"\n")
	inFile := []DataDatabase{{"a", "sqlite:a.db"}, {"b", "mysql://app@db/b"}, {"c", secretURL}}
	for name, test := range map[string]struct {
		args []string
		env  map[string]string
		want []DataDatabase
	}{
		"file":                            {want: inFile},
		"environment before a found file": {env: map[string]string{"ROTA_DATA": "a=sqlite:env.db  d=sqlite:d.db"}, want: []DataDatabase{{"a", "sqlite:env.db"}, inFile[1], inFile[2], {"d", "sqlite:d.db"}}},
		"file of --config before environment": {
			args: []string{"--config", file}, env: map[string]string{"ROTA_DATA": "a=sqlite:env.db d=sqlite:d.db"},
			want: append(inFile[:3:3], DataDatabase{"d", "sqlite:d.db"}),
		},
		"secret file in the environment": {env: map[string]string{"ROTA_DATA_FILE": "a=" + secret}, want: []DataDatabase{{"a", secretURL}, inFile[1], inFile[2]}},
		"flags before all": {
			args: []string{"--config", file, "--data", "a=postgres://x@h/d?target=a,b", "--data", "e=sqlite:e.db", "--data-file", "b=" + secret},
			want: []DataDatabase{{"a", "postgres://x@h/d?target=a,b"}, {"b", secretURL}, inFile[2], {"e", "sqlite:e.db"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for key, value := range test.env {
				t.Setenv(key, value)
			}
			c, err := LoadConnection(file, dataFlagSet(t, test.args...))
			if diff := cmp.Diff(test.want, c.Data); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

// A command without the flag data reads no secrets of data databases, and knows their names.
func TestDataWithoutTheFlag(t *testing.T) {
	file := write(t, "database: sqlite:roster.db\ndata: {a: {database_file: none}}")
	c, err := LoadConnection(file, flagSet(t, "database", ""))
	if diff := cmp.Diff([]DataDatabase{{Name: "a"}}, c.Data); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestDataErrors(t *testing.T) {
	const task = "\ntasks: {settle: {queues: 2, database: 'shard{{queue}}'}}"
	for name, test := range map[string]struct{ data, want string }{
		"no mapping":         {"data: [a]", "FILE:2: data: must be a mapping of keys to values"},
		"bad name":           {"data: {a=b: 'sqlite:a.db'}", `FILE:2: data: the name of a data database ("a=b") must not contain '='`},
		"no URL":             {"data: {a: }", "FILE:2: data.a must be the URL of a database, or have database or database_file"},
		"list":               {"data: {a: [x]}", "FILE:2: data.a: must be a single value, not a list or mapping"},
		"unknown key":        {"data: {a: {url: 'sqlite:a.db'}}", "FILE:2: data.a.url: unknown key; the known keys are database, database_file"},
		"both":               {"data:\n  a:\n    database: sqlite:a.db\n    database_file: x", "FILE:5: data.a.database and data.a.database_file must not both be set"},
		"no file":            {"data: {a: {database_file: none}}", "FILE:2: data.a.database_file (none): no such file or directory"},
		"URL as a file":      {"data: {a: {database_file: 'postgres://app:secret@db/shop'}}", "FILE:2: data.a.database_file must be the path of a file, not a URL"},
		"twice":              {"data:\n  a: sqlite:a.db\n  a: sqlite:b.db", "FILE:4: data: a is defined twice (first in line 3)"},
		"task without data":  {task, "FILE:3: tasks.settle.database (shard{{queue}}): names shard0, and there is no data"},
		"task with another":  {"data: {shard0: 'sqlite:a.db', x: 'sqlite:x.db'}" + task, "FILE:3: tasks.settle.database (shard{{queue}}): names shard1, and data has shard0, x"},
		"task with no queue": {"data: {a: 'sqlite:a.db'}\ntasks: {settle: {queues: 2, database: 0=a}}", `FILE:3: tasks.settle: database ("0=a") must name the data database of each queue: it names no database for queue "1"`},
	} {
		t.Run(name, func(t *testing.T) {
			text := "database: sqlite:roster.db\n" + test.data
			if !strings.Contains(text, "tasks:") {
				text += "\ntasks: {settle: {queues: 2}}"
			}
			path := write(t, text)
			_, err := Load(path, nil)
			wantLines(t, err, strings.ReplaceAll(test.want, "FILE", path))
		})
	}
}

// The errors of flags and variables print no password.
func TestDataListErrors(t *testing.T) {
	for _, test := range []struct{ flag, value, want string }{
		{"data", secretURL, "--data must be NAME=URL, such as orders=postgres://app@db2/shop"},
		{"data", secretURL + "?sslmode=disable", "--data must be NAME=URL, such as orders=postgres://app@db2/shop"},
		{"data", "a", "--data must be NAME=URL, such as orders=postgres://app@db2/shop"},
		{"data", "a,b=" + secretURL, `--data: the name of a data database ("a,b") must not contain ','`},
		{"data-file", "a=" + secretURL, "--data-file a must be the path of a file, not a URL"},
		{"data-file", "/run/a", "--data-file must be NAME=FILE, such as orders=/run/secrets/orders"},
	} {
		_, err := LoadConnection("", dataFlagSet(t, "--database", "sqlite:x.db", "--"+test.flag, test.value))
		wantLines(t, err, test.want)
	}
	_, err := LoadConnection("", dataFlagSet(t, "--database", "sqlite:x.db", "--data", "a="+secretURL, "--data", "a="+secretURL))
	wantLines(t, err, "--data names a twice")
	_, err = LoadConnection("", dataFlagSet(t, "--database", "sqlite:x.db", "--data", "a="+secretURL, "--data-file", "a=x"))
	wantLines(t, err, "--data a and --data-file a must not both be set")
	t.Setenv("ROTA_DATA", secretURL)
	_, err = LoadConnection("", dataFlagSet(t, "--database", "sqlite:x.db"))
	wantLines(t, err, "ROTA_DATA must be NAME=URL, such as orders=postgres://app@db2/shop")
}
