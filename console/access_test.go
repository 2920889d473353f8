package console_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/internal/testdb"
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

// The actor of Options.Access sees the task types to which it has the right.
func TestRights(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Access: func(r *http.Request) (console.Actor, error) {
		name := r.Header.Get("Remote-User")
		if name == "" {
			return console.Actor{}, errors.New("sign in first")
		}
		return console.Actor{Name: name, May: func(right console.Right, taskType string) bool {
			return right == console.Look && (taskType == "settle" || name == "root")
		}}, nil
	}})
	for _, c := range []struct {
		user, path string
		code       int
	}{
		{"", "/", http.StatusForbidden},
		{"ann", "/", http.StatusForbidden},
		{"ann", "/task?task=settle", http.StatusOK},
		{"ann", "/queue?task=settle&queue=1", http.StatusOK},
		{"ann", "/task?task=regions", http.StatusForbidden},
		{"ann", "/run?run=nightly&task=settle", http.StatusForbidden},
		{"ann", "/events?task=settle", http.StatusOK},
		{"ann", "/events?task=regions&format=json", http.StatusForbidden},
		{"root", "/", http.StatusOK},
		{"root", "/run?run=nightly", http.StatusOK},
	} {
		r := request(http.MethodGet, c.path)
		r.Header.Set("Remote-User", c.user)
		if got := s.await(r); got.code != c.code {
			t.Errorf("%s %s: status %d, want %d: %s", c.user, c.path, got.code, c.code, got.body)
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
