package console_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// Without Options.Access only clients on the same host may look: no other host, no other name of this host, nobody
// behind a proxy.
func TestLoopbackOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{})
	for name, c := range map[string]struct {
		change func(*http.Request)
		code   int
	}{
		"localhost":            {func(*http.Request) {}, http.StatusOK},
		"IPv6":                 {func(r *http.Request) { r.RemoteAddr, r.Host = "[::1]:5", "[::1]:8330" }, http.StatusOK},
		"IPv6 without a port":  {func(r *http.Request) { r.Host = "[::1]" }, http.StatusOK},
		"another host":         {func(r *http.Request) { r.RemoteAddr = "192.0.2.1:5" }, http.StatusForbidden},
		"no address":           {func(r *http.Request) { r.RemoteAddr = "@" }, http.StatusForbidden},
		"a rebound name":       {func(r *http.Request) { r.Host = "rota.example.com:8330" }, http.StatusForbidden},
		"a name like ours":     {func(r *http.Request) { r.Host = "localhost.example.com" }, http.StatusForbidden},
		"127.0.0.1.nip.io":     {func(r *http.Request) { r.Host = "127.0.0.1.nip.io:8330" }, http.StatusForbidden},
		"no host":              {func(r *http.Request) { r.Host = "" }, http.StatusForbidden},
		"a proxy":              {func(r *http.Request) { r.Header.Set("X-Forwarded-For", "192.0.2.1") }, http.StatusForbidden},
		"a standard proxy":     {func(r *http.Request) { r.Header.Set("Forwarded", "for=192.0.2.1") }, http.StatusForbidden},
		"a proxy with its own": {func(r *http.Request) { r.Header.Set("X-Real-Ip", "192.0.2.1") }, http.StatusForbidden},
	} {
		r := request(http.MethodGet, "/")
		c.change(r)
		got := s.await(r)
		if got.code != c.code {
			t.Errorf("%s: status %d, want %d", name, got.code, c.code)
		}
		if c.code == http.StatusForbidden && strings.Contains(got.body, "settle") {
			t.Errorf("%s: a refusal shows the roster: %s", name, got.body)
		}
	}
}

// newRightsSite makes a console in which a person has the rights to a task type of the same name, and root has all.
func newRightsSite(t *testing.T) *site {
	t.Helper()
	return newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Access: rightsOf})
}

// rightsOf lets each person have all rights to the task type of their name.
func rightsOf(r *http.Request) (console.Actor, error) {
	name := r.Header.Get("Remote-User")
	if name == "" {
		return console.Actor{}, errors.New("sign in first")
	}
	return console.Actor{Name: name, May: func(_ console.Right, taskType string) bool { return taskType == name || name == "root" }}, nil
}

// as makes a request as a person.
func (s *site) as(user string, r *http.Request) reply {
	s.Helper()
	r.Header.Set("Remote-User", user)
	return s.await(r)
}

// The actor of Options.Access sees the rows of the task types to which it has the right, on each page and in each
// format, whatever the address says. It learns of nothing else whether it is there.
func TestRights(t *testing.T) {
	t.Parallel()
	s := newRightsSite(t)
	list, err := ops.New(s.center).Runs().List(t.Context(), runs.Filter{}, 1)
	s.must(err)
	for _, c := range []struct {
		user, path string
		code       int
	}{
		{"", "/", http.StatusForbidden},
		{"nobody", "/", http.StatusForbidden},
		{"nobody", "/workers?task=settle", http.StatusForbidden},
		{"settle", "/", http.StatusOK},
		{"settle", "/task?task=settle", http.StatusOK},
		{"settle", "/queue?task=settle&queue=1", http.StatusOK},
		{"settle", "/task?task=regions", http.StatusForbidden},
		{"settle", "/task?task=nope", http.StatusForbidden},
		{"settle", "/run?run=nightly&task=settle", http.StatusForbidden},
		{"settle", "/run?run=" + list[0].ID, http.StatusForbidden},
		{"settle", "/run?run=nope", http.StatusForbidden},
		{"settle", "/trigger?trigger=nightly&task=settle", http.StatusForbidden},
		{"settle", "/trigger?trigger=nope", http.StatusForbidden},
		{"settle", "/events?task=settle", http.StatusOK},
		{"settle", "/events?task=regions&format=json", http.StatusForbidden},
		{"root", "/", http.StatusOK},
		{"root", "/run?run=nightly", http.StatusOK},
		{"root", "/run?run=nope", http.StatusNotFound},
	} {
		if got := s.as(c.user, request(http.MethodGet, c.path)); got.code != c.code {
			t.Errorf("%s %s: status %d, want %d: %s", c.user, c.path, got.code, c.code, got.body)
		}
	}
	hidden := []string{"web1", "web2", "4711", "nightly", "settle"}
	for _, page := range []string{"/", "/workers", "/workers?state=gone", "/items", "/runs", "/triggers", "/events"} {
		for _, query := range []string{"", "task=regions", "task=regions&format=json", "task=regions&format=csv"} {
			address := page + "?" + query
			if strings.Contains(page, "?") {
				address = page + "&" + query
			}
			got := s.as("regions", request(http.MethodGet, address))
			for _, text := range hidden {
				if got.code != http.StatusOK || strings.Contains(got.body, text) {
					t.Errorf("%s: status %d, tells of %s: %s", address, got.code, text, got.body)
				}
			}
		}
	}
}

