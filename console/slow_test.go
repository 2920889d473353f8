package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/internal/testdb"
)

// A database that takes a second for each statement is slow, and not away: each page comes, and says of each part that
// it is being read, until it is there. What is not known yet is not said to be right.
func TestPagesOfASlowDatabase(t *testing.T) {
	t.Parallel()
	for _, kind := range testdb.Kinds(t) {
		if kind == testdb.SQLite {
			continue // it has no network
		}
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url, proxy := testdb.Through(t, testdb.URL(t, kind))
			s := newSite(t, url, console.Options{})
			pages := []string{ // each page reads the triggers and the workers for its head: theirs come first
				"/triggers", "/workers", "/", "/task?task=settle", "/queue?task=settle&queue=1", "/items", "/runs?task=nightly", "/run?run=nightly",
				"/trigger?trigger=nightly", "/events",
			}
			proxy.Delay(500 * time.Millisecond) // in each direction
			for _, page := range pages {
				r := s.do(request(http.MethodGet, page))
				if r.code != http.StatusOK || !checking(r) {
					t.Errorf("%s to its first viewer: status %d, want 200 and a part that is being checked:\n%s", page, r.code, r.body)
				}
				if strings.Contains(r.body, "Nothing is wrong") || strings.Contains(r.body, "none with trouble") {
					t.Errorf("%s says that nothing is wrong before it is known:\n%s", page, r.body)
				}
			}
			for _, page := range []string{"/task?task=settle", "/items", "/events"} {
				s.until(page, func(r reply) bool { return r.code == http.StatusOK && !checking(r) })
			}
			s.until("/", func(r reply) bool { return strings.Contains(r.body, `href="task?task=settle"`) })
			if r := s.do(request(http.MethodGet, "/")); strings.Contains(r.body, "The database does not answer") {
				t.Errorf("a slow database is said to be away:\n%s", r.body)
			}
			proxy.Delay(0)
		})
	}
}

// A list as JSON or CSV has all its rows or fails: a program cannot see that a part is missing. It waits for a slow
// database.
func TestRecordsOfASlowDatabase(t *testing.T) {
	t.Parallel()
	url, proxy := testdb.Through(t, testdb.URL(t, testdb.Postgres))
	s := newSite(t, url, console.Options{})
	proxy.Delay(500 * time.Millisecond)
	s.until("/?format=json", func(r reply) bool { return r.code == http.StatusOK && strings.Contains(r.body, `"settle"`) })
	proxy.Delay(0)
	proxy.Refuse(true)
	proxy.Cut()
	if r := s.do(request(http.MethodGet, "/events?format=csv")); r.code != http.StatusServiceUnavailable {
		t.Errorf("a list that cannot be read: status %d, want 503: %s", r.code, r.body)
	}
}

// checking reports whether a page lacks a part, or has an old one that is being read again.
func checking(r reply) bool {
	return strings.HasPrefix(r.Get("Content-Type"), "text/html") && strings.Contains(r.body, "data-checking")
}
