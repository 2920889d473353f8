package main

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
)

// The doctor accepts a cursor of transactions while a transaction has just written.
func TestDoctorAcceptsACursorDuringAWrite(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.Postgres))
	s.exec("CREATE TABLE sales (id BIGSERIAL PRIMARY KEY, xid xid8 NOT NULL DEFAULT pg_current_xact_id())")
	s.exec("CREATE TABLE sums (total BIGINT)")
	writeFile(t, filepath.Join(s.dir, "rota.yaml"), `database: "`+s.url+`"
tasks:
  settle:
    queues: 4
    execute_number: 10
    dealer:
      sql:
        select: >-
          SELECT xid, id FROM sales WHERE {{mine id}} AND (xid, id) > ({{cursor.xid}}, {{cursor.id}})
          AND xid < {{horizon}} ORDER BY xid, id LIMIT {{limit}}
        execute_each: UPDATE sums SET total = total + {{row.id}}
        key: id
        cursor: [xid, id]
        cursor_start: [0, 0]
`)
	tx, err := s.c.DB().BeginTx(t.Context(), nil)
	s.must(err)
	defer tx.Rollback()
	_, err = tx.ExecContext(t.Context(), "INSERT INTO sales DEFAULT VALUES")
	s.must(err)
	stdout, stderr, _ := s.try("doctor settle -c rota.yaml")
	if strings.Contains(stdout, "STATEMENTS") {
		t.Errorf("a statement is a finding:\n%s%s", stdout, stderr)
	}
	if strings.Contains(stdout, "CURSOR") {
		t.Errorf("a transaction that has just begun is a finding:\n%s%s", stdout, stderr)
	}
	s.asGuest(func() {
		stdout, stderr, _ := s.try("doctor settle -c rota.yaml")
		if !strings.Contains(stdout, "settle: rows that were written after the transaction of process ") || !strings.Contains(stdout, "NOTE     CURSOR") {
			t.Errorf("a transaction of unknown age is no finding:\n%s%s", stdout, stderr)
		}
	})
}

// asGuest calls f while s connects as a role that may not see the sessions of others.
func (s *testRoster) asGuest(f func()) {
	s.Helper()
	role := fmt.Sprintf("guest_%d", rand.Uint64())
	u, err := url.Parse(s.url)
	s.must(err)
	var schema string
	s.must(s.c.DB().QueryRowContext(s.Context(), "SELECT current_schema()").Scan(&schema))
	s.exec("CREATE ROLE " + role + " LOGIN PASSWORD 'guest'")
	defer s.exec("DROP ROLE " + role)
	s.exec("GRANT USAGE ON SCHEMA " + schema + " TO " + role)
	defer s.exec("DROP OWNED BY " + role)
	s.exec("GRANT ALL ON ALL TABLES IN SCHEMA " + schema + " TO " + role)
	owner := s.url
	defer func() { s.url = owner }()
	u.User = url.UserPassword(role, "guest")
	s.url = u.String()
	f()
}
