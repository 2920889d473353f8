package center_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/dutyrota/rota/center"
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

// Workers an hour ahead of the database, or behind it, decide the same: its clock alone counts (L2). The
// database's clock is moved by a function that stands in the search path before PostgreSQL's own.
func TestConformanceWithSkewedClocks(t *testing.T) {
	t.Parallel()
	for _, skew := range []string{"1 hour", "-1 hour"} {
		t.Run(skew, func(t *testing.T) {
			t.Parallel()
			url := testdb.URL(t, testdb.Postgres)
			c := centertest.Open(t, url, center.Options{})
			execAll(t, c, `CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$
				SELECT pg_catalog.clock_timestamp() + INTERVAL '`+skew+`' $$`)
			centertest.RunAbout(t, url+"&search_path=public,pg_catalog", centertest.Clock)
		})
	}
}
