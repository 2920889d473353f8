package center_test

import (
	"database/sql"
	"testing"

	"go.uber.org/goleak"

	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		centertest.Run(t, url)
	})
}

// One bad row stops no server except its own, also where nothing refuses the row (S13).
func TestConformanceWithoutConstraints(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		centertest.RunUnconstrained(t, url)
	})
}

// Workers whose clocks are an hour ahead of the database, or behind it, decide the same: only the database's clock
// counts (L2).
func TestConformanceWithSkewedClocks(t *testing.T) {
	t.Parallel()
	for _, skew := range []string{"1 hour", "-1 hour"} {
		t.Run(skew, func(t *testing.T) {
			t.Parallel()
			centertest.RunAbout(t, skewedClock(t, skew), centertest.Clock)
		})
	}
}

// skewedClock returns the URL of an empty PostgreSQL database whose clock_timestamp() is ahead by skew: the function
// stands before PostgreSQL's own in the search path. A view and a default keep the function that they find when they are
// created, so it has to exist before the tables.
func skewedClock(t *testing.T, skew string) (url string) {
	t.Helper()
	url = testdb.URL(t, testdb.Postgres)
	db, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.ExecContext(t.Context(), `CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$
		SELECT pg_catalog.clock_timestamp() + INTERVAL '`+skew+`' $$`)
	if err != nil {
		t.Fatal(err)
	}
	return url + "&search_path=public,pg_catalog"
}
