package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/testdb"
)

// dataShop is a roster in a SQLite file, and orders in one data database of each kind. Queue i has the i-th of them.
type dataShop struct {
	*testing.T
	c     *center.Center // opens the data databases for the test
	dir   string
	names []string
}

func openDataShop(t *testing.T, orders int) dataShop {
	t.Helper()
	urls := map[string]string{"file": testdb.URL(t, testdb.SQLite)}
	for _, kind := range testdb.Kinds(t) {
		urls[kind] = testdb.URL(t, kind)
	}
	s := dataShop{T: t, dir: t.TempDir(), names: slices.Sorted(maps.Keys(urls))}
	text, places := "database: sqlite:roster.db\nhttp: 127.0.0.1:0\ndata:\n", []string{}
	for i, name := range s.names {
		text += "  " + name + ": " + urls[name] + "\n"
		places = append(places, fmt.Sprintf("%d=%s", i, name))
	}
	text += "tasks:\n  settle:\n    queues: " + fmt.Sprint(len(s.names)) + "\n    database: " + strings.Join(places, ",") +
		"\n    sleep_time_nodata: 50ms" + strings.Replace(goodDealer, " AND {{mine id}}", "", 1)
	writeFile(t, filepath.Join(s.dir, "rota.yaml"), text)
	c, err := center.Open(t.Context(), anydb.URL("sqlite::memory:"), center.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	s.c = c
	for _, name := range s.names {
		d, err := c.FenceIn(name, anydb.URL(urls[name]))
		if err != nil {
			t.Fatal(err)
		}
		execute(t, d.DB(), "CREATE TABLE orders (id INTEGER PRIMARY KEY, state VARCHAR(9) NOT NULL DEFAULT 'NEW', settled_by VARCHAR(150), times INTEGER NOT NULL DEFAULT 0)")
		execute(t, d.DB(), "INSERT INTO orders (id) VALUES (1)"+values(2, orders))
	}
	return s
}

func (s dataShop) run(code int, args ...string) string {
	s.Helper()
	stdout, stderr, got := runRota(s.T, s.dir, args...)
	if got != code {
		s.Fatalf("rota %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, code, stdout, stderr)
	}
	return stdout
}

func (s dataShop) count(name, from string) int { return count(s.T, s.c.Data(name).DB(), from) }

// A worker settles the orders of each data database once, goes on while one is away, and operators see them.
func TestWorkerOnDataDatabases(t *testing.T) {
	t.Parallel()
	const orders = 50
	s := openDataShop(t, orders)
	const away = "away=postgres://app:secret@127.0.0.1:1/shop"
	up, stderr, code := runRota(t, s.dir, "migrate", "up", "--data", away)
	if code != 1 || !strings.Contains(stderr, "data database away: postgres://app@127.0.0.1:1/shop: cannot connect") || strings.Contains(stderr, "secret") {
		t.Errorf("exit code %d, stderr %s", code, stderr)
	}
	for _, name := range s.names {
		if !regexp.MustCompile(`(?m)^` + name + ` at \S+: created the tables of the fence$`).MatchString(up) {
			t.Errorf("migrate up\n%s\nwant %s", up, name)
		}
	}
	if again := s.run(0, "migrate", "up", "-o", "json"); strings.Count(again, "has the tables of the fence, nothing to do") != len(s.names) {
		t.Errorf("migrate up again\n%s", again)
	}
	if list := s.run(0, "data", "list"); strings.Count(list, " NEW ") != len(s.names) {
		t.Errorf("data list\n%s\nwant NEW", list)
	}

	p := startRota(t, s.dir, nil, "worker", "-c", "rota.yaml", "--data", away)
	for _, name := range s.names {
		eventually(t, name+" is settled", func() bool { return s.count(name, "orders WHERE state = 'SETTLED'") == orders })
		if n := s.count(name, "orders WHERE times <> 1"); n != 0 {
			t.Errorf("%s: %d orders took effect more than once", name, n)
		}
	}
	list := s.run(0, "data", "list")
	for _, name := range s.names {
		if !regexp.MustCompile(`(?m)^ ` + name + ` +OK +1 +20\S+Z +- +\S+$`).MatchString(list) {
			t.Errorf("data list\n%s\nwant %s", list, name)
		}
	}
	doctor := s.run(0, "doctor")
	if n := strings.Count(doctor, "1 queue is fenced, an epoch last rose "); n != len(s.names) {
		t.Errorf("doctor\n%s", doctor)
	}
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// The doctor and the list say that the file of a data database is missing, and go on with the others.
func TestMissingFileOfADataDatabase(t *testing.T) {
	t.Parallel()
	s := openDataShop(t, 1)
	s.run(0, "migrate", "up")
	file := filepath.Join(t.TempDir(), "absent.db")
	want := `cannot be used: cannot connect: there is no such file: run "rota migrate up"`
	doctor := s.run(1, "doctor", "--data", "absent=sqlite:"+file)
	if n := strings.Count(doctor, "no worker has used it yet"); n != len(s.names) || !regexp.MustCompile(
		`PROBLEM +DATA +absent at sqlite:`+regexp.QuoteMeta(file+" "+want)).MatchString(doctor) {
		t.Errorf("doctor\n%s", doctor)
	}
	list := s.run(0, "data", "list", "--data", "absent=sqlite:"+file)
	if n := strings.Count(list, " NEW "); n != len(s.names)+1 || !strings.Contains(list, "there is no such file") {
		t.Errorf("data list\n%s", list)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("they have made the file (%v)", err)
	}
}

// A worker refuses statements that one of its data databases refuses, and waits for none that is away.
func TestWorkerChecksStatementsInDataDatabases(t *testing.T) {
	t.Parallel()
	s := openDataShop(t, 1)
	execute(t, s.c.Data(s.names[0]).DB(), "ALTER TABLE orders RENAME COLUMN times TO tims")
	stdout, stderr, code := runRota(t, s.dir, "worker", "-c", "rota.yaml")
	want := "rota: rota.yaml: tasks.settle.dealer.sql.execute in " + s.names[0] + ", line 1, column 63 (times = times + 1 WHERE state ...): "
	if last := strings.TrimSpace(stderr); code != 2 || stdout != "" || !strings.Contains(last, want) {
		t.Errorf("exit code %d, stderr\n%s\nwant %s", code, stderr, want)
	}

	p := startRota(t, s.dir, nil, "worker", "-c", "rota.yaml", "--data", s.names[0]+"=postgres://app:secret@127.0.0.1:1/shop")
	eventually(t, "the others are settled", func() bool { return s.count(s.names[1], "orders WHERE state = 'SETTLED'") == 1 })
	if line := p.logged("statements not checked: the data database cannot be used"); line["database"] != "postgres://app@127.0.0.1:1/shop" {
		t.Errorf("log of the start: %v", line)
	}
	if doctor := s.run(1, "doctor"); !strings.Contains(doctor, "PROBLEM  STATEMENTS        settle: tasks.settle.dealer.sql.execute in "+s.names[0]+",") {
		t.Errorf("doctor\n%s", doctor)
	}
	eventually(t, "the list says so", func() bool {
		return regexp.MustCompile(`(?m)^ ` + s.names[0] + ` +UNREACHABLE +- .* the data database ` + s.names[0] + ` cannot be used`).MatchString(s.run(0, "data", "list"))
	})
}
