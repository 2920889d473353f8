package center_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"log/slog"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/logtest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/schema"
)

// openOwn opens a pool as a program opens its own, with the defaults of the driver except for some parameters.
func openOwn(t *testing.T, raw, params string) *sql.DB {
	t.Helper()
	name, source := ownSource(t, raw, params)
	db, err := sql.Open(name, source)
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	return db
}

// ownSource returns the name of a driver, and a database of the tests in the driver's own form.
func ownSource(t *testing.T, raw, params string) (name, source string) {
	t.Helper()
	if file, ok := strings.CutPrefix(raw, "sqlite:"); ok {
		return "sqlite", "file:" + (&url.URL{Path: file}).EscapedPath() + "?_pragma=busy_timeout(5000)&" + params
	}
	u, err := url.Parse(raw)
	must(t, err)
	if u.Scheme == "postgres" {
		return "postgres", raw + "&" + params
	}
	return "mysql", u.User.String() + "@tcp(" + u.Host + ")" + u.Path + "?" + params
}

// fitParams are parameters with which the fence holds, where the defaults of a driver do not suffice.
var fitParams = map[schema.Dialect]string{schema.SQLite: "_txlock=immediate"}

// ownPoolFixture is a batch of a task type in the database at url.
func ownPoolFixture(t *testing.T, raw string, o center.Options) (*center.Center, context.Context) {
	t.Helper()
	c := centertest.Open(t, raw, o)
	centertest.Define(t, c, "settle", center.Settings{Queues: 1})
	centertest.Exec(t, c, "UPDATE schedule_queue SET cur_server = 'A', epoch = 7")
	return c, bindBatch(t, c, nil)
}

func bindBatch(t *testing.T, c *center.Center, cursor *center.CursorMove) context.Context {
	return c.Bind(t.Context(), center.Batch{Server: "A", TaskType: "settle", Queue: center.QueueEpoch{ID: "0", Epoch: 7}, Cursor: cursor})
}

func nothing(*sql.Tx) error { return nil }

// F9: the program's own pool is fenced as DB is, with the defaults of its driver: MySQL counts changed rows by default.
func TestInTxOfOwnPool(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c, ctx := ownPoolFixture(t, url, center.Options{})
		db := openOwn(t, url, fitParams[c.Dialect()])
		write := func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE schedule_task_type SET thread_number = thread_number + 1")
			return err
		}
		var before, after int
		must(t, c.DB().QueryRowContext(ctx, "SELECT thread_number FROM schedule_task_type").Scan(&before))
		must(t, center.InTx(ctx, db, write))
		cursor := center.CursorMove{To: "17"}
		must(t, center.InTx(bindBatch(t, c, &cursor), db, write))
		must(t, center.InTx(bindBatch(t, c, &cursor), db, write)) // the same cursor
		centertest.Exec(t, c, "UPDATE schedule_queue SET epoch = 8")
		if err := center.InTx(ctx, db, write); !errors.Is(err, center.ErrFenced) {
			t.Errorf("under an old epoch: error %v, want ErrFenced", err)
		}
		must(t, c.DB().QueryRowContext(ctx, "SELECT thread_number FROM schedule_task_type").Scan(&after))
		if after != before+3 {
			t.Errorf("%d writes, want 3", after-before)
		}
	})
}

// F9: a pool with a setting that would break the fence is refused with the setting, its value and the rule.
func TestUnfitPools(t *testing.T) {
	t.Parallel()
	for kind, settings := range map[string]map[string]string{
		testdb.MySQL: {
			"charset=gbk":                            "*mysql.MySQLDriver: character_set_client (gbk) must be utf8mb4: ",
			"character_set_connection=latin1":        "character_set_connection (latin1) must be utf8mb4: ",
			"character_set_client=%27utf8mb3%27":     "character_set_client (utf8mb3) must be utf8mb4: ",
			"interpolateParams=true&charset=utf8mb4": "",
		},
		testdb.SQLite: {
			"":                  "*sqlite.Driver: _txlock (deferred) must be immediate: a transaction that reads first could not write later",
			"_txlock=exclusive": "",
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url := testdb.URL(t, kind)
			_, ctx := ownPoolFixture(t, url, center.Options{})
			for params, want := range settings {
				db := openOwn(t, url, params)
				for range 2 { // a refusal stays one
					err := center.InTx(ctx, db, nothing)
					refused := errors.Is(err, center.ErrUnfitPool) && strings.Contains(err.Error(), want)
					if want == "" && err != nil || want != "" && !refused {
						t.Errorf("%s: error %v, want %q", params, err, want)
					}
				}
			}
		})
	}
}

// F9: lib/pq asks for UTF8 itself. Another driver, or a statement of the program, may not.
func TestUnfitEncoding(t *testing.T) {
	t.Parallel()
	url := testdb.URL(t, testdb.Postgres)
	_, ctx := ownPoolFixture(t, url, center.Options{})
	db := openOwn(t, url, "")
	db.SetMaxOpenConns(1)
	_, err := db.ExecContext(ctx, "SET client_encoding = 'LATIN1'")
	must(t, err)
	err = center.InTx(ctx, db, nothing)
	if !errors.Is(err, center.ErrUnfitPool) || !strings.Contains(err.Error(), "client_encoding (LATIN1) must be UTF8: names would be read as others") {
		t.Errorf("error %v, want ErrUnfitPool", err)
	}
}

