package center_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/schema"
)

// openError returns the text of the error of Open, which must fail.
func openError(t *testing.T, url string, o center.Options) string {
	t.Helper()
	c, err := center.Open(t.Context(), anydb.URL(url), o)
	if err == nil {
		t.Fatal(errors.Join(fmt.Errorf("open %s: got no error", url), c.Close()))
	}
	return err.Error()
}

func TestOpenRefusesBadURLs(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"oracle://app:secret@h/d": `database URL: unknown scheme; want postgres://..., mysql://..., mariadb://... or sqlite:FILE`,
		"sqlite:":                 `database URL: no file; want sqlite:FILE`,
	} {
		if got := openError(t, url, center.Options{}); got != want {
			t.Errorf("open %s:\n got %s\nwant %s", url, got, want)
		}
		if _, _, err := center.Migrate(t.Context(), anydb.URL(url)); err == nil || err.Error() != want {
			t.Errorf("migrate %s:\n got %v\nwant %s", url, err, want)
		}
	}
	const want = "no database: want postgres.URL(...)"
	if _, err := center.Open(t.Context(), center.Database{}, center.Options{}); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("open the zero Database: got %v, want %s", err, want)
	}
}

func TestOpenRefusesBadOptions(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]center.Options{
		`dealer_conns (-1) must not be negative`:                                          {DealerConns: -1},
		`schema ("maybe") must be auto, create or require`:                                {Schema: "maybe"},
		`own_sign (" x") must be printable, without white space around it`:                {OwnSign: " x"},
		`own_sign ("` + strings.Repeat("x", 51) + `") must have at most 50 bytes, not 51`: {OwnSign: strings.Repeat("x", 51)},
	} {
		if got := openError(t, "sqlite::memory:", o); got != want {
			t.Errorf("open with %+v:\n got %s\nwant %s", o, got, want)
		}
	}
}

func TestDealerConns(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		for o, want := range map[int]struct{ open, idle int }{0: {0, 16}, 3: {3, 3}} {
			c := centertest.Open(t, url, center.Options{DealerConns: o})
			if got := c.DB().Stats().MaxOpenConnections; got != want.open {
				t.Errorf("DealerConns %d: at most %d connections, want %d", o, got, want.open)
			}
			var taken []*sql.Conn
			for range cmp.Or(want.open, 20) {
				conn, err := c.DB().Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				taken = append(taken, conn)
			}
			for _, conn := range taken {
				if err := conn.Close(); err != nil {
					t.Error(err)
				}
			}
			if got := c.DB().Stats().Idle; got != want.idle {
				t.Errorf("DealerConns %d: %d idle connections, want %d", o, got, want.idle)
			}
		}
	})
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"postgres://app:secret@127.0.0.1:1/d", "mysql://app:secret@127.0.0.1:1/d", "sqlite:/no/such/folder/x.db"} {
		got := openError(t, url, center.Options{FailUnreachable: true})
		if !strings.Contains(got, "cannot connect") || strings.Contains(got, "secret") || strings.Contains(got, "\n") {
			t.Errorf("open %s: got %q, want one line with \"cannot connect\" and no password", url, got)
		}
	}
}

func TestMySQLURLMustNameADatabase(t *testing.T) {
	t.Parallel()
	if got := openError(t, "mysql://app@127.0.0.1:1/", center.Options{}); !strings.Contains(got, "database URL: no database") {
		t.Error(got)
	}
}

func TestSchemaModes(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		got := openError(t, url, center.Options{Schema: center.SchemaRequire})
		if !strings.Contains(got, `run "rota migrate up"`) || strings.Contains(got, "\n") {
			t.Fatalf("open without tables: got %q, want one line with \"rota migrate up\"", got)
		}
		c := centertest.Open(t, url, center.Options{}) // SchemaAuto creates tables on a loopback host
		centertest.Open(t, url, center.Options{Schema: center.SchemaRequire})
		centertest.Exec(t, c, "INSERT INTO schedule_schema_version (version_id, is_applied) VALUES (999, TRUE)")
		centertest.Open(t, url, center.Options{}) // a rolling upgrade: the newer schema admits this program
		centertest.Exec(t, c, "UPDATE schedule_schema_lock SET oldest_companion = 999")
		if got := openError(t, url, center.Options{}); !strings.Contains(got, "install a newer rota") {
			t.Fatalf("open with a schema that is too new: got %q, want \"install a newer rota\"", got)
		}
	})
}

