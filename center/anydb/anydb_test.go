package anydb_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/center/mysql"
	"github.com/dutyrota/rota/center/postgres"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/internal/sqldb"
)

func TestURLErrors(t *testing.T) {
	cases := []struct {
		url  func(string) sqldb.Database
		raw  string
		want string
	}{
		{anydb.URL, "oracle://h/d", `database URL "oracle://h/d": unknown scheme "oracle"; want postgres, mysql or sqlite`},
		{anydb.URL, "oracle://app:secret@h/d", `database URL "oracle://app:xxxxx@h/d": unknown scheme "oracle"; want postgres, mysql or sqlite`},
		{anydb.URL, "orders.db", `database URL "orders.db": no scheme; want postgres://..., mysql://... or sqlite:FILE`},
		{anydb.URL, "sqlite:", `database URL "sqlite:": no file; want sqlite:FILE`},
		{anydb.URL, "postgres://u:se%zzret@h/", `database URL: not a URL; want postgres://..., mysql://... or sqlite:FILE`},
		{postgres.URL, "", `database URL "": no scheme; want postgres://...`},
		{postgres.URL, "mysql://app:secret@h/d", `database URL "mysql://app:xxxxx@h/d": scheme "mysql"; want postgres://...`},
		{postgres.URL, "postgres://u:se%zzret@h/", `database URL: not a URL; want postgres://...`},
		{mysql.URL, "sqlite:f", `database URL "sqlite:f": scheme "sqlite"; want mysql://...`},
		{sqlite.URL, "orders.db", `database URL "orders.db": no scheme; want sqlite:FILE`},
		{sqlite.URL, "mysql://h/d", `database URL "mysql://h/d": scheme "mysql"; want sqlite:FILE`},
	}
	for _, c := range cases {
		err := c.url(c.raw).Err
		if err == nil || err.Error() != c.want {
			t.Errorf("error of %q:\n got %v\nwant %s", c.raw, err, c.want)
		}
	}
}

func TestLocal(t *testing.T) {
	for raw, want := range map[string]bool{
		"postgres://127.0.0.1/d":              true,
		"postgres://localhost/d":              true,
		"postgres://[::1]:5432/d":             true,
		"postgres:///d?host=/run/postgresql":  true,
		"postgres://db.example/d":             false,
		"postgres://127.0.0.1/d?host=db":      false,
		"mysql://h/d?socket=/run/mysqld.sock": true,
		"mysql://10.0.0.1/d":                  false,
		"sqlite:f":                            true,
	} {
		if got := anydb.URL(raw); got.Local != want || got.Err != nil {
			t.Errorf("Local of %s: got %t, %v, want %t", raw, got.Local, got.Err, want)
		}
	}
}

func TestAddressHidesThePassword(t *testing.T) {
	for raw, want := range map[string]string{
		"postgres://u:secret@db/d":                     "postgres://u:xxxxx@db/d?sslmode=require",
		"postgresql://u:secret@127.0.0.1/d":            "postgresql://u:xxxxx@127.0.0.1/d?sslmode=disable",
		"postgres://u:secret@db/d?sslmode=verify-full": "postgres://u:xxxxx@db/d?sslmode=verify-full",
		"mysql://u:secret@db:3306/d":                   "mysql://u:xxxxx@db:3306/d",
		"sqlite:/f.db":                                 "sqlite:/f.db",
		"sqlite:///f.db":                               "sqlite:/f.db",
		"sqlite::memory:":                              "sqlite::memory:",
	} {
		if got := anydb.URL(raw).Address; got != want {
			t.Errorf("Address of %s: got %s, want %s", raw, got, want)
		}
	}
}

func TestDialectSQL(t *testing.T) {
	const text = "SELECT {now}, {ago d.ms} FROM t WHERE a = ? AND b = ?"
	for url, want := range map[string]string{
		"postgres://h/d": "SELECT clock_timestamp(), clock_timestamp() - d.ms * INTERVAL '1 millisecond' FROM t WHERE a = $1 AND b = $2",
		"mysql://h/d":    "SELECT UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) - INTERVAL d.ms * 1000 MICROSECOND FROM t WHERE a = ? AND b = ?",
		"sqlite:f":       "SELECT rota_now(), rota_ago(d.ms) FROM t WHERE a = ? AND b = ?",
	} {
		if diff := cmp.Diff(want, anydb.URL(url).Dialect.SQL(text)); diff != "" {
			t.Errorf("SQL of %s (-want +got):\n%s", url, diff)
		}
	}
}
