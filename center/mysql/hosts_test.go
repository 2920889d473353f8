package mysql

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
)

// The hosts are tried in order. One that is read-only is passed over.
func TestSeveralHosts(t *testing.T) {
	first, second := testdb.Own(t, testdb.MySQL), testdb.Own(t, testdb.MySQL)
	if _, err := open(t, first.URL(), sqldb.RoleStore).ExecContext(t.Context(), "SET GLOBAL read_only = 1"); err != nil {
		t.Fatal(err)
	}
	readOnly, writable := hostOf(t, first.URL()), hostOf(t, second.URL())
	for _, list := range []string{
		writable + ",127.0.0.1:1", "127.0.0.1:1," + writable, readOnly + "," + writable, "127.0.0.1:1," + readOnly + "," + writable,
	} {
		for _, role := range roles {
			var port string
			err := open(t, "mysql://root@"+list+"/test", role).QueryRowContext(t.Context(), "SELECT @@port").Scan(&port)
			if err != nil || !strings.HasSuffix(writable, ":"+port) {
				t.Errorf("%s, role %d: port %s, %v; want %s", list, role, port, err, writable)
			}
		}
	}
	err := open(t, "mysql://root@127.0.0.1:1,"+readOnly+"/test", sqldb.RoleStore).PingContext(t.Context())
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1: ") || !strings.Contains(err.Error(), readOnly+": the database is read-only") {
		t.Errorf("no host is left: %v", err)
	}
}

func hostOf(t *testing.T, raw string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

func TestTLS(t *testing.T) {
	for raw, want := range map[string]string{
		"mysql://u@127.0.0.1/d":        " true the database is on this host",
		"mysql://u@/d":                 " true the database is on this host",
		"mysql://u@db/d?socket=/run/s": " true the database is on this host",
		"mysql://u@db/d":               "skip-verify false encrypted, but the server is not verified (tls=skip-verify)",
		"mysql://u@127.0.0.1,db/d":     "skip-verify false encrypted, but the server is not verified",
		"mysql://u@db/d?tls=false":     "false false not encrypted (tls=false)",
		"mysql://u@db/d?tls=true":      "true true encrypted; the server's certificate and its name are verified",
		"mysql://u@db/d?tls=preferred": "preferred false perhaps not encrypted",
	} {
		u, err := sqldb.ParseURL(raw, "mysql", "mysql")
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := config(u)
		if err != nil {
			t.Fatal(err)
		}
		n := tlsNote(u)
		if got := fmt.Sprint(cfg.TLSConfig, " ", n.OK, " ", n.Finding); !strings.HasPrefix(got, want) || n.OK != (n.Hint == "") {
			t.Errorf("%s: %s, hint %s; want %s", raw, got, n.Hint, want)
		}
	}
	if err := URL("mysql://u@db/d?tls=nosuch").Err; err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("an unknown configuration: %v", err)
	}
}

// Each host is verified under its own name.
func TestEachHostHasItsName(t *testing.T) {
	u, err := sqldb.ParseURL("mysql://u@db1,db2/d?tls=true", "mysql", "mysql")
	if err != nil {
		t.Fatal(err)
	}
	list, err := newHosts(u, sqldb.RoleStore, sqldb.PoolOptions{}, nil)
	if err != nil || len(list) != 2 || list[0].name != "db1:3306" || list[1].name != "db2:3306" {
		t.Errorf("hosts %v, %v", list, err)
	}
	// What ParseDSN makes of tls=true has the name of the host in its DSN.
	if cfg, err := config(u); err != nil || cfg.TLS != nil {
		t.Errorf("all hosts would be verified as %s, %v", cfg.TLS.ServerName, err)
	}
}

func TestServersWithoutTLS(t *testing.T) {
	raw := testdb.Own(t, testdb.MariaDB).URL() // MySQL makes itself a certificate
	err := open(t, raw+"?tls=skip-verify", sqldb.RoleStore).PingContext(t.Context())
	if err == nil || !strings.Contains(err.Error(), "TLS requested but server does not support TLS; tls=false in the URL connects without TLS") {
		t.Errorf("got %v", err)
	}
}