func TestVoidDatabasesAreRefused(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		c := centertest.Open(t, url, center.Options{})
		centertest.Exec(t, c, "UPDATE schedule_schema_lock SET edition = 1")
		for _, mode := range []center.SchemaMode{center.SchemaAuto, center.SchemaCreate, center.SchemaRequire} {
			got := openError(t, url, center.Options{Schema: mode})
			if !strings.HasSuffix(got, ": "+schema.ErrVoid.Error()) || strings.Contains(got, "\n") {
				t.Errorf("open with schema %s: got %q, want one line that ends in %q", mode, got, schema.ErrVoid)
			}
		}
	})
}

// A server that takes no writes may be a standby that is promoted in a moment, so Open waits for it. A URL that makes its
// connections read-only is refused.
func TestOpenWaitsForReadOnlyServers(t *testing.T) {
	t.Parallel()
	for kind, change := range map[string]struct{ on, off []string }{
		testdb.Postgres: {
			on:  []string{"ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()"},
			off: []string{"ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()"},
		},
		testdb.MySQL: {on: []string{"SET GLOBAL read_only = 1"}, off: []string{"SET GLOBAL read_only = 0"}},
	} {
		t.Run(kind, func(t *testing.T) {
			raw := testdb.Own(t, kind).URL()
			c := centertest.Open(t, raw, center.Options{})
			exec := func(statements []string) {
				for _, s := range statements {
					_, err := c.DB().ExecContext(t.Context(), s)
					must(t, err)
				}
			}
			exec(change.on)
			parts, err := url.Parse(raw)
			must(t, err)
			parts.Host += "," + parts.Host
			for _, address := range []string{raw, parts.String()} { // of several hosts, none takes writes
				_, err := center.Open(t.Context(), anydb.URL(address), center.Options{FailUnreachable: true})
				if !errors.Is(err, center.ErrUnreachable) || !strings.Contains(err.Error(), "read-only") {
					t.Errorf("without waiting: %v, want ErrUnreachable and read-only", err)
				}
			}
			waits := make(chan struct{}, 1)
			opened := make(chan error, 1)
			go func() {
				c, err := center.Open(t.Context(), anydb.URL(raw), center.Options{Logger: slog.New(slog.NewTextHandler(notifier{waits}, nil))})
				if err == nil {
					err = c.Close()
				}
				opened <- err
			}()
			<-waits
			exec(change.off)
			if err := <-opened; err != nil {
				t.Errorf("when the server takes writes: %v", err)
			}
		})
	}
	if got := openError(t, testdb.URL(t, testdb.Postgres)+"&default_transaction_read_only=on", center.Options{}); !strings.Contains(got, "this connection is read-only") {
		t.Errorf("a URL that makes its connections read-only: got %s", got)
	}
}

func TestEngineWithoutTransactionsIsRefused(t *testing.T) {
	t.Parallel()
	url := testdb.URL(t, testdb.MySQL)
	centertest.Exec(t, centertest.Open(t, url, center.Options{}), "ALTER TABLE schedule_environment ENGINE = MyISAM")
	const want = "table schedule_environment has the engine MyISAM, which has no transactions: ALTER TABLE schedule_environment ENGINE = InnoDB"
	if got := openError(t, url, center.Options{}); !strings.Contains(got, want) {
		t.Fatalf("open with a MyISAM table:\n got %s\nwant %s", got, want)
	}
}

// Waiting does not mend what the server refuses, or a folder that does not exist.
func TestOpenDoesNotWaitForRefusals(t *testing.T) {
	t.Parallel()
	urls := []string{"sqlite:/no/such/folder/x.db"}
	for _, kind := range testdb.Kinds(t) {
		if kind == testdb.SQLite {
			continue
		}
		raw := testdb.URL(t, kind)
		u, err := url.Parse(raw)
		must(t, err)
		unknown, stranger, tls := *u, *u, *u
		unknown.Path = "/no_such_database"
		stranger.User = url.UserPassword("no_such_user", "wrong")
		key := map[string]string{testdb.Postgres: "sslmode=verify-full", testdb.MySQL: "tls=true"}[kind]
		tls.RawQuery = key
		urls = append(urls, unknown.String(), stranger.String(), tls.String())
	}
	for _, address := range urls {
		_, err := center.Open(t.Context(), anydb.URL(address), center.Options{Schema: center.SchemaRequire})
		if err == nil || errors.Is(err, center.ErrUnreachable) || strings.Contains(err.Error(), "\n") {
			t.Errorf("open %s: %v, want one line, and not ErrUnreachable", address, err)
		}
	}
}

