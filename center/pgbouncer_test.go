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

// pooled returns the URL of an empty database behind a PgBouncer in transaction mode.
func pooled(t *testing.T) string {
	t.Helper()
	return testdb.Pooled(t, testdb.URL(t, testdb.Postgres)).URL()
}

// Behind a PgBouncer in transaction mode each transaction may be on another connection.
func TestConformanceThroughPgBouncer(t *testing.T) {
	t.Parallel()
	centertest.RunAbout(t, pooled(t), centertest.Session)
}

// What makes that work is that a statement with parameters is one round trip (binary_parameters): in two,
// PgBouncer sends the second to a server where another statement was prepared, and its rows come back.
func TestPgBouncerMixesUpPreparedStatements(t *testing.T) {
	t.Parallel()
	url := pooled(t)
	plain, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if mixed := mixedUp(t, plain); mixed == 0 {
		t.Error("lib/pq as it is has mixed up nothing: why force binary_parameters?")
	}
	c := centertest.Open(t, url, center.Options{})
	if mixed := mixedUp(t, c.DB()); mixed > 0 {
		t.Errorf("%d statements were mixed up", mixed)
	}
}

// mixedUp asks many things at once and counts the answers to other questions, and the errors.
func mixedUp(t *testing.T, db *sql.DB) int64 {
	t.Helper()
	db.SetMaxIdleConns(20)
	var mixed atomic.Int64
	var wg sync.WaitGroup
	for worker := range 20 {
		wg.Go(func() {
			for i := range 50 {
				var got int
				err := db.QueryRowContext(context.WithoutCancel(t.Context()), fmt.Sprintf(`SELECT $1::int + %d`, worker), i).Scan(&got)
				if err != nil || got != worker+i {
					mixed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return mixed.Load()
}
