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

func TestBadURLs(t *testing.T) {
	const kinds = "want postgres://..., mysql://..., mariadb://... or sqlite:FILE"
	cases := []struct {
		url  func(string) sqldb.Database
		raw  string
		want string
	}{
		{anydb.URL, "oracle://h/d", `database URL: unknown scheme; ` + kinds},
		{anydb.URL, "oracle://app:secret@h/d", `database URL: unknown scheme; ` + kinds},
		{anydb.URL, "orders.db", `database URL: no scheme; ` + kinds},
		{anydb.URL, "", `database URL: no scheme; ` + kinds},
		{anydb.URL, "sqlite:", `database URL: no file; want sqlite:FILE`},
		{anydb.URL, "host=db user=app password=secret", `database URL: libpq's form keyword=value is not accepted; ` + kinds},
		{anydb.URL, "app:secret@tcp(db:3306)/shop", `database URL: the form user:password@tcp(host)/database is not accepted; ` + kinds},
		{anydb.URL, "postgres:app:secret@db/shop", `database URL: no // behind the scheme; want postgres://...`},
		{anydb.URL, "mariadb:app:secret@db/shop", `database URL: no // behind the scheme; want mysql://...`},
		{anydb.URL, "postgres://u:se%zzret@h/", `database URL: % must be followed by two hexadecimal digits: in a password write %25 instead of %`},
		{anydb.URL, "postgres://u:se#ret@h/", `database URL: # would end the URL: in a password write %23 instead of #`},
		{anydb.URL, "mysql://app:secret@db:x/shop", `database URL: want host:port, or [IPv6]:port, between @ and /: in a password write %2F instead of / and %3F instead of ?`},
		{anydb.URL, "mysql://db/shop?user=app&password=secret", `database URL: parameter password is refused: its effect on the roster is not known`},
		{anydb.URL, "mysql://app@db", `database URL: no database; want mysql://user@host:3306/DATABASE`},
		{postgres.URL, "", `database URL: no scheme; want postgres://...`},
		{postgres.URL, "mysql://app:secret@h/d", `database URL: unknown scheme; want postgres://...`},
		{mysql.URL, "sqlite:f", `database URL: no scheme; want mysql://...`},
		{sqlite.URL, "orders.db", `database URL: no scheme; want sqlite:FILE`},
		{sqlite.URL, "mysql://h/d", `database URL: unknown scheme; want sqlite:FILE`},
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
		"postgres://127.0.0.1/d":                    true,
		"postgres://localhost/d":                    true,
		"postgres://[::1]:5432/d":                   true,
		"postgres:///d?host=/run/postgresql":        true,
		"postgres://db.example/d":                   false,
		"postgres://127.0.0.1/d?host=db":            false,
		"postgres://localhost/d?hostaddr=192.0.2.1": false,
		"postgres://db/d?hostaddr=127.0.0.1":        true,
		"postgres://127.0.0.1,db/d":                 false,
		"postgres://127.0.0.1,localhost:1/d":        true,
		"postgres:///d?host=127.0.0.1,db":           false,
		"mysql://localhost,10.0.0.1/d":              false,
		"mysql://localhost:1,127.0.0.1:2/d":         true,
		"mysql://h/d?socket=/run/mysqld.sock":       true,
		"mysql://10.0.0.1/d":                        false,
		"sqlite:f":                                  true,
	} {
		if got := anydb.URL(raw); got.Local != want || got.Err != nil {
			t.Errorf("Local of %s: got %t, %v, want %t", raw, got.Local, got.Err, want)
		}
	}
}

func TestAddressHidesThePassword(t *testing.T) {
	for raw, want := range map[string]string{
		"postgres://u:secret@db/d":                          "postgres://u@db/d",
		"postgresql://u:secret@127.0.0.1/d?password=secret": "postgresql://u@127.0.0.1/d",
		"postgres://h1,h2:5433,[::1]/d?sslmode=verify-full": "postgres://h1,h2:5433,[::1]/d",
		"postgres://u@/d?password=secret&host=/run&port=1":  "postgres://u@/d?host=/run&port=1",
		"mysql://u:secret@db:3306/d":                        "mysql://u@db:3306/d",
		"mariadb://u:s%2Fecret@db/d":                        "mariadb://u@db/d",
		"mysql://u:secret@/d?socket=/run/mysqld.sock":       "mysql://u@/d?socket=/run/mysqld.sock",
		"sqlite:/f.db":    "sqlite:/f.db",
		"sqlite:///f.db":  "sqlite:/f.db",
		"sqlite::memory:": "sqlite::memory:",
	} {
		if got := anydb.URL(raw).Address; got != want {
			t.Errorf("Address of %s: got %s, want %s", raw, got, want)
		}
	}
}

func TestDialectSQL(t *testing.T) {
	const text = "SELECT {now}, {ago d.ms} FROM t WHERE a = ? AND b = ?"
	for url, want := range map[string]string{
		"postgres://h/d": "SELECT clock_timestamp(), clock_timestamp() - CAST(LEAST(GREATEST(d.ms, -315360000000), 315360000000) AS double precision) * INTERVAL '1 millisecond' FROM t WHERE a = $1 AND b = $2",
		"mysql://h/d":    "SELECT UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) - INTERVAL LEAST(GREATEST(d.ms, -315360000000), 315360000000) * 1000 MICROSECOND FROM t WHERE a = ? AND b = ?",
		"sqlite:f":       "SELECT rota_now(), rota_ago(d.ms) FROM t WHERE a = ? AND b = ?",
	} {
		if diff := cmp.Diff(want, anydb.URL(url).Dialect.SQL(text)); diff != "" {
			t.Errorf("SQL of %s (-want +got):\n%s", url, diff)
		}
	}
}