// Open waits for a database that is away, and gives up when its context is done.
func TestOpenWaits(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, raw string) {
		if strings.HasPrefix(raw, "sqlite:") {
			t.Skip("a file is not reached through a network")
		}
		through, proxy := testdb.Through(t, raw)
		proxy.Refuse(true)
		if _, err := center.Open(t.Context(), anydb.URL(through), center.Options{FailUnreachable: true}); !errors.Is(err, center.ErrUnreachable) {
			t.Errorf("without waiting: %v, want ErrUnreachable", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		waits := make(chan struct{}, 1)
		log := slog.New(slog.NewTextHandler(notifier{waits}, nil))
		opened := make(chan error, 1)
		open := func(o center.Options) {
			o.Logger = log
			c, err := center.Open(ctx, anydb.URL(through), o)
			if err == nil {
				err = c.Close()
			}
			opened <- err
		}
		go open(center.Options{})
		<-waits
		cancel()
		if err := <-opened; !errors.Is(err, context.Canceled) {
			t.Errorf("after its context is done: %v, want context.Canceled", err)
		}
		ctx = t.Context()
		go open(center.Options{})
		<-waits
		proxy.Refuse(false)
		if err := <-opened; err != nil {
			t.Errorf("when the database is back: %v", err)
		}
		lost := func(context.Context, *center.Center) error { // between the first answer and the look for the tables
			select {
			case <-waits: // a line of the log from before
			default:
			}
			proxy.Refuse(true)
			proxy.Cut()
			return nil
		}
		open(center.Options{FailUnreachable: true, BeforeTables: lost})
		if err := <-opened; !errors.Is(err, center.ErrUnreachable) {
			t.Errorf("lost after it has answered, without waiting: %v, want ErrUnreachable", err)
		}
		proxy.Refuse(false)
		go open(center.Options{BeforeTables: lost})
		select {
		case <-waits:
		case err := <-opened:
			t.Fatalf("lost after it has answered: %v, want that Open waits", err)
		}
		proxy.Refuse(false)
		if err := <-opened; err != nil {
			t.Errorf("when the database is back, lost after it has answered: %v", err)
		}
	})
}

// notifier tells of each write.
type notifier struct{ written chan<- struct{} }

func (n notifier) Write(line []byte) (int, error) {
	select {
	case n.written <- struct{}{}:
	default:
	}
	return len(line), nil
}

// One URL may lead to servers of several vendors: the server's answer decides about the dialect.
func TestTheServerDecidesAboutTheDialect(t *testing.T) {
	t.Parallel()
	d := sqlite.URL("sqlite:" + t.TempDir() + "/r.db")
	asked, found := d.Probe, *d.Dialect
	d.Probe = func(ctx context.Context, db *sql.DB) (*sqldb.Dialect, error) {
		_, err := asked(ctx, db)
		return &found, err
	}
	c, err := center.Open(t.Context(), d, center.Options{})
	must(t, err)
	if c.Roster().DB.Dialect != &found {
		t.Error("Open goes on with the dialect of the URL")
	}
	must(t, c.Close())
	found.Name = "other"
	const want = `unknown database dialect "other"`
	if _, _, err := center.Migrate(t.Context(), d); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("migrate: got %v, want %s", err, want)
	}
	if _, err := center.Open(t.Context(), d, center.Options{}); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("open: got %v, want %s", err, want)
	}
}

// F8: a server that is neither of the supported databases is refused before anything is created.
func TestOpenRefusesOtherProducts(t *testing.T) {
	t.Parallel()
	raw := testdb.URL(t, testdb.Postgres)
	execURL(t, raw, `CREATE FUNCTION public.version() RETURNS text LANGUAGE sql AS $$ SELECT 'CockroachDB CCL v24.3.5' $$`)
	raw += "&search_path=public,pg_catalog"
	const want = `this server is CockroachDB (it says "CockroachDB CCL v24.3.5"), which Rota does not support: ` +
		`use PostgreSQL 14, MariaDB 10.6, MySQL 8.0, TiDB 8.5, or a newer one, or SQLite`
	if got := openError(t, raw, center.Options{Schema: center.SchemaCreate}); !strings.HasSuffix(got, want) {
		t.Errorf("open: got %s, want %s", got, want)
	}
	if _, _, err := center.Migrate(t.Context(), anydb.URL(raw)); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("migrate: got %v, want %s", err, want)
	}
}
