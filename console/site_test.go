package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

// Below in/NAME/ are the pages of another environment. A change there is one of that environment only.
func TestEnvironments(t *testing.T) {
	t.Parallel()
	var asked []string
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Access: func(r *http.Request) (console.Actor, error) {
		asked = append(asked, console.OwnSign(r))
		return allowed(r)
	}})
	const sign = "TEST & more/..%2f"
	other, err := s.center.In(sign)
	s.must(err)
	_, err = ops.New(other).Tasks().Define(t.Context(), "settle", center.Settings{Queues: 3})
	s.must(err)
	prefix := "/in/" + url.PathEscape(sign) + "/"
	got := s.get("/")
	if !strings.Contains(got.body, `href="in/`+url.PathEscape(sign)+`/"`) && !strings.Contains(unescape(got.body), `href="in/`+url.PathEscape(sign)+`/"`) {
		t.Errorf("no link to the other environment: %s", got.body)
	}
	got = s.get(prefix + "task?task=settle")
	if got.code != http.StatusOK || !strings.Contains(got.body, "served by 0 workers") || strings.Contains(got.body, "web1") || !strings.Contains(got.body, `href="../.././"`) {
		t.Errorf("status %d: %s", got.code, got.body)
	}
	for _, link := range s.check(prefix+"task?task=settle", got.body) {
		if r := s.get(link); r.code != http.StatusOK {
			t.Errorf("%s leads to %s: status %d", prefix, link, r.code)
		}
	}
	if got := s.do(post(strings.TrimPrefix(prefix, "/")+"task-pause", confirmed(values("task", "settle")))); got.code != http.StatusSeeOther {
		t.Fatalf("status %d: %s", got.code, got.body)
	}
	list, err := ops.New(other).Tasks().List(t.Context(), "settle")
	s.must(err)
	if !list[0].Paused || s.task("settle").Paused {
		t.Errorf("paused: %t there, %t here", list[0].Paused, s.task("settle").Paused)
	}
	if got := s.get("/in/nowhere/"); got.code != http.StatusNotFound {
		t.Errorf("an environment that does not exist: status %d", got.code)
	}
	if got := s.do(request(http.MethodGet, "/in/TEST")); got.code != http.StatusSeeOther || got.Get("Location") != "./TEST/" {
		t.Errorf("without the slash: status %d to %q", got.code, got.Get("Location"))
	}
	if joined := strings.Join(asked, ","); !strings.Contains(joined, "BASE") || !strings.Contains(joined, sign) {
		t.Errorf("Access was asked about %q", asked)
	}
}

// People who have not signed in learn nothing of an environment, not even whether it is there.
func TestEnvironmentsNeedASignIn(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Access: annsPassword(t).Access})
	other, err := s.center.In("TEST")
	s.must(err)
	_, err = ops.New(other).Tasks().Define(t.Context(), "settle", center.Settings{Queues: 3})
	s.must(err)
	for _, page := range []string{"/in/TEST/task?task=settle", "/in/nowhere/"} {
		if got := s.do(request(http.MethodGet, page)); got.code != http.StatusUnauthorized || got.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: status %d: %s", page, got.code, got.body)
		}
	}
	r := post("in/TEST/task-pause", confirmed(values("task", "settle")))
	r.SetBasicAuth("ann", "correct horse")
	if got := s.do(r); got.code != http.StatusSeeOther || !strings.HasPrefix(got.Get("Location"), "task?task=settle") {
		t.Errorf("a change with the password: status %d to %s: %s", got.code, got.Get("Location"), got.body)
	}
}