// A change that is refused does not say what there is: the answer is the same for what is there and what is not.
func TestRefusalsTellNothing(t *testing.T) {
	t.Parallel()
	s := newRightsSite(t)
	list, err := ops.New(s.center).Runs().List(t.Context(), runs.Filter{}, 1)
	s.must(err)
	for action, names := range map[string][2]string{
		"run-cancel":    {"run=" + list[0].ID, "run=nope"},
		"trigger-pause": {"trigger=nightly", "trigger=nope"},
		"worker-drain":  {"worker=web1", "worker=nope"},
		"task-pause":    {"task=settle", "task=nope"},
		"queue-remove":  {"task=settle&queue=1", "task=nope&queue=1"},
	} {
		var replies [2]reply
		for i, name := range names {
			replies[i] = s.as("regions", request(http.MethodGet, "/"+action+"?"+name))
		}
		there, missing := replies[0], replies[1]
		if there.code != http.StatusForbidden || missing.code != http.StatusForbidden || there.body != missing.body {
			t.Errorf("%s: status %d and %d:\n%s\n%s", action, there.code, missing.code, there.body, missing.body)
		}
	}
	if got := s.as("regions", request(http.MethodGet, "/worker-drain?task=regions&worker=web")); strings.Contains(got.body, "web1") {
		t.Errorf("a decoy task type lets an error name workers: %s", got.body)
	}
}

// Settings hold in all environments: a change of them needs the right in all.
func TestSharedSettingsNeedTheRightEverywhere(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Access: func(r *http.Request) (console.Actor, error) {
		return console.Actor{Name: "ann", May: func(right console.Right, _ string) bool {
			return right == console.Look || console.OwnSign(r) == "TEST" || r.Header.Get("Root") != ""
		}}, nil
	}})
	other, err := s.center.In("TEST")
	s.must(err)
	_, err = ops.New(other).Tasks().Define(t.Context(), "settle", center.Settings{Queues: 4})
	s.must(err)
	for _, c := range []struct {
		root, setting, value string
		code                 int
	}{
		{"", "execute_number", "7", http.StatusForbidden}, {"", "queues", "5", http.StatusSeeOther}, {"yes", "execute_number", "7", http.StatusSeeOther},
	} {
		r := post("in/TEST/task-set", confirmed(values("task", "settle", "step", "show", c.setting, c.value)))
		r.Header.Set("Root", c.root)
		if got := s.do(r); got.code != c.code {
			t.Errorf("%s with root %q: status %d, want %d: %s", c.setting, c.root, got.code, c.code, got.body)
		}
	}
	if got := s.get("/in/TEST/task-pause?task=settle"); got.code != http.StatusOK {
		t.Errorf("a change of one environment: status %d: %s", got.code, got.body)
	}
}

// A console of one environment shows the others and changes nothing in them.
func TestOwnSignOnly(t *testing.T) {
	t.Parallel()
	all := console.Loopback(console.Actor{Name: "ann", May: func(console.Right, string) bool { return true }})
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Access: all, OwnSignOnly: true})
	other, err := s.center.In("TEST")
	s.must(err)
	_, err = ops.New(other).Tasks().Define(t.Context(), "settle", center.Settings{Queues: 4})
	s.must(err)
	for page, code := range map[string]int{
		"/in/TEST/task?task=settle": http.StatusOK, "/in/TEST/task-pause?task=settle": http.StatusForbidden,
		"/task-pause?task=settle": http.StatusOK, "/task-set?task=settle&step=show&execute_number=7": http.StatusForbidden,
	} {
		if got := s.get(page); got.code != code {
			t.Errorf("%s: status %d, want %d: %s", page, got.code, code, got.body)
		}
	}
}

// The command lines of an error are for the environment of the page.
func TestErrorsNameTheEnvironment(t *testing.T) {
	t.Parallel()
	all := console.Loopback(console.Actor{Name: "ann", May: func(console.Right, string) bool { return true }})
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Access: all})
	other, err := s.center.In("TEST")
	s.must(err)
	_, err = ops.New(other).Tasks().Define(t.Context(), "nightly", center.Settings{Queues: 4, Mode: center.ModeRun})
	s.must(err)
	form := values("task", "nightly", "step", "show", "after", "absent")
	for path, want := range map[string]string{"task-set": "(see rota task list)", "in/TEST/task-set": "(see rota --own-sign TEST task list)"} {
		if got := s.do(post(path, confirmed(form))); !strings.Contains(got.body, want) {
			t.Errorf("%s: status %d, want %s: %s", path, got.code, want, got.body)
		}
	}
}

// Every response has the policy. Nothing can be sent to the console.
func TestHeadersAndMethods(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{})
	for _, p := range append(s.paths(), "/nope", "/task?task=nope") {
		r := s.get(p)
		if csp := r.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; ") || !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", p, csp)
		}
		if r.Get("X-Content-Type-Options") != "nosniff" || r.Get("Set-Cookie") != "" {
			t.Errorf("%s: headers %v", p, r.Header)
		}
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
			if r := s.do(request(method, p)); r.code != http.StatusMethodNotAllowed && r.code != http.StatusNotFound {
				t.Errorf("%s %s: status %d", method, p, r.code)
			}
			cross := request(method, p)
			cross.Header.Set("Sec-Fetch-Site", "cross-site")
			if r := s.do(cross); r.code != http.StatusForbidden {
				t.Errorf("%s %s from another site: status %d", method, p, r.code)
			}
		}
	}
}
