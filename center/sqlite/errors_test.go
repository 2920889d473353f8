package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	driver "modernc.org/sqlite"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
)

// classCase is how an error of a row of classes comes about: by statements on two connections to a file, each of which
// begins with the name of its connection. The last one has the error. A case of row 0 is about all other errors.
type classCase struct {
	row        int
	want       sqldb.Class
	statements []string
}

var classCases = []classCase{
	{5, sqldb.RolledBack, []string{"b: BEGIN IMMEDIATE", "a: UPDATE items SET n = 1"}},
	{5, sqldb.RolledBack, []string{"a: BEGIN DEFERRED", "a: SELECT n FROM items", "b: UPDATE items SET n = 1", "a: UPDATE items SET n = 2"}},
	{6, sqldb.RolledBack, []string{"a: open SELECT n FROM items", "a: DROP TABLE items"}},
	{8, sqldb.ReadOnly, []string{"a: PRAGMA query_only = 1", "a: UPDATE items SET n = 1"}},
	{1555, sqldb.Duplicate, []string{"a: INSERT INTO items (id) VALUES (1)"}},
	{2067, sqldb.Duplicate, []string{"a: UPDATE items SET name = 'same'"}},
	{18, sqldb.BadData, []string{"a: UPDATE items SET name = zeroblob(2000000000)"}},
	{19, sqldb.BadData, []string{"a: UPDATE items SET n = NULL"}},
	{19, sqldb.BadData, []string{"a: UPDATE items SET n = -1"}},
	{20, sqldb.BadData, []string{"a: INSERT INTO items (id) VALUES ('x')"}},

	{0, sqldb.NoTable, []string{"a: SELECT * FROM no_such_table"}},
	{0, sqldb.Refused, []string{"a: SELEC"}},
	{0, sqldb.Refused, []string{"a: SELECT no_such_column FROM items"}},
}

// Each row of the table of classes has a case.
func TestErrorClasses(t *testing.T) {
	met := map[int]bool{0: true}
	for _, c := range classCases {
		t.Run(fmt.Sprint(c.row), func(t *testing.T) {
			err := meet(t, c.statements)
			code := 0
			if e, ok := errors.AsType[*driver.Error](err); ok {
				code = e.Code()
			}
			if got := dialect.Class(fmt.Errorf("wrapped: %w", err)); got != c.want || c.row != 0 && code != c.row && code&0xff != c.row {
				t.Errorf("class of %d, %v: got %s, want %s of %d", code, err, got, c.want, c.row)
			}
		})
		met[c.row] = met[c.row] || c.want == classes[c.row]
	}
	for row := range classes {
		if !met[row] {
			t.Errorf("the row %d has no case", row)
		}
		delete(met, row)
	}
	if len(met) > 1 {
		t.Errorf("cases of no row: %v", met)
	}
	if got := dialect.Class(context.Canceled); got != sqldb.Other {
		t.Errorf("class of an error of another package: got %s, want other", got)
	}
}

// meet returns the error of the last statement.
func meet(t *testing.T, statements []string) (err error) {
	t.Helper()
	path := strings.TrimPrefix(testdb.URL(t, testdb.SQLite), "sqlite:")
	conns := map[string]*sql.Conn{"a": connTo(t, path), "b": connTo(t, path)}
	all := append([]string{
		"a: CREATE TABLE items (id INTEGER PRIMARY KEY, n INT NOT NULL DEFAULT 0 CHECK (n >= 0), name TEXT UNIQUE)",
		"a: INSERT INTO items (id) VALUES (1), (2)",
	}, statements...)
	for _, line := range all {
		if err != nil {
			t.Fatal(err)
		}
		name, statement, _ := strings.Cut(line, ": ")
		if query, open := strings.CutPrefix(statement, "open "); open {
			rows, err := conns[name].QueryContext(t.Context(), query) //nolint:rowserrcheck // the rows stay open on purpose
			if err != nil || !rows.Next() {
				t.Fatalf("%s: %v", query, err)
			}
			defer rows.Close()
			continue
		}
		_, err = conns[name].ExecContext(t.Context(), statement)
	}
	return err
}

func connTo(t *testing.T, path string) *sql.Conn {
	t.Helper()
	pool, err := URL("sqlite:"+path).Pool(sqldb.RoleStore, sqldb.PoolOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pool.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(conn.Close(), pool.Close()); err != nil {
			t.Error(err)
		}
	})
	return conn
}
