package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/internal/testdb"
)

// While the database is away, or swallows every packet, the pages show what they read last, and say since when it does
// not answer, and why. A viewer does not wait for the database. A page that nobody has looked at says that it is being
// read, and does not say that there is nothing.
func TestPagesOutliveAnOutage(t *testing.T) {
	t.Parallel()
	for _, kind := range testdb.Kinds(t) {
		if kind == testdb.SQLite {
			continue // it has no network
		}
		for name, outage := range map[string]struct{ begin, end func(*testdb.Proxy) }{
			"refused":   {func(p *testdb.Proxy) { p.Refuse(true); p.Cut() }, func(p *testdb.Proxy) { p.Refuse(false) }},
			"swallowed": {func(p *testdb.Proxy) { p.Swallow(true) }, func(p *testdb.Proxy) { p.Swallow(false); p.Cut() }},
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				url, proxy := testdb.Through(t, testdb.URL(t, kind))
				s := newSite(t, url, console.Options{})
				s.get("/task?task=settle")
				outage.begin(proxy)
				const banner = "The database does not answer"
				s.until("/task?task=settle", func(r reply) bool { return strings.Contains(r.body, banner) })
				if r := s.get("/task?task=settle"); r.code != http.StatusOK || !strings.Contains(r.body, "Continuous, 4 queues") {
					t.Errorf("status %d: %s", r.code, r.body)
				}
				if r := s.do(request(http.MethodGet, "/")); !strings.Contains(r.body, `id="task-settle"`) || strings.Contains(r.body, "Nothing is wrong") {
					t.Errorf("the first page, which nobody has looked at: %s", r.body)
				}
				for _, page := range []string{"/events", "/items"} {
					s.until(page, func(r reply) bool {
						return r.code == http.StatusOK && checking(r) && strings.Contains(r.body, "it failed first <time")
					})
				}
				outage.end(proxy)
				for _, page := range []string{"/task?task=settle", "/events"} {
					s.until(page, func(r reply) bool {
						return r.code == http.StatusOK && !checking(r) && !strings.Contains(r.body, banner)
					})
				}
			})
		}
	}
}

// until looks at a page until it is as wanted.
func (s *site) until(page string, wanted func(reply) bool) {
	s.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		r := s.do(request(http.MethodGet, page))
		if wanted(r) {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("%s after two minutes: status %d: %s", page, r.code, r.body)
		}
	}
}

// What was wrong before an outage, since nobody knows when, is not new after it.
func TestFindingsAreNotNewAfterAnOutage(t *testing.T) {
	t.Parallel()
	for _, kind := range testdb.Kinds(t) {
		if kind == testdb.SQLite {
			continue // it has no network
		}
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url, proxy := testdb.Through(t, testdb.URL(t, kind))
			s := newSite(t, url, console.Options{})
			const undated = `<span class="since"></span>`
			known := func(r reply) bool { return !checking(r) && strings.Contains(r.body, "PAUSED") }
			s.until("/", known)
			before := strings.Count(s.get("/").body, undated)
			proxy.Refuse(true)
			proxy.Cut()
			s.until("/", func(r reply) bool { return strings.Contains(r.body, "Not checked for") })
			proxy.Refuse(false)
			s.until("/", func(r reply) bool { return known(r) && !strings.Contains(r.body, "Not checked for") })
			if after := strings.Count(s.get("/").body, undated); before == 0 || after != before {
				t.Errorf("%d findings have no time, and %d had none before the outage: %s", after, before, s.get("/").body)
			}
		})
	}
}

// A page says that the database was too slow for a change. It was empty, with the status 200.
func TestChangesThatTakeTooLong(t *testing.T) {
	t.Parallel()
	racetest.Defer(t)
	url, proxy := testdb.Through(t, testdb.URL(t, testdb.Postgres))
	s := newSite(t, url, console.Options{Access: allowed})
	proxy.Delay(700 * time.Millisecond) // in each direction
	got := s.do(request(http.MethodGet, "/queue-split?task=settle&queue=1"))
	if got.code != http.StatusServiceUnavailable || !strings.Contains(got.body, `role="alert"`) {
		t.Errorf("status %d, want 503: %q", got.code, got.body)
	}
	proxy.Delay(0)
}
