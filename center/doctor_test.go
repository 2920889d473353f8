package center_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
)

// finding returns what an examination says of a check, as "STATUS text".
func finding(t *testing.T, c *center.Center, check string) (list []string) {
	t.Helper()
	findings, err := c.Diagnose(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Check == check {
			list = append(list, f.Status+" "+f.Finding)
		}
	}
	return list
}

func wantFinding(t *testing.T, c *center.Center, check, want string) {
	t.Helper()
	if list := finding(t, c, check); !strings.Contains(strings.Join(list, "\n"), want) {
		t.Errorf("%s: %q, want %s", check, list, want)
	}
}

func TestDoctorTellsHowFarClocksAreApart(t *testing.T) {
	t.Parallel()
	for skew, want := range map[string]string{
		"1 hour": "NOTE this host's clock is 1h0m0s behind the database's", "-1 hour": "NOTE this host's clock is 1h0m0s ahead of the database's", "0": "OK this host's clock is the database's within ",
	} {
		wantFinding(t, centertest.Open(t, skewedClock(t, skew), center.Options{}), "clock", want)
	}
}

// What differs from a database as it comes is told: the isolation, what stands in between, Galera.
func TestDoctorTellsOfTheDatabase(t *testing.T) {
	t.Parallel()
	raw := testdb.URL(t, testdb.Postgres)
	c := centertest.Open(t, raw, center.Options{})
	wantFinding(t, c, "database", "OK isolation read committed")
	wantFinding(t, c, "database", "NOTE nothing ends a transaction whose client is gone")
	if list := finding(t, c, "pooler"); len(list) != 0 {
		t.Errorf("a pooler where there is none: %q", list)
	}
	through, _ := testdb.Through(t, raw)
	u, err := url.Parse(through)
	if err != nil {
		t.Fatal(err)
	}
	wantFinding(t, centertest.Open(t, through, center.Options{}), "pooler", "NOTE something stands between port "+u.Port()+" and the server (PgBouncer, a proxy, a translated address): statements are not prepared, and a heartbeat takes five times the processor time")
	strict := centertest.Open(t, raw+"&default_transaction_isolation=serializable&idle_in_transaction_session_timeout=60000", center.Options{})
	wantFinding(t, strict, "database", "NOTE isolation serializable: more transactions have to be tried again")
	if list := strings.Join(finding(t, strict, "database"), "\n"); strings.Contains(list, "nothing ends a transaction") {
		t.Error(list)
	}

	m := centertest.Open(t, testdb.URL(t, testdb.MySQL), center.Options{})
	wantFinding(t, m, "database", "OK isolation REPEATABLE READ")
	m.FenceByWriting()
	wantFinding(t, m, "database", "NOTE a Galera cluster")
}

// In a rolling upgrade the tables come first.
func TestDoctorTellsOfANewerSchema(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Open(t, url, center.Options{})
		wantFinding(t, c, "schema", "OK version ")
		execAll(t, c, "INSERT INTO schedule_schema_version (version_id, is_applied) VALUES (999, TRUE)")
		wantFinding(t, c, "schema", "NOTE version 999, newer than this program's")
	})
}
