package doctor_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
)

// dataFixture is centertest.Served in a SQLite file, and the data database "orders" of another kind.
type dataFixture struct {
	*testing.T
	c        *center.Center
	d        *center.Data
	database center.Database
}

// eachData runs f with a data database of each kind.
func eachData(t *testing.T, f func(dataFixture)) {
	t.Helper()
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Served(t, testdb.URL(t, testdb.SQLite))
		d, err := c.FenceIn("orders", anydb.URL(url))
		must(t, err)
		f(dataFixture{t, c, d, anydb.URL(url)})
	})
}

func (f dataFixture) exec(statements ...string) {
	f.Helper()
	for _, s := range statements {
		_, err := f.d.DB().ExecContext(f.Context(), s)
		must(f.T, err)
	}
}

// finds checks what the doctor says about data databases, beside settings of the database.
func (f dataFixture) finds(when string, want ...string) {
	f.Helper()
	findings, err := doctor.Diagnose(f.Context(), ops.New(f.c), "")
	must(f.T, err)
	var got []string
	for _, c := range findings {
		if c.Check == "data" || c.Subject == "orders" && (c.Check == "privileges" || c.Status == condition.OK) {
			got = append(got, c.Status+" "+c.Kind+" "+c.Subject+": "+c.Text)
		}
	}
	for i, w := range want {
		w = strings.ReplaceAll(regexp.QuoteMeta(w), "ADDRESS", regexp.QuoteMeta(f.d.Address()))
		w = strings.NewReplacer("AGE", `[\d.]+m?s`, "WORD", `\S+`).Replace(w)
		if i >= len(got) || !regexp.MustCompile("^"+w+"$").MatchString(got[i]) {
			f.Errorf("%s:\n got %s\nwant %s", when, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
			return
		}
	}
	if len(got) != len(want) {
		f.Errorf("%s: got %d findings, want %d:\n%s", when, len(got), len(want), strings.Join(got, "\n"))
	}
}

// The doctor says of a data database whether it can be used, is the right one, and agrees with the roster.
func TestDoctorOfDataDatabases(t *testing.T) {
	eachData(t, func(f dataFixture) {
		f.finds("before the first use", "NOTE DATA orders: orders at ADDRESS has no tables of the fence yet, and no worker has used it")
		_, err := center.MigrateData(f.Context(), f.database)
		must(f.T, err)
		f.finds("with its tables", "OK DATA orders: orders at ADDRESS: no worker has used it yet")
		centertest.EnterData(f.T, f.c, f.d)
		f.finds("in use", "OK DATA orders: orders at ADDRESS: 1 queue is fenced, an epoch last rose AGE ago")
		f.exec("UPDATE rota_fence SET epoch = 99 WHERE queue_id = '0'")
		f.finds("ahead of the roster",
			"PROBLEM DATA_AHEAD orders: orders is ahead of the roster, which has lost history: queue 0 of settle (epoch 99 of web1:1, in the roster 2)",
			"OK DATA orders: orders at ADDRESS: 1 queue is fenced, an epoch last rose AGE ago")
		f.exec("UPDATE rota_fence SET epoch = 2, cur_server = 'web9:9:00000009' WHERE queue_id = '0'")
		f.finds("at the epoch of another worker",
			"PROBLEM DATA_AHEAD orders: orders is ahead of the roster, which has lost history: queue 0 of settle (epoch 2 of web9:9, in the roster 2)",
			"OK DATA orders: orders at ADDRESS: 1 queue is fenced, an epoch last rose AGE ago")
		f.exec("DELETE FROM rota_fence WHERE queue_id = ''", "UPDATE rota_fence SET queue_id = '9', epoch = 1")
		centertest.Exec(f.T, f.c, "UPDATE schedule_task_running SET epoch_high = 1 WHERE task_type = 'settle'")
		f.finds("with a queue that is gone", "OK DATA orders: orders at ADDRESS: 1 queue is fenced, an epoch last rose AGE ago")
		f.exec("UPDATE rota_fence SET epoch = 2")
		f.finds("with a queue that nobody knows",
			"PROBLEM DATA_AHEAD orders: orders is ahead of the roster, which has lost history: queue 9 of settle (epoch 2 of web9:9, in the roster 1)",
			"OK DATA orders: orders at ADDRESS: 1 queue is fenced, an epoch last rose AGE ago")
		f.exec("DELETE FROM rota_fence")
		f.exec("UPDATE rota_data SET data_id = 'x'")
		f.finds("of another roster", "PROBLEM DATA orders: orders at ADDRESS is another database than the one that the roster knows under this name: "+
			"it has the id x, and orders has WORD it belongs to another roster, or is another database")
		f.exec("UPDATE rota_data SET name = 'sales'")
		f.finds("of another name", "PROBLEM DATA orders: orders at ADDRESS is another database than the one that the roster knows under this name: "+
			"it is sales of environment BASE")
		f.exec("DROP TABLE rota_fence")
		f.finds("without a table", "PROBLEM DATA orders: orders at ADDRESS had the tables of the fence, and has them no more: "+
			"the database has no Rota tables: there is no table rota_fence")
	})
}

// A data database that is away, and one that only the roster knows, are findings, and say nothing about the others.
func TestDoctorOfDataDatabasesElsewhere(t *testing.T) {
	eachData(t, func(f dataFixture) {
		centertest.EnterData(f.T, f.c, f.d)
		_, err := f.c.FenceIn("away", anydb.URL("postgres://app:secret@127.0.0.1:1/shop"))
		must(f.T, err)
		centertest.Exec(f.T, f.c, "INSERT INTO schedule_data (own_sign, name, data_id, address) VALUES ('BASE', 'old', 'x', 'mysql://app@db/old')")
		f.finds("",
			"PROBLEM DATA away: away at postgres://app@127.0.0.1:1/shop cannot be used: cannot connect: dial tcp 127.0.0.1:1: connect: connection refused",
			"OK DATA orders: orders at ADDRESS: 1 queue is fenced, an epoch last rose AGE ago",
			"NOTE DATA old: old at mysql://app@db/old is not checked, because this process does not have it")
	})
}

// The rights that docs/data.md grants suffice for a worker, and the doctor names each that is missing.
func TestRightsInADataDatabase(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{testdb.Postgres, testdb.MySQL} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			ownerURL := testdb.URL(t, kind)
			_, err := center.MigrateData(t.Context(), anydb.URL(ownerURL))
			must(t, err)
			owner := centertest.Open(t, ownerURL, center.Options{})
			user, userURL := centertest.AddUser(t, owner, ownerURL, "app")
			c := centertest.Served(t, testdb.URL(t, testdb.SQLite))
			d, err := c.FenceIn("orders", anydb.URL(userURL))
			must(t, err)
			f := dataFixture{T: t, c: c, d: d}
			if kind == testdb.Postgres { // MySQL connects nobody without rights
				f.finds("without rights", "NOTE PRIVILEGES orders: in orders this role lacks rights that a worker needs: SELECT, INSERT ON rota_data; SELECT, INSERT, UPDATE ON rota_fence")
			}
			centertest.Exec(t, owner, "GRANT SELECT ON rota_data TO "+user, "GRANT SELECT ON rota_fence TO "+user)
			f.finds("with SELECT", "NOTE PRIVILEGES orders: in orders this role lacks rights that a worker needs: INSERT ON rota_data; INSERT, UPDATE ON rota_fence",
				"OK DATA orders: orders at ADDRESS: no worker has used it yet")
			for _, grant := range grantsOf(t, "data.md") {
				centertest.Exec(t, owner, strings.ReplaceAll(grant, " TO app", " TO "+user))
			}
			centertest.EnterData(f.T, f.c, f.d)
			f.finds("with the grants", "OK DATA orders: orders at ADDRESS: 1 queue is fenced, an epoch last rose AGE ago")
		})
	}
}

// grantsOf returns the grants of a page.
func grantsOf(t *testing.T, page string) (grants []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs", page))
	must(t, err)
	return regexp.MustCompile(`(?m)^GRANT [^;]+`).FindAllString(string(text), -1)
}
