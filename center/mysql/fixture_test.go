package mysql

import (
	"database/sql"
	"testing"

	"github.com/dutyrota/rota/internal/sqldb"
)

// open opens a pool for a role. It closes the pool when the test ends.
func open(t *testing.T, url string, role sqldb.Role) *sql.DB {
	t.Helper()
	d := URL(url)
	if d.Err != nil {
		t.Fatal(d.Err)
	}
	db, err := d.Pool(role, sqldb.PoolOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}
