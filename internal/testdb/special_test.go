package testdb

import (
	"context"
	"database/sql"
	"slices"
	"testing"
)

// wantPostgres skips the test if ROTA_TEST_DATABASES omits PostgreSQL.
func wantPostgres(t *testing.T) {
	t.Helper()
	if !slices.Contains(Kinds(t), Postgres) {
		t.Skip("ROTA_TEST_DATABASES omits postgres")
	}
}

// In transaction mode, two sessions of a client take turns on the connections to the server. A session loses the
// settings that it made, and another session gets them.
func TestPooledIsInTransactionMode(t *testing.T) {
	t.Parallel()
	wantPostgres(t)
	db := connect(t, Pooled(t, URL(t, Postgres)).URL())
	pid := func(q interface {
		QueryRowContext(context.Context, string, ...any) *sql.Row
	},
	) (n int) {
		if err := q.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	session, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	before := pid(session)
	tx, err := db.BeginTx(t.Context(), nil) // another session, on the free connection
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if got := pid(tx); got != before {
		t.Errorf("another session has the connection %d, want %d", got, before)
	}
	if got := pid(session); got == before {
		t.Errorf("the session still has the connection %d, which another transaction uses", got)
	}
}

func TestPooledStopsAndStarts(t *testing.T) {
	t.Parallel()
	wantPostgres(t)
	pooler := Pooled(t, Own(t, Postgres).URL())
	db := connect(t, pooler.URL())
	for range 2 {
		if err := db.PingContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := pooler.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := db.PingContext(t.Context()); err == nil {
			t.Error("the killed pooler answers")
		}
		if err := pooler.Start(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStandbyFollowsAndIsPromoted(t *testing.T) {
	t.Parallel()
	wantPostgres(t)
	primary := Own(t, Postgres)
	server, replication := Standby(t, primary)
	db, standby := connect(t, primary.URL()), connect(t, server.URL())
	exec := func(db *sql.DB, statement string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	count := func() (n int) {
		if standby.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders").Scan(&n) != nil {
			return -1 // not there yet
		}
		return n
	}
	exec(db, "CREATE TABLE orders (id INT)")
	exec(db, "INSERT INTO orders VALUES (1)")
	eventually(t, "the standby has the order", func() bool { return count() == 1 })
	replication.Refuse(true)
	replication.Cut()
	exec(db, "INSERT INTO orders VALUES (2)")
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	exec(standby, "SELECT pg_promote()")
	exec(standby, "INSERT INTO orders VALUES (3)")
	if n := count(); n != 2 {
		t.Errorf("the promoted standby has %d orders, want 2: one from before the cut and its own", n)
	}
}

func TestDiskIsFilledAndFreed(t *testing.T) {
	t.Parallel()
	wantPostgres(t)
	server := OwnDisk(t)
	db := connect(t, server.URL())
	write := func() error {
		_, err := db.ExecContext(t.Context(),
			"CREATE TABLE IF NOT EXISTS orders AS SELECT n, repeat('x', 100) FROM generate_series(1, 10000) n")
		return err
	}
	if err := server.Fill(); err != nil {
		t.Fatal(err)
	}
	if err := write(); err == nil {
		t.Error("a full disk takes another megabyte")
	}
	if err := server.Free(); err != nil {
		t.Fatal(err)
	}
	if err := server.Kill(); err != nil { // it may have ended already
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	if err := write(); err != nil {
		t.Error(err)
	}
}
