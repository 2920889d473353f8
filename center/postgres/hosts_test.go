package postgres

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/lib/pq"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
)

// hostOf returns the host:port of a URL, and the URL with another host and other parameters.
func hostOf(t *testing.T, raw string) (host string, with func(host, query string) string) {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host, func(host, query string) string {
		return fmt.Sprintf("%s://%s@%s%s?%s", u.Scheme, u.User, host, u.Path, query)
	}
}

func TestSSLModes(t *testing.T) {
	for raw, want := range map[string]pq.SSLMode{
		"postgres://u@127.0.0.1/d":                                         pq.SSLModeDisable,
		"postgres://u@/d?host=/run":                                        pq.SSLModeDisable,
		"postgres://u@localhost,[::1]/d":                                   pq.SSLModeDisable,
		"postgres://u@db/d":                                                pq.SSLModeRequire,
		"postgres://u@127.0.0.1,db/d":                                      pq.SSLModeRequire,
		"postgres://u@localhost/d?hostaddr=192.0.2.1":                      pq.SSLModeRequire,
		"postgres://u@db/d?sslmode=disable":                                pq.SSLModeDisable,
		"postgres://u@127.0.0.1/d?sslmode=verify-ca":                       pq.SSLModeVerifyCA,
		"postgres://u@db/d?sslrootcert=system":                             pq.SSLModeVerifyFull,
		"postgres://u@db/d?hostaddr=127.0.0.1":                             pq.SSLModeDisable,
		"postgres://u@h1,h2/d?hostaddr=127.0.0.1,192.0.2.1":                pq.SSLModeRequire,
		"postgres://u@127.0.0.1:5432,127.0.0.1:5433/d?sslmode=verify-full": pq.SSLModeVerifyFull,
	} {
		cfg, err := parse(raw)
		if err != nil || cfg.config.SSLMode != want {
			t.Errorf("%s: %s, %v; want %s", raw, cfg.config.SSLMode, err, want)
		}
	}
	if err := URL("postgres://u@/d?host=/run,db").Err; err == nil {
		t.Error("lib/pq takes TLS from all hosts if the first is a socket")
	}
	t.Setenv("PGSSLMODE", "verify-full")
	if cfg, err := parse("postgres://u@127.0.0.1/d"); err != nil || cfg.config.SSLMode != pq.SSLModeVerifyFull {
		t.Errorf("PGSSLMODE: %s, %v", cfg.config.SSLMode, err)
	}
	t.Setenv("PGHOSTADDR", "192.0.2.1")
	if URL("postgres://u@localhost/d").Local {
		t.Error("PGHOSTADDR is not looked at")
	}
}

func TestPGSSLMODEIsHonoured(t *testing.T) {
	host, with := hostOf(t, testdb.URL(t, testdb.Postgres))
	t.Setenv("PGSSLMODE", "require")
	err := open(t, with(host, "")).PingContext(t.Context())
	if err == nil || !strings.Contains(err.Error(), "SSL is not enabled on the server; sslmode=disable in the URL connects without TLS") {
		t.Errorf("got %v", err)
	}
}

func TestTLSNotes(t *testing.T) {
	for raw, want := range map[string]string{
		"postgres://u@127.0.0.1/d":              "true the database is on this host",
		"postgres://u@db/d":                     "false encrypted, but the server is not verified (sslmode=require)",
		"postgres://u@db/d?sslrootcert=x":       "true encrypted; the server's certificate is verified, and not its name (sslmode=require",
		"postgres://u@db/d?sslmode=disable":     "false not encrypted (sslmode=disable)",
		"postgres://u@db/d?sslmode=prefer":      "false perhaps not encrypted, and the server is not verified (sslmode=prefer)",
		"postgres://u@db/d?sslmode=verify-ca":   "true encrypted; the server's certificate is verified, and not its name",
		"postgres://u@db/d?sslmode=verify-full": "true encrypted; the server's certificate and its name are verified",
	} {
		cfg, err := parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if n := tlsNote(cfg.config); !strings.HasPrefix(fmt.Sprint(n.OK, " ", n.Finding), want) || n.OK != (n.Hint == "") {
			t.Errorf("%s: %+v, want %s", raw, n, want)
		}
	}
}

// The hosts are tried in order. One that takes no writes is passed over.
func TestSeveralHosts(t *testing.T) {
	first, second := testdb.Own(t, testdb.Postgres), testdb.Own(t, testdb.Postgres)
	for _, statement := range []string{"ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()"} {
		if _, err := open(t, first.URL()).ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	readOnly, with := hostOf(t, first.URL())
	host, _ := hostOf(t, second.URL())
	_, port, _ := strings.Cut(host, ":")
	_, readOnlyPort, _ := strings.Cut(readOnly, ":")
	for hosts, query := range map[string]string{
		"127.0.0.1:1," + host:                  "",
		readOnly + "," + host:                  "",
		"127.0.0.1:1," + readOnly + "," + host: "target_session_attrs=read-write",
		"127.0.0.1,127.0.0.1":                  "port=" + readOnlyPort + "," + port,
		"":                                     "host=127.0.0.1,127.0.0.1&port=1," + port,
	} {
		for _, role := range []sqldb.Role{sqldb.RoleStore, sqldb.RoleHeartbeat, sqldb.RoleDealers, sqldb.RoleSchema} {
			db, err := URL(with(hosts, query)).Pool(role, sqldb.PoolOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var got string
			err = db.QueryRowContext(t.Context(), "SELECT CAST(inet_server_port() AS text)").Scan(&got)
			if err != nil || got != port {
				t.Errorf("%s?%s, role %d: port %s, %v; want %s", hosts, query, role, got, err, port)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	var got string
	if err := open(t, with(readOnly+","+host, "target_session_attrs=any")).QueryRowContext(t.Context(), "SELECT CAST(inet_server_port() AS text)").Scan(&got); err != nil || got != readOnlyPort {
		t.Errorf("target_session_attrs=any: port %s, %v; want %s", got, err, readOnlyPort)
	}
}
