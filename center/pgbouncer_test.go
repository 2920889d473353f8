package center_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
)

// pgBouncerURL returns the URL of an empty database behind a PgBouncer in transaction mode.
func pgBouncerURL(t *testing.T) string {
	t.Helper()
	return testdb.Pooled(t, testdb.URL(t, testdb.Postgres)).URL()
}

// Behind a PgBouncer in transaction mode each transaction may be on another connection.
func TestConformanceThroughPgBouncer(t *testing.T) {
	centertest.Variant(t)
	t.Parallel()
	centertest.RunAbout(t, pgBouncerURL(t), centertest.Session)
}

// binary_parameters makes a statement with parameters one round trip. Without it there are two, and PgBouncer may send the
// second to a server on which another client has prepared another statement, whose rows come back.
func TestBinaryParametersBehindPgBouncer(t *testing.T) {
	t.Parallel()
	url := pgBouncerURL(t)
	plain, err := sql.Open("postgres", url)
	must(t, err)
	defer plain.Close()
	if n := countWrongAnswers(t, plain); n == 0 {
		t.Error("wrong answers without binary_parameters: got 0, want some, or the option is not needed")
	}
	c := centertest.Open(t, url, center.Options{})
	if n := countWrongAnswers(t, c.DB()); n > 0 {
		t.Errorf("wrong answers with binary_parameters: got %d, want 0", n)
	}
}

// countWrongAnswers sends different queries concurrently, and counts the errors and the answers to other queries.
func countWrongAnswers(t *testing.T, db *sql.DB) int64 {
	t.Helper()
	db.SetMaxIdleConns(20)
	var wrong atomic.Int64
	var wg sync.WaitGroup
	for client := range 20 {
		wg.Go(func() {
			for i := range 50 {
				var got int
				err := db.QueryRowContext(context.WithoutCancel(t.Context()), fmt.Sprintf(`SELECT $1::int + %d`, client), i).Scan(&got)
				if err != nil || got != client+i {
					wrong.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return wrong.Load()
}
