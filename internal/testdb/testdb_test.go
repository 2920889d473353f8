package testdb

import (
	"database/sql"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite"
)

func TestEachGivesEmptyDatabases(t *testing.T) {
	t.Parallel()
	Each(t, func(t *testing.T, first string) {
		kind, _, _ := strings.Cut(first, ":")
		for _, u := range []string{first, URL(t, kind)} {
			if _, err := connect(t, u).ExecContext(t.Context(), "CREATE TABLE orders (id INT)"); err != nil {
				t.Errorf("the database is not empty: %v", err)
			}
		}
	})
}

func TestDatabasesAreDropped(t *testing.T) {
	t.Parallel()
	for _, kind := range serverKinds(t) {
		var dropped string
		outer := t
		t.Run(kind, func(t *testing.T) {
			dropped = URL(t, kind)
			db := connect(outer, dropped)
			if _, err := db.ExecContext(t.Context(), "CREATE TABLE orders (id INT)"); err != nil {
				t.Fatal(err)
			}
			// A failed test may leave a transaction that has written and does not end.
			tx, err := db.BeginTx(outer.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			outer.Cleanup(func() { _ = tx.Rollback() })
			if _, err := tx.ExecContext(t.Context(), "INSERT INTO orders VALUES (1)"); err != nil {
				t.Fatal(err)
			}
		})
		name, _, _ := strings.Cut(path.Base(dropped), "?")
		err := connect(t, dropped).PingContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: want an error that the database %s does not exist, got %v", kind, name, err)
		}
	}
}

func TestKinds(t *testing.T) {
	for list, want := range map[string]string{
		"":                "postgres mysql mariadb sqlite",
		"sqlite":          "sqlite",
		"mysql, postgres": "mysql postgres",
		"sqlite,oracle":   `ROTA_TEST_DATABASES names "oracle": want a comma-separated list of postgres, mysql, mariadb, sqlite, tidb`,
	} {
		t.Setenv("ROTA_TEST_DATABASES", list)
		kinds, err := Wanted()
		if err != nil {
			kinds = []string{err.Error()}
		}
		if got := strings.Join(kinds, " "); got != want {
			t.Errorf("ROTA_TEST_DATABASES=%q: got %s, want %s", list, got, want)
		}
	}
}

func TestUnwantedKindIsSkipped(t *testing.T) {
	t.Setenv("ROTA_TEST_DATABASES", SQLite)
	t.Run("url", func(t *testing.T) {
		URL(t, Postgres)
		t.Fatal("not skipped")
	})
	t.Run("own", func(t *testing.T) {
		Own(t, MySQL)
		t.Fatal("not skipped")
	})
}

func serverKinds(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(Kinds(t), func(kind string) bool { return kind == SQLite })
}

func connect(t *testing.T, databaseURL string) *sql.DB {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	var db *sql.DB
	if u.Scheme == SQLite {
		db, err = sql.Open("sqlite", u.Path)
	} else {
		db, err = open(u)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestAlso(t *testing.T) {
	for list, want := range map[string]int{"": 0, "galera": 1, "patroni,etcd": 2, "pgbouncer": 1, "standby": 1} {
		t.Setenv("ROTA_TEST_ALSO", list)
		if kinds, err := Also(); len(kinds) != want || err != nil {
			t.Errorf("%q names %q (%v)", list, kinds, err)
		}
	}
	t.Setenv("ROTA_TEST_ALSO", "oracle")
	if _, err := Also(); err == nil {
		t.Error("no error for an unknown kind")
	}
}
