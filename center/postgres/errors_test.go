package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/lib/pq"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
)

// classCase is how an error of a row of classes comes about. A case without a row is about all other errors.
type classCase struct {
	row  string
	want sqldb.Class
	meet func(*scene) error
}

// driverError is a case whose error no server of the tests produces in a reliable way.
func driverError(row string, want sqldb.Class, e pq.Error) classCase {
	return classCase{row, want, func(*scene) error { return &e }}
}

var classCases = []classCase{
	{"40001", sqldb.RolledBack, func(s *scene) error {
		tx := s.begin("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "SELECT * FROM items")
		s.do("UPDATE items SET n = n + 1")
		return tx("UPDATE items SET n = n + 1")
	}},
	{"40P01", sqldb.RolledBack, func(s *scene) error {
		const soon = "SET LOCAL deadlock_timeout = '10ms'"
		a, b := s.begin(soon, "UPDATE items SET n = 1 WHERE id = 1"), s.begin(soon, "UPDATE items SET n = 1 WHERE id = 2")
		errs := make(chan error)
		go func() { errs <- a("UPDATE items SET n = 2 WHERE id = 2", "COMMIT") }()
		go func() { errs <- b("UPDATE items SET n = 2 WHERE id = 1", "COMMIT") }()
		return cmp.Or(<-errs, <-errs)
	}},
	{"55P03", sqldb.RolledBack, func(s *scene) error {
		s.begin("SELECT * FROM items FOR UPDATE")
		return s.try("SELECT * FROM items FOR UPDATE NOWAIT")
	}},
	{"26000", sqldb.RolledBack, trying("EXECUTE no_such_statement")},
	{"57014", sqldb.Interrupted, func(s *scene) error { return s.begin("SET LOCAL statement_timeout = 1")("SELECT pg_sleep(60)") }},

	driverError("08", sqldb.Broken, pq.Error{Code: "08006"}),
	driverError("08", sqldb.Broken, pq.Error{Code: "08P01", Message: "server login has been failing"}),
	{"08", sqldb.Refused, func(s *scene) error {
		return connect(s.t, changed(s.t, testdb.Pooled(s.t, s.url).URL(), func(_ *url.URL, q url.Values) { q.Set("work_mem", "8MB") }))
	}},
	{"53300", sqldb.Broken, func(s *scene) error {
		role := "limited_" + strings.ToLower(rand.Text())
		s.do("CREATE ROLE " + role + " LOGIN CONNECTION LIMIT 0")
		defer s.do("DROP ROLE " + role)
		return connect(s.t, changed(s.t, s.url, func(u *url.URL, _ url.Values) { u.User = url.User(role) }))
	}},
	driverError("57P01", sqldb.Broken, pq.Error{Code: "57P01"}), // the driver makes ErrBadConn of it: see below
	driverError("57P02", sqldb.Broken, pq.Error{Code: "57P02"}), // a server sends it as a notice, and PgBouncer passes it on
	{"57P03", sqldb.Broken, func(s *scene) error {
		server, finish := testdb.Starting(s.t)
		defer finish()
		return connect(s.t, server.URL())
	}},
	driverError("57P05", sqldb.Broken, pq.Error{Code: "57P05"}),

	{"25006", sqldb.ReadOnly, func(s *scene) error { return s.begin("SET TRANSACTION READ ONLY")("UPDATE items SET n = 1") }},
	{"42P01", sqldb.NoTable, trying("SELECT * FROM no_such_table")},
	{"3F000", sqldb.NoTable, trying("CREATE TABLE no_such_schema.items (id INT)")},
	{"3F000", sqldb.NoTable, func(s *scene) error {
		return s.begin("SET LOCAL search_path = no_such_schema")("CREATE TABLE t (id INT)")
	}},
	{"23505", sqldb.Duplicate, trying("INSERT INTO items (id) VALUES (1)")},
	{"22", sqldb.BadData, trying("SELECT 1 / 0")},
	{"22", sqldb.BadData, trying("UPDATE items SET name = 'long'")},
	{"23", sqldb.BadData, trying("UPDATE items SET n = NULL")},
	{"23", sqldb.BadData, trying("UPDATE items SET n = -1")},

	{"", sqldb.Refused, trying("SELEC")},
	{"", sqldb.Refused, func(s *scene) error {
		return connect(s.t, changed(s.t, s.url, func(u *url.URL, _ url.Values) { u.Path = "/no_such_database" }))
	}},
	{"", sqldb.Refused, func(s *scene) error { // the function of the transaction has passed over an error
		tx, err := s.db.BeginTx(s.t.Context(), nil)
		if err != nil {
			s.t.Fatal(err)
		}
		_, _ = tx.ExecContext(s.t.Context(), "SELECT 1 / 0")
		return tx.Commit()
	}},
	{"", sqldb.Refused, func(*scene) error { // the same of pgx
		return errors.New("commit unexpectedly resulted in rollback")
	}},
	driverError("", sqldb.Refused, pq.Error{Code: "28P01"}), // a wrong password
	driverError("", sqldb.Refused, pq.Error{Code: "42501"}), // a missing right
	{"", sqldb.RolledBack, func(s *scene) error {
		prepared, err := s.db.PrepareContext(s.t.Context(), "SELECT * FROM changing")
		if err != nil {
			s.t.Fatal(err)
		}
		defer prepared.Close()
		s.do("ALTER TABLE changing ADD COLUMN n INT")
		_, err = prepared.ExecContext(s.t.Context())
		return err
	}},
	{"", sqldb.ReadOnly, func(s *scene) error {
		s.do(`DO $$ BEGIN
			EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database());
		END $$`)
		return connect(s.t, changed(s.t, s.url, func(_ *url.URL, q url.Values) { q.Set("target_session_attrs", "read-write") }))
	}},
	{"", sqldb.Broken, trying("SELECT pg_terminate_backend(pg_backend_pid())")},
	{"", sqldb.Broken, func(*scene) error { return io.ErrUnexpectedEOF }},
	{"", sqldb.Other, func(*scene) error { return context.Canceled }},
}

// Each row of the table of classes has a case, which a server produces if one can.
func TestErrorClasses(t *testing.T) {
	met := map[string]bool{"": true}
	for _, c := range classCases {
		t.Run(c.row, func(t *testing.T) {
			s := newScene(t)
			err := c.meet(s)
			code := state(err)
			if got := dialect.Class(fmt.Errorf("wrapped: %w", err)); got != c.want || c.row != "" && !strings.HasPrefix(code, c.row) {
				t.Errorf("class of %q, %v: got %s, want %s of %s", code, err, got, c.want, c.row)
			}
		})
		met[c.row] = met[c.row] || c.want == classes[c.row]
	}
	for row := range classes {
		if !met[row] {
			t.Errorf("the row %s has no case", row)
		}
		delete(met, row)
	}
	if len(met) > 1 {
		t.Errorf("cases of no row: %v", met)
	}
}

// scene is a database in which errors come about.
type scene struct {
	t   *testing.T
	url string
	db  *sql.DB
}

func newScene(t *testing.T) *scene {
	t.Helper()
	raw := testdb.URL(t, testdb.Postgres)
	s := &scene{t, raw, open(t, raw)}
	s.do("CREATE TABLE items (id INT PRIMARY KEY, n INT NOT NULL DEFAULT 0 CHECK (n >= 0), name VARCHAR(3))")
	s.do("INSERT INTO items (id) VALUES (1), (2)")
	s.do("CREATE TABLE changing (id INT)")
	return s
}

// trying returns the error of a statement.
func trying(statement string) func(*scene) error {
	return func(s *scene) error { return s.try(statement) }
}

func (s *scene) try(statement string) error {
	_, err := s.db.ExecContext(s.t.Context(), statement)
	return err
}

func (s *scene) do(statement string) {
	s.t.Helper()
	if err := s.try(statement); err != nil {
		s.t.Fatalf("%s: %v", statement, err)
	}
}

// begin runs statements in a transaction, and returns what runs more in it. The transaction ends after an error, and
// with the test.
func (s *scene) begin(statements ...string) func(...string) error {
	s.t.Helper()
	tx, err := s.db.BeginTx(s.t.Context(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = tx.Rollback() }) // it has ended, if the test has passed
	run := func(statements ...string) error {
		for _, statement := range statements {
			if _, err := tx.ExecContext(s.t.Context(), statement); err != nil {
				return errors.Join(err, tx.Rollback())
			}
		}
		return nil
	}
	if err := run(statements...); err != nil {
		s.t.Fatal(err)
	}
	return run
}

// changed returns a URL with another part.
func changed(t *testing.T, raw string, change func(*url.URL, url.Values)) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	change(u, query)
	u.RawQuery = query.Encode()
	return u.String()
}

// connect returns the error of a connection.
func connect(t *testing.T, raw string) error {
	t.Helper()
	return open(t, raw).PingContext(t.Context())
}

// A commit whose context has ended has an unknown outcome even if PostgreSQL reports success: it reports success also for
// a commit that its synchronous standby has not received. An error that PostgreSQL reports is reliable.
func TestUnknownCommit(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	serialization := &pq.Error{Code: "40001"}
	cases := []struct {
		name    string
		ctx     context.Context
		err     error
		unknown bool
	}{
		{"committed", t.Context(), nil, false},
		{"reported as committed after the context has ended", ended, nil, true},
		{"the connection was lost", t.Context(), io.EOF, true},
		{"rolled back at the commit", t.Context(), serialization, false},
		{"refused at the commit", t.Context(), &pq.Error{Code: "23503"}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := dialect.CommitError(c.ctx, c.err)
			if errors.Is(err, sqldb.ErrUnknownCommit) != c.unknown {
				t.Fatalf("CommitError: got %v, want ErrUnknownCommit: %t", err, c.unknown)
			}
			if !c.unknown && !errors.Is(err, c.err) {
				t.Fatalf("CommitError: got %v, want it to wrap %v", err, c.err)
			}
		})
	}
}
