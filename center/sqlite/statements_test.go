package sqlite_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/internal/sqldb"
)

// openStore opens the roster's pool of a new file that has a table with the numbers 1 to 3.
func openStore(t *testing.T) (db *sql.DB, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "rota.db")
	db, err := sqlite.URL("sqlite:"+file).Pool(sqldb.RoleStore, sqldb.PoolOptions{Create: true})
	must(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() }) // again
	for _, statement := range []string{`CREATE TABLE numbers (n INTEGER)`, `INSERT INTO numbers VALUES (1), (2), (3)`} {
		_, err := db.ExecContext(t.Context(), statement)
		must(t, err)
	}
	return db, file
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// numbers are the rows of a query.
func numbers(t *testing.T, db interface {
	Query(query string, args ...any) (*sql.Rows, error)
}, query string, args ...any,
) (list []int) {
	t.Helper()
	rows, err := db.Query(query, args...)
	must(t, err)
	defer rows.Close()
	for rows.Next() {
		var n int
		must(t, rows.Scan(&n))
		list = append(list, n)
	}
	must(t, rows.Err())
	return list
}

// While somebody reads the rows of a statement, the same statement can be executed again, and the rows stay whole, also
// when the statement has become old meanwhile and is prepared anew.
func TestStatementWithinItsOwnRows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, _ := openStore(t)
		const query = `SELECT n FROM numbers WHERE n >= ? ORDER BY n`
		tx, err := db.BeginTx(t.Context(), nil)
		must(t, err)
		defer func() { must(t, tx.Rollback()) }()
		read := func() (outer, inner []int) {
			rows, err := tx.Query(query, 1)
			must(t, err)
			defer func() { must(t, rows.Close()) }()
			for rows.Next() {
				var n int
				must(t, rows.Scan(&n))
				outer, inner = append(outer, n), append(inner, numbers(t, tx, query, 3)...)
				time.Sleep(4 * time.Minute)
			}
			must(t, rows.Err())
			return outer, inner
		}
		for range 3 { // the second and third time prepared
			if outer, inner := read(); !slices.Equal(outer, []int{1, 2, 3}) || !slices.Equal(inner, []int{3, 3, 3}) {
				t.Errorf("outer rows %v and inner rows %v, want 1 2 3 and 3 3 3", outer, inner)
			}
		}
	})
}

// A prepared statement sees a schema that has changed since, and goes on after an error.
func TestStatementAfterAChange(t *testing.T) {
	t.Parallel()
	db, _ := openStore(t)
	insert := func() error {
		_, err := db.ExecContext(t.Context(), `INSERT INTO numbers (n) VALUES (?)`, 4)
		return err
	}
	for range 3 {
		must(t, insert())
	}
	_, err := db.ExecContext(t.Context(), `CREATE UNIQUE INDEX numbers_n ON numbers (n) WHERE n > 4`)
	must(t, err)
	must(t, insert())
	_, err = db.ExecContext(t.Context(), `ALTER TABLE numbers RENAME TO others`)
	must(t, err)
	if err := insert(); err == nil || !strings.Contains(err.Error(), "no such table") {
		t.Errorf("into a table that is gone: error %v", err)
	}
	_, err = db.ExecContext(t.Context(), `ALTER TABLE others RENAME TO numbers`)
	must(t, err)
	must(t, insert())
	if n := numbers(t, db, `SELECT COUNT(*) FROM numbers`)[0]; n != 8 {
		t.Errorf("%d rows, want 8", n)
	}
}

// A closed pool leaves no statement behind: SQLite would keep the file open.
func TestStatementsEndWithTheirConnection(t *testing.T) {
	t.Parallel()
	db, file := openStore(t)
	for range 3 {
		numbers(t, db, `SELECT n FROM numbers WHERE n > ?`, 0)
	}
	if n := opened(t, file); n == 0 {
		t.Skip("this system does not list the open files of a process")
	}
	must(t, db.Close())
	if n := opened(t, file); n > 0 {
		t.Errorf("the file is open %d times after the pool was closed", n)
	}
}

// opened returns how many open files of this process have a name that begins so.
func opened(t *testing.T, name string) (n int) {
	t.Helper()
	list, _ := os.ReadDir("/proc/self/fd") // of Linux
	for _, f := range list {
		if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && strings.HasPrefix(to, name) {
			n++
		}
	}
	return n
}
