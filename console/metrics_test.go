package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/internal/testdb"
)

// The console has what the doctor finds as metrics, for clients that may look at everything. What is not known is not 0.
func TestMetricsOfFindings(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{})
	r := s.get("/metrics")
	for _, want := range []string{
		`rota_findings{kind="DEAD_ITEMS",own_sign="BASE",status="PROBLEM",task_type="settle"} 1` + "\n",
		`rota_findings{kind="PAUSED",own_sign="BASE",status="NOTE",task_type="regions"} 1` + "\n",
		`rota_findings_known{own_sign="BASE"} 1` + "\n", `rota_findings_age_seconds{own_sign="BASE"} `,
	} {
		if r.code != http.StatusOK || !strings.Contains(r.body, want) {
			t.Errorf("status %d, no %q in\n%s", r.code, want, r.body)
		}
	}
	if problems, err := promlint.New(strings.NewReader(r.body)).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("Prometheus's conventions: %v, %v, want no problem and no error", problems, err)
	}
	settleOnly := func(*http.Request) (console.Actor, error) {
		return console.Actor{Name: "eve", May: func(_ console.Right, task string) bool { return task == "settle" }}, nil
	}
	guarded := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Access: settleOnly})
	for _, page := range []string{"/metrics", "/metrics?task=settle"} {
		if r := guarded.do(request(http.MethodGet, page)); r.code != http.StatusForbidden {
			t.Errorf("a client that may look at one task type gets status %d:\n%s", r.code, r.body)
		}
	}
	away := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{})
	s.must(away.center.Close())
	const unknown = `rota_findings_age_seconds{own_sign="BASE"} NaN`
	if r := away.get("/metrics"); !strings.Contains(r.body, `rota_findings_known{own_sign="BASE"} 0`) || !strings.Contains(r.body, unknown) || strings.Contains(r.body, "rota_findings{") {
		t.Errorf("without a database, status %d:\n%s", r.code, r.body)
	}
}
