package doctor_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
)

// findingsOf returns the findings of one check, each as "STATUS text".
func findingsOf(t *testing.T, c *center.Center, check string) (list []string) {
	t.Helper()
	findings, err := doctor.Diagnose(t.Context(), ops.New(c), "")
	must(t, err)
	for _, f := range findings {
		if f.Check == check {
			list = append(list, f.Status+" "+f.Text)
		}
	}
	return list
}

func wantFinding(t *testing.T, c *center.Center, check, want string) {
	t.Helper()
	if got := findingsOf(t, c, check); !strings.Contains(strings.Join(got, "\n"), want) {
		t.Errorf("findings of check %s: got %q, want %q among them", check, got, want)
	}
}

func TestDiagnoseReportsClockSkew(t *testing.T) {
	t.Parallel()
	for skew, want := range map[string]string{
		"1 hour":  "NOTE this host's clock is 1h0m0s behind the database's",
		"-1 hour": "NOTE this host's clock is 1h0m0s ahead of the database's",
		"0":       "OK this host's clock is the database's within ",
	} {
		wantFinding(t, centertest.Open(t, centertest.SkewedClock(t, skew), center.Options{}), "clock", want)
	}
}

// Diagnose reports what differs from a newly installed database.
func TestDiagnoseReportsDatabase(t *testing.T) {
	t.Parallel()
	raw := testdb.URL(t, testdb.Postgres)
	t.Run("PostgreSQL defaults", func(t *testing.T) {
		c := centertest.Open(t, raw, center.Options{})
		wantFinding(t, c, "database", "OK isolation read committed")
		if got := findingsOf(t, c, "pooler"); len(got) != 0 {
			t.Errorf("findings without a pooler: got %q, want none", got)
		}
	})
	t.Run("PostgreSQL behind a proxy", func(t *testing.T) {
		through, _ := testdb.Through(t, raw)
		u, err := url.Parse(through)
		must(t, err)
		want := "NOTE something stands between port " + u.Port() + " and the server (PgBouncer, a proxy, a translated address): statements are not prepared, and a heartbeat takes five times the processor time"
		wantFinding(t, centertest.Open(t, through, center.Options{}), "pooler", want)
	})
	t.Run("PostgreSQL with stricter settings", func(t *testing.T) {
		c := centertest.Open(t, raw+"&default_transaction_isolation=serializable", center.Options{})
		wantFinding(t, c, "database", "NOTE isolation serializable: more transactions have to be tried again")
	})
	t.Run("MySQL", func(t *testing.T) {
		c := centertest.Open(t, testdb.URL(t, testdb.MySQL), center.Options{})
		wantFinding(t, c, "database", "OK isolation REPEATABLE READ")
		c.Roster().DB.Dialect = c.Roster().DB.WithWriteFence()
		wantFinding(t, c, "database", "NOTE a Galera cluster")
		centertest.Define(t, c, "gone", center.Settings{Queues: 1})
		centertest.Define(t, c, "settle", center.Settings{Queues: 1})
		centertest.Exec(t, c, "DELETE FROM schedule_task_type WHERE task_type = 'gone'")
		wantFinding(t, c, "clock", "at most 1s is allowed")
		wantFinding(t, c, "settings", "PROBLEM the row in schedule_task_type is gone")
	})
}

// A rolling upgrade migrates the tables before it replaces the programs.
func TestDiagnoseReportsNewerSchema(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Open(t, url, center.Options{})
		wantFinding(t, c, "schema", "OK version ")
		centertest.Exec(t, c, "INSERT INTO schedule_schema_version (version_id, is_applied) VALUES (999, TRUE)")
		wantFinding(t, c, "schema", "NOTE version 999, newer than this program's")
	})
}

// Diagnose tries the rights that docs/security.md grants to a worker.
func TestDiagnoseTriesGrants(t *testing.T) {
	t.Parallel()
	var want []string
	for _, grant := range grantsOf(t, "security.md") {
		if right, toWorker := strings.CutSuffix(grant, " TO app"); toWorker {
			want = append(want, strings.TrimPrefix(right, "GRANT "))
		}
	}
	if diff := cmp.Diff(want, doctor.WorkerPrivileges()); diff != "" || len(want) == 0 {
		t.Errorf("rights of a worker (-page +Diagnose):\n%s", diff)
	}
}
