package console_test

import (
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/internal/testdb"
)

// A person signs in, looks, and signs out, in a browser that keeps cookies, below a prefix.
func TestSignIn(t *testing.T) {
	t.Parallel()
	line, err := console.PasswordLine("ann", "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	passwords, err := console.ParsePasswords(strings.NewReader(line))
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Passwords: passwords})
	b := newBrowser(s)
	if body, at := b.get("task?task=settle"); !strings.Contains(body, "Sign in") || strings.Contains(body, "web1") || at != "/rota/login?next=task%3Ftask%3Dsettle" {
		t.Errorf("without a session: %s\n%s", at, body)
	}
	if r := s.do(jsonRequest("/task?task=settle")); r.code != http.StatusUnauthorized || strings.Contains(r.body, "web1") {
		t.Errorf("a program without a session: status %d: %s", r.code, r.body)
	}
	b.fix("rota_session", "planted-by-somebody-else")
	if body, _ := b.post("login", url.Values{"name": {"ann"}, "password": {"wrong"}}); !strings.Contains(body, "the name or the password is wrong") {
		t.Errorf("with a wrong password: %s", body)
	}
	if body, at := b.post("login", url.Values{"name": {"ann"}, "password": {"correct horse"}, "next": {"task?task=settle"}}); !strings.Contains(body, "ann may look, operate, change") || at != "/rota/task?task=settle" {
		t.Errorf("with the password: %s\n%s", at, body)
	}
	if value := b.cookie("rota_session"); value == "planted-by-somebody-else" || len(value) < 50 {
		t.Errorf("the session is %q: one that another client has chosen must not become valid", value)
	}
	stolen := b.cookie("rota_session")
	if body, at := b.post("logout", nil); at != "/rota/login" || !strings.Contains(body, "Sign in") {
		t.Errorf("after the end: %s\n%s", at, body)
	}
	b.fix("rota_session", stolen)
	if _, at := b.get("task?task=settle"); !strings.HasPrefix(at, "/rota/login") {
		t.Errorf("the cookie of an ended session leads to %s", at)
	}
}

// The cookie is out of reach for scripts and for other sites, and does not travel as plain text.
func TestSessionCookie(t *testing.T) {
	t.Parallel()
	line, _ := console.PasswordLine("ann", "correct horse")
	passwords, err := console.ParsePasswords(strings.NewReader(line))
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Passwords: passwords})
	for proto, secure := range map[string]bool{"": false, "https": true} {
		r := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader("name=ann&password=correct+horse&next=//evil.example"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("X-Forwarded-Proto", proto)
		got := s.do(r)
		cookie, err := http.ParseSetCookie(got.Get("Set-Cookie"))
		if err != nil || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Secure != secure || cookie.MaxAge <= 0 || cookie.MaxAge > 12*3600 {
			t.Errorf("%v: %+v", err, cookie)
		}
		if got.code != http.StatusSeeOther || strings.Contains(got.Get("Location"), "evil") {
			t.Errorf("status %d to %s", got.code, got.Get("Location"))
		}
	}
}

func TestCrossSiteSignInIsRefused(t *testing.T) {
	t.Parallel()
	line, _ := console.PasswordLine("ann", "correct horse")
	passwords, err := console.ParsePasswords(strings.NewReader(line))
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Passwords: passwords})
	for _, path := range []string{"/login", "/logout"} {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader("name=ann&password=correct+horse"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		if got := s.do(r); got.code != http.StatusForbidden || got.Get("Set-Cookie") != "" {
			t.Errorf("%s: status %d, cookie %q", path, got.code, got.Get("Set-Cookie"))
		}
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

func TestAccessAndPasswordsExclude(t *testing.T) {
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{})
	if _, err := console.Handler(s.center, console.Options{Passwords: new(console.Passwords), Access: console.Loopback(console.Actor{})}); err == nil {
		t.Error("no error")
	}
}

func jsonRequest(target string) *http.Request {
	r := request(http.MethodGet, target)
	r.Header.Set("Accept", "application/json")
	return r
}

// browser keeps cookies and follows redirects. The console is below /rota/.
type browser struct {
	*site
	client *http.Client
	base   *url.URL
}

func newBrowser(s *site) *browser {
	s.Helper()
	mux := http.NewServeMux()
	mux.Handle("/rota/", http.StripPrefix("/rota", s.handler))
	server := httptest.NewServer(mux)
	s.Cleanup(server.Close)
	base, err := url.Parse(server.URL + "/rota/")
	s.must(err)
	jar, err := cookiejar.New(nil)
	s.must(err)
	return &browser{s, &http.Client{Jar: jar}, base}
}

func (b *browser) get(address string) (body, at string) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, b.base.String()+address, nil)
	b.must(err)
	return b.send(r)
}

func (b *browser) post(address string, form url.Values) (body, at string) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, b.base.String()+address, strings.NewReader(form.Encode()))
	b.must(err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.send(r)
}

// send returns the body of the page and its address.
func (b *browser) send(r *http.Request) (body, at string) {
	b.Helper()
	r.Header.Set("Accept", "text/html")
	response, err := b.client.Do(r)
	b.must(err)
	defer func() { _ = response.Body.Close() }()
	var text strings.Builder
	b.must(response.Write(&text))
	return text.String(), response.Request.URL.RequestURI()
}

func (b *browser) cookie(name string) string {
	for _, c := range b.client.Jar.Cookies(b.base) {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

// fix sets a cookie, as somebody does who can write into the browser.
func (b *browser) fix(name, value string) {
	b.client.Jar.SetCookies(b.base, []*http.Cookie{{Name: name, Value: value, Path: "/rota"}})
}
