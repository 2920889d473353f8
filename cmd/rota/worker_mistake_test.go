package main

import (
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
)

// edited returns a URL with other parts.
func edited(t *testing.T, raw string, edit func(*url.URL, url.Values)) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	edit(u, query)
	u.RawQuery = query.Encode()
	return u.String()
}

// with returns a URL with more parameters, as name=value.
func with(t *testing.T, raw string, params ...string) string {
	t.Helper()
	return edited(t, raw, func(_ *url.URL, query url.Values) {
		for _, p := range params {
			name, value, _ := strings.Cut(p, "=")
			query.Set(name, value)
		}
	})
}

// as returns a URL with another user or another path.
func as(t *testing.T, raw string, user *url.Userinfo, path string) string {
	t.Helper()
	return edited(t, raw, func(u *url.URL, _ url.Values) {
		if user != nil {
			u.User = user
		}
		if path != "" {
			u.Path = path
		}
	})
}

// mistake is a URL that no wait mends, and texts of the one line that says so.
type mistake struct {
	url   string
	texts []string
}

// A mistake in the connection ends a worker at once, with one line that names the key and the cause.
func TestWorkerEndsAtAMistake(t *testing.T) {
	t.Parallel()
	wrong := url.UserPassword("locked", "wrong")
	for kind, mistakes := range map[string]func(t *testing.T) map[string]mistake{
		testdb.Postgres: func(t *testing.T) map[string]mistake {
			server := testdb.Own(t, testdb.Postgres)
			db, _ := openOrders(t, server.URL(), 1)
			execute(t, db, "CREATE ROLE locked LOGIN PASSWORD 'secret'")
			execute(t, db, `COPY (SELECT 1) TO PROGRAM 'cat >/dev/null; sed -i "1i host all locked all scram-sha-256" pg_hba.conf'`)
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			for _, step := range []func() error{server.Stop, server.Start} {
				if err := step(); err != nil {
					t.Fatal(err)
				}
			}
			return map[string]mistake{
				"certificate":       {with(t, server.URL(), "sslmode=verify-full", "sslrootcert=/no/such"), []string{"sslrootcert: open /no/such"}},
				"startup parameter": {with(t, testdb.Pooled(t, server.URL()).URL(), "work_mem=8MB"), []string{"work_mem"}},
				"value":             {with(t, server.URL(), "work_mem=plenty"), []string{"work_mem", "plenty"}},
				"schema":            {with(t, server.URL(), "search_path=no_such_schema"), []string{"search_path", "no_such_schema"}},
				"password":          {as(t, server.URL(), wrong, ""), []string{"password", "locked"}},
				"database":          {as(t, server.URL(), nil, "/no_such_database"), []string{"no_such_database"}},
			}
		},
		testdb.MySQL:   mistakesOfMySQL,
		testdb.MariaDB: mistakesOfMySQL,
		testdb.SQLite: func(*testing.T) map[string]mistake {
			return map[string]mistake{"folder": {"sqlite:/no/such/folder/rota.db", []string{"/no/such/folder"}}}
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			testdb.URL(t, kind) // skips the kind if it is not wanted
			dir := t.TempDir()
			writeFile(t, filepath.Join(dir, "rota.yaml"), "tasks:\n  settle:\n    queues: 1"+goodDealer)
			for name, m := range mistakes(t) {
				_, stderr, code := runRota(t, dir, "worker", "-c", "rota.yaml", "--database", m.url, "--schema", "require")
				if code != 1 || strings.Count(stderr, "\n") != 1 {
					t.Errorf("%s: exit code %d, want 1 and one line:\n%s", name, code, stderr)
				}
				for _, text := range append(m.texts, "rota: open "+kindOf(m.url)) {
					if !strings.Contains(stderr, text) {
						t.Errorf("%s: the line does not name %q:\n%s", name, text, stderr)
					}
				}
			}
		})
	}
}

func kindOf(raw string) string { return raw[:strings.Index(raw, ":")] }

func mistakesOfMySQL(t *testing.T) map[string]mistake {
	t.Helper()
	kind := testdb.MySQL
	if strings.Contains(t.Name(), testdb.MariaDB) {
		kind = testdb.MariaDB
	}
	server := testdb.Own(t, kind)
	db, _ := openOrders(t, server.URL(), 1)
	execute(t, db, "CREATE USER locked@'%' IDENTIFIED BY 'secret'")
	return map[string]mistake{
		"password": {as(t, server.URL(), url.UserPassword("locked", "wrong"), ""), []string{"locked", "Access denied"}},
		"database": {as(t, server.URL(), nil, "/no_such_database"), []string{"no_such_database"}},
		"right":    {as(t, server.URL(), url.UserPassword("locked", "secret"), "/mysql"), []string{"locked", "Access denied"}},
		"value":    {with(t, server.URL(), "sort_buffer_size='plenty'"), []string{"sort_buffer_size"}},
		"TLS":      {with(t, server.URL(), "tls=true"), []string{"tls"}},
	}
}

// What may pass is waited for: a port on which nothing listens, a server that is still starting, a network that swallows
// packets.
func TestWorkerWaitsForWhatMayPass(t *testing.T) {
	t.Parallel()
	waits := func(t *testing.T, raw string) *process {
		t.Helper()
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "rota.yaml"), "tasks:\n  settle:\n    queues: 1"+goodDealer)
		p := startRota(t, dir, nil, "worker", "-c", "rota.yaml", "--database", raw, "--schema", "require")
		eventually(t, "the worker waits", func() bool { return p.logged("the database is unreachable; waiting") != nil })
		return p
	}
	ends := func(t *testing.T, p *process) {
		t.Helper()
		p.signal(syscall.SIGTERM)
		if code := p.exit(); code != 0 {
			t.Errorf("exit code %d after SIGTERM", code)
		}
	}
	testdb.Each(t, func(t *testing.T, raw string) {
		if strings.HasPrefix(raw, testdb.SQLite) {
			t.Skip("a file is not reached through a network")
		}
		ends(t, waits(t, edited(t, raw, func(u *url.URL, _ url.Values) { u.Host = "127.0.0.1:1" })))
		through, proxy := testdb.Through(t, raw)
		proxy.Swallow(true)
		ends(t, waits(t, through))
	})
	t.Run("starting", func(t *testing.T) {
		server, finish := testdb.Starting(t)
		p := waits(t, server.URL())
		if cause, _ := p.logged("the database is unreachable; waiting")["error"].(string); !strings.Contains(cause, "57P03") {
			t.Errorf("the worker waits for %q, want an error 57P03", cause)
		}
		finish()
		if code := p.exit(); code != 2 { // the server has no table of orders
			t.Errorf("exit code %d, want that of a statement that the database refuses", code)
		}
	})
}
