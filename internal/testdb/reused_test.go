package testdb

import (
	"testing"
)

// The next test finds the tables of the roster, without rows, and nothing else. What the last one has left open ends.
func TestReusedDatabasesAreCleared(t *testing.T) {
	t.Parallel()
	for _, kind := range serverKinds(t) {
		outer := t
		var first string
		t.Run(kind, func(t *testing.T) {
			first = Reused(t, kind)
			db := connect(outer, first)
			for _, statement := range []string{
				"CREATE TABLE schedule_schema_version (id INT)", "INSERT INTO schedule_schema_version VALUES (1)",
				"CREATE TABLE schedule_queue (id INT)", "INSERT INTO schedule_queue VALUES (1)",
				"CREATE VIEW schedule_assignment AS SELECT id FROM schedule_queue",
				"CREATE TABLE orders (id INT)", "CREATE VIEW open_orders AS SELECT id FROM orders",
			} {
				if _, err := db.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			tx, err := db.BeginTx(outer.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			outer.Cleanup(func() { _ = tx.Rollback() })
			if _, err := tx.ExecContext(t.Context(), "INSERT INTO orders VALUES (1)"); err != nil {
				t.Fatal(err)
			}
		})
		t.Run(kind+" again", func(t *testing.T) {
			again := Reused(t, kind)
			if again != first {
				t.Fatalf("the second database is %s, want %s", again, first)
			}
			db := connect(t, again)
			for query, want := range map[string]int{
				"SELECT COUNT(*) FROM schedule_schema_version": 1,
				"SELECT COUNT(*) FROM schedule_queue":          0,
				"SELECT COUNT(*) FROM schedule_assignment":     0,
			} {
				var got int
				if err := db.QueryRowContext(t.Context(), query).Scan(&got); err != nil || got != want {
					t.Errorf("%s: %d (%v), want %d", query, got, err, want)
				}
			}
			for _, statement := range []string{"CREATE TABLE orders (id INT)", "CREATE VIEW open_orders AS SELECT id FROM orders"} {
				if _, err := db.ExecContext(t.Context(), statement); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A test that fails may have changed the tables.
func TestFailedTestsReuseNothing(t *testing.T) {
	for _, kind := range serverKinds(t) {
		first := ""
		t.Run(kind, func(t *testing.T) { first = Reused(failed{t}, kind) })
		t.Run(kind+" again", func(t *testing.T) {
			if again := Reused(t, kind); again == first {
				t.Error("the database of a failed test is used again")
			}
		})
	}
}

// failed is a test that has failed.
type failed struct{ testing.TB }

func (failed) Failed() bool { return true }
