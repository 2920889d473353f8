package center_test

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
)

// L7: a session of PostgreSQL that begins while its database is read-only, for maintenance or for a fail-over, stays
// read-only. The pools give it up, and go on when the database takes writes again.
func TestSessionsThatBeganReadOnly(t *testing.T) {
	t.Parallel()
	for _, kind := range testdb.Kinds(t) {
		if kind != testdb.Postgres {
			continue // elsewhere a server is read-only, and not a session
		}
		url := testdb.URL(t, kind)
		f := newFenced(t, url)
		db := f.c.Roster().DB
		pools := map[string]*sql.DB{"store": db.Store, "heartbeat": db.Heartbeat, "dealers": db.Dealers}
		write := func(pool *sql.DB) error {
			_, err := sqldb.Single{Pool: pool}.ExecContext(t.Context(), "UPDATE orders SET state = $1", "WRITTEN")
			return err
		}
		fenced := func() error { return center.ExecFenced(f.batch, f.c.DB(), "UPDATE orders SET state = 'FENCED'") }
		admin, err := sql.Open("postgres", url)
		must(t, err)
		defer admin.Close()
		admin.SetMaxOpenConns(1)
		var name string
		must(t, admin.QueryRowContext(t.Context(), "SELECT current_database()").Scan(&name))
		do := func(statement string) {
			_, err := admin.ExecContext(t.Context(), statement)
			must(t, err)
		}
		do(fmt.Sprintf("ALTER DATABASE %q SET default_transaction_read_only = on", name))
		do(`SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		for name, pool := range pools {
			for range 2 { // the second statement may be prepared
				if err := write(pool); db.Class(err) != sqldb.ReadOnly {
					t.Errorf("%s: %v, want that the database is read-only", name, err)
				}
			}
		}
		if err := fenced(); db.Class(err) != sqldb.ReadOnly {
			t.Errorf("ExecFenced: %v, want that the database is read-only", err)
		}
		do(fmt.Sprintf("ALTER DATABASE %q RESET default_transaction_read_only", name))
		for name, pool := range pools {
			if err := write(pool); err != nil {
				t.Errorf("%s, afterwards: %v", name, err)
			}
		}
		must(t, fenced())
	}
}
