package postgres

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
)

// lib/pq waits for the answer to its request to cancel a prepared statement. If the server does not answer, a heartbeat
// must not wait that long in addition.
func TestCancelRequestTimesOutEarly(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	timedOut := make(chan string, 2)
	read := func(what string, conn net.Conn) {
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read the reply to %s: got %v, want %v", what, err, os.ErrDeadlineExceeded)
		}
		timedOut <- what
	}
	go read("the statement", dial(t, silent.Addr().String(), false))
	time.Sleep(100 * time.Millisecond) // lib/pq sends the request after the statement
	go read("the cancel request", dial(t, silent.Addr().String(), true))
	if first := <-timedOut; first != "the cancel request" {
		t.Errorf("first to time out: got %s, want the cancel request", first)
	}
	<-timedOut
}

// dial connects as lib/pq does: for a statement of the roster, or to cancel one.
func dial(t *testing.T, address string, toCancel bool) net.Conn {
	t.Helper()
	ctx := t.Context()
	if !toCancel {
		ctx = sqldb.WithDialed(ctx, new(net.Conn))
	}
	conn, err := dialer{prepares: true, limit: sqldb.IOTimeout}.DialContext(ctx, "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// A prepared statement also ends when packets are lost, and the pool then works again.
func TestPreparedStatementEndsWhenPacketsAreLost(t *testing.T) {
	url, p := testdb.Through(t, testdb.URL(t, testdb.Postgres))
	db := openPreparing(t, url)
	query := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := db.ExecContext(ctx, `SELECT $1::int`, 1)
		return err
	}
	for range 3 {
		if err := query(); err != nil {
			t.Fatal(err)
		}
	}
	var n int
	if err := db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM pg_prepared_statements`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	if n != 1 {
		t.Fatalf("prepared statements: got %d, want 1", n)
	}
	p.EndsAndHeals(t, query)
}

// openPreparing opens a pool of one connection that prepares statements even behind a proxy.
func openPreparing(t *testing.T, url string) *sql.DB {
	t.Helper()
	at, err := parse(url)
	if err != nil {
		t.Fatal(err)
	}
	c, err := connector(at.config, sqldb.RoleHeartbeat, sqldb.PoolOptions{})
	if err != nil {
		t.Fatal(err)
	}
	preparing := c.(sqldb.Preparing)
	preparing.MayPrepare = func(context.Context, sqldb.Conn, net.Conn) bool { return true }
	db := sql.OpenDB(preparing)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}