// F9: a pool of another kind of database is refused.
func TestPoolOfAnotherKind(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		_, ctx := ownPoolFixture(t, url, center.Options{})
		for _, kind := range testdb.Kinds(t) {
			other := testdb.URL(t, kind)
			if strings.HasPrefix(url, scheme(other)) { // the same driver
				continue
			}
			db := openOwn(t, other, fitParams[schema.Dialect(kind)])
			if err := center.InTx(ctx, db, nothing); !errors.Is(err, center.ErrUnfitPool) || !strings.Contains(err.Error(), "its driver is none for the roster's database") {
				t.Errorf("a pool of %s: %v", kind, err)
			}
		}
	})
}

func scheme(url string) string { return url[:strings.Index(url, ":")+1] }

// F2: a transaction in the tables of another roster is no fenced batch, which its items would survive unnoticed.
func TestFenceInAnotherRoster(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, raw string) {
		t.Parallel()
		c, ctx := ownPoolFixture(t, raw, center.Options{})
		kind, _, _ := strings.Cut(raw, ":")
		elsewhere := testdb.URL(t, kind)
		copied, _ := ownPoolFixture(t, elsewhere, center.Options{})
		centertest.Exec(t, copied, "UPDATE schedule_queue SET cur_server = 'B'")
		db := openOwn(t, elsewhere, fitParams[c.Dialect()])
		cursor := center.CursorMove{To: "17"}
		for _, ctx := range []context.Context{ctx, bindBatch(t, c, &cursor)} {
			err := center.InTx(ctx, db, nothing)
			if !errors.Is(err, center.ErrNoRoster) || errors.Is(err, center.ErrFenced) {
				t.Errorf("error %v, want ErrNoRoster", err)
			}
		}
	})
}

// A pool is asked once.
func TestOwnPoolIsAskedOnce(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c, ctx := ownPoolFixture(t, url, center.Options{})
		name, source := ownSource(t, url, fitParams[c.Dialect()])
		begun := 0
		db := sql.OpenDB(counted{registered(t, name), source, &begun})
		t.Cleanup(func() { must(t, db.Close()) })
		for range 3 {
			must(t, center.InTx(ctx, db, nothing))
		}
		must(t, center.InTx(ctx, c.DB(), nothing))
		if begun != 4 {
			t.Errorf("%d transactions for 3 batches, want one more", begun)
		}
	})
}

func registered(t *testing.T, name string) driver.Driver {
	t.Helper()
	db, err := sql.Open(name, "")
	must(t, err)
	defer db.Close()
	return db.Driver()
}

// counted is a connector that counts the transactions of its connections.
type counted struct {
	driver driver.Driver
	source string
	begun  *int
}

// Driver implements driver.Connector.
func (c counted) Driver() driver.Driver { return c.driver }

// Connect implements driver.Connector.
func (c counted) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.source)
	if err != nil {
		return nil, err
	}
	return countedConn{conn.(ownConn), c.begun}, nil
}

type ownConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ExecerContext
	driver.QueryerContext
}

type countedConn struct {
	ownConn
	begun *int
}

// BeginTx implements driver.ConnBeginTx.
func (c countedConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	*c.begun++
	return c.ownConn.BeginTx(ctx, o)
}

// A Center that lives long forgets the pools that the program has closed.
func TestOwnPoolsAreForgotten(t *testing.T) {
	t.Parallel()
	url := testdb.URL(t, testdb.SQLite)
	c, ctx := ownPoolFixture(t, url, center.Options{})
	_, source := ownSource(t, url, "_txlock=immediate")
	use := func() {
		db, err := sql.Open("sqlite", source)
		must(t, err)
		defer db.Close()
		must(t, center.InTx(ctx, db, nothing))
	}
	for range 20 {
		use()
		runtime.GC()
	}
	if n := c.OwnPools(); n > 10 {
		t.Errorf("the Center remembers %d pools, want few", n)
	}
}

// F6: what the roster cannot limit in a pool of the program is logged, once.
func TestIdleTransactionsOfOwnPools(t *testing.T) {
	t.Parallel()
	url := testdb.URL(t, testdb.MariaDB)
	log, logged := logtest.New(slog.LevelWarn)
	_, ctx := ownPoolFixture(t, url, center.Options{Logger: log})
	limited, unlimited := openOwn(t, url, "idle_transaction_timeout=60"), openOwn(t, url, "")
	for range 2 {
		must(t, center.InTx(ctx, limited, nothing))
		must(t, center.InTx(ctx, unlimited, nothing))
	}
	const want = "a pool of a dealer: its transactions may be idle for longer than 1m0s (idle_transaction_timeout = 0): for as long, a host that vanishes inside InTx keeps its queues"
	if lines := logged.Lines(); len(lines) != 1 || lines[0].Text != want {
		t.Errorf("%d lines in the log, want one: %s", len(lines), want)
	}
}
