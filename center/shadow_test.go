package center_test

import (
	"database/sql"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
)

// execURL executes statements on a connection of its own.
func execURL(t *testing.T, url string, statements ...string) {
	t.Helper()
	db, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// PostgreSQL prefers an operator of any schema on the search path with exactly the types of the operands to one of its
// own that needs a cast: a role that may CREATE there would run code as ours.
func TestOperatorsOfOthersDoNotRun(t *testing.T) {
	t.Parallel()
	url := testdb.URL(t, testdb.Postgres)
	centertest.Open(t, url, center.Options{}) // creates the tables and views
	for _, o := range []struct{ operator, left, right, result string }{
		{"*", "bigint", "interval", "interval"},
		{"*", "integer", "interval", "interval"},
		{"*", "interval", "bigint", "interval"},
		{"*", "interval", "integer", "interval"},
		{"||", "text", "integer", "text"},
		{"||", "text", "bigint", "text"},
		{"*", "numeric", "integer", "numeric"},
		{"*", "numeric", "bigint", "numeric"},
	} {
		name := "captured_" + o.left + "_" + o.right
		execURL(t, url, `CREATE OR REPLACE FUNCTION `+name+`(`+o.left+`, `+o.right+`) RETURNS `+o.result+` LANGUAGE plpgsql AS
			$$BEGIN RAISE EXCEPTION 'the operator of another role runs'; END$$`,
			`CREATE OPERATOR `+o.operator+` (LEFTARG = `+o.left+`, RIGHTARG = `+o.right+`, FUNCTION = `+name+`)`)
	}
	if !testing.Short() { // it is the rest of the statements, and takes minutes
		centertest.RunAbout(t, url, centertest.Clock)
	}
	c := centertest.Open(t, url, center.Options{})
	sendHeartbeats(t, c, 3)
	if n := preparedInPostgres(t, c.HeartbeatPool()); n != 2 {
		t.Errorf("%d statements are prepared for heartbeats, want 2: the ends of the connection were not compared", n)
	}
}
