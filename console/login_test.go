package console_test

import (
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/internal/testdb"
)

// annsPassword lets ann in with the password "correct horse".
func annsPassword(t *testing.T) *console.Passwords {
	t.Helper()
	line, err := console.PasswordLine("ann", "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "people")
	if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	passwords, err := console.OpenPasswords(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return passwords
}

// A client without a password is asked for one, and sees nothing of the roster before. A page of another site changes
// nothing, although the browser adds the password to its requests.
func TestSignIn(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Access: annsPassword(t).Access})
	denied := func(r *http.Request) {
		t.Helper()
		got := s.do(r)
		if got.code != http.StatusUnauthorized || !strings.HasPrefix(got.Get("WWW-Authenticate"), `Basic realm="Rota"`) || strings.Contains(got.body, "web1") {
			t.Errorf("%s: status %d: %s", r.URL, got.code, got.body)
		}
	}
	for _, page := range append(s.paths(), "/scale?task=settle&per_worker=1", "/task-pause?task=settle", "/task?task=settle&format=json") {
		denied(request(http.MethodGet, page))
	}
	wrong := request(http.MethodGet, "/")
	wrong.SetBasicAuth("ann", "wrong")
	denied(wrong)
	right := request(http.MethodGet, "/")
	right.SetBasicAuth("ann", "correct horse")
	if got := s.await(right); got.code != http.StatusOK || !strings.Contains(got.body, "ann may look, operate, change") || got.Get("Set-Cookie") != "" {
		t.Errorf("with the password: status %d: %s", got.code, got.body)
	}
	cross := request(http.MethodPost, "/task-pause?task=settle&confirm=yes")
	cross.SetBasicAuth("ann", "correct horse")
	cross.Header.Set("Sec-Fetch-Site", "cross-site")
	if got := s.do(cross); got.code != http.StatusForbidden {
		t.Errorf("from another site: status %d", got.code)
	}
}

// Only the proxy can say who makes a request.
func TestProxy(t *testing.T) {
	t.Parallel()
	p := console.Proxy{Header: "X-User", From: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8")}}
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Access: p.Access})
	for name, c := range map[string]struct {
		from  string
		users []string
		code  int
	}{
		"the proxy":               {"10.1.2.3:1", []string{"ann"}, http.StatusOK},
		"over IPv6":               {"[fd00::1]:1", []string{"ann"}, http.StatusOK},
		"an IPv4 address in IPv6": {"[::ffff:10.1.2.3]:1", []string{"ann"}, http.StatusOK},
		"elsewhere":               {"10.2.0.1:1", []string{"ann"}, http.StatusForbidden},
		"this host":               {"127.0.0.1:1", []string{"ann"}, http.StatusForbidden},
		"nobody":                  {"10.1.2.3:1", nil, http.StatusForbidden},
		"an empty name":           {"10.1.2.3:1", []string{""}, http.StatusForbidden},
		"two names":               {"10.1.2.3:1", []string{"ann", "root"}, http.StatusForbidden},
		"a control character":     {"10.1.2.3:1", []string{"a\tb"}, http.StatusForbidden},
		"a long name":             {"10.1.2.3:1", []string{strings.Repeat("a", 101)}, http.StatusForbidden},
	} {
		r := request(http.MethodGet, "/")
		r.RemoteAddr, r.Host = c.from, "rota.example.com"
		r.Header.Set("X-Forwarded-For", "198.51.100.7")
		r.Header["X-User"] = c.users
		if got := s.await(r); got.code != c.code || c.code == http.StatusOK && !strings.Contains(got.body, "ann may look") {
			t.Errorf("%s: status %d, want %d", name, got.code, c.code)
		}
	}
}

// ReadOnly takes rights from everybody.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	all := console.Actor{Name: "ann", May: func(console.Right, string) bool { return true }}
	for readOnly, want := range map[bool]string{false: "ann may look, operate, change", true: "ann may look<"} {
		s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Access: console.Loopback(all), ReadOnly: readOnly})
		if r := s.get("/"); !strings.Contains(r.body, want) {
			t.Errorf("read-only %t: want %q in %s", readOnly, want, r.body)
		}
	}
}
