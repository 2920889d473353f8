package console_test

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/logtest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// newOpenSite makes a console in which everybody on the host has all rights.
func newOpenSite(t *testing.T) *site {
	t.Helper()
	all := console.Actor{Name: "ann", May: func(console.Right, string) bool { return true }}
	return newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Access: console.Loopback(all)})
}

// An address with bytes that are no text is refused, and not taken for a database that fails.
func TestAddressesAreText(t *testing.T) {
	t.Parallel()
	s := newOpenSite(t)
	for _, address := range []string{"/events?task=%ff", "/run?run=a%00b", "/items?state=%c3", "/queue-pin?task=%ff", "/run-cancel?run=%00"} {
		if got := s.get(address); got.code != http.StatusBadRequest || !strings.Contains(unescape(got.body), "must be text in UTF-8 without NUL") {
			t.Errorf("%s: status %d: %s", address, got.code, got.body)
		}
	}
	if got := s.get("/queue-remove?task=settle&queue=0"); got.code != http.StatusUnprocessableEntity {
		t.Errorf("the removal of a numbered queue: status %d", got.code)
	}
}

// On loopback a change comes from a page of this host, or from a program, which names no page.
func TestLoopbackChangesComeFromLocalPages(t *testing.T) {
	t.Parallel()
	s := newOpenSite(t)
	for name, c := range map[string]struct {
		header, page string
		code         int
	}{
		"a program":              {"X-None", "", http.StatusSeeOther},
		"its own page":           {"Referer", "http://localhost:8330/task?task=settle", http.StatusSeeOther},
		"its own page over IPv6": {"Referer", "http://[::1]:8330/", http.StatusSeeOther},
		"another site":           {"Referer", "https://evil.example/", http.StatusForbidden},
		"a name like ours":       {"Referer", "http://localhost.evil.example/", http.StatusForbidden},
		"another origin":         {"Origin", "https://evil.example", http.StatusForbidden},
		"no page":                {"Origin", "null", http.StatusForbidden},
	} {
		r := post("task-resume", confirmed(values("task", "regions")))
		r.Header.Del("Sec-Fetch-Site")
		r.Header.Set(c.header, c.page)
		if got := s.do(r); got.code != c.code {
			t.Errorf("%s: status %d, want %d: %s", name, got.code, c.code, got.body)
		}
	}
}

// No address of the console leads to another site.
func TestNoOpenRedirect(t *testing.T) {
	t.Parallel()
	s := newOpenSite(t)
	base, err := url.Parse("https://rota.example.com/in/x")
	s.must(err)
	for _, sign := range []string{"https:evil.example", "https:%2F%2Fevil.example", "%2F%2Fevil.example", "%5C%5Cevil.example", "javascript:alert(1)", "TEST"} {
		got := s.do(request(http.MethodGet, "/in/"+sign))
		to, err := base.Parse(got.Get("Location"))
		if err != nil || to.Host != base.Host || to.Scheme != "https" || strings.HasPrefix(to.Path, "//") {
			t.Errorf("/in/%s leads to %q, status %d", sign, got.Get("Location"), got.code)
		}
	}
}

// A change that fails says that nothing of it was done.
func TestFailedChangesDoNotSayDone(t *testing.T) {
	t.Parallel()
	s := newOpenSite(t)
	id, _, err := ops.New(s.center).Runs().Submit(t.Context(), "nightly", runs.Submission{Key: "k9"})
	s.must(err)
	s.must(s.center.Engine().Runs.Cancel(t.Context(), id, "test"))
	for path, form := range map[string]url.Values{
		"run-cancel":     values("run", id),
		"run-pause":      values("run", id),
		"trigger-resume": values("trigger", "nightly", "version", "0"),
		"queue-add":      values("task", "regions", "queue", strings.Repeat("x", 300), "step", "show"),
	} {
		got := s.do(post(path, confirmed(form)))
		if got.code < 400 || strings.Contains(got.body, "Done") || !strings.Contains(got.body, `class="mark bad"`) {
			t.Errorf("%s: status %d: %s", path, got.code, got.body)
		}
		if strings.Contains(got.body, "It failed") && strings.Contains(got.body, "Nothing has been changed yet") {
			t.Errorf("%s failed, and its page says that nothing has been changed yet", path)
		}
	}
}

// A form about a number of queues, or a trigger, that has changed meanwhile changes nothing.
func TestFormsThatWereOvertaken(t *testing.T) {
	t.Parallel()
	s := newOpenSite(t)
	overtaken := s.formOf("task-set?task=settle")
	if overtaken.Get("version") == "" {
		t.Fatalf("the form carries no version: %v", overtaken)
	}
	overtaken.Set("queues", "6")
	s.must(s.center.Roster().Operator("bob").Repartition(t.Context(), "settle", 8, 0))
	for path, form := range map[string]url.Values{
		"task-set":       overtaken,
		"trigger-delete": values("trigger", "nightly", "version", "0"),
		"trigger-fire":   values("trigger", "nightly", "version", "0"),
	} {
		if got := s.do(post(path, confirmed(form))); got.code < 400 || !strings.Contains(got.body, "meanwhile: begin again") {
			t.Errorf("%s: status %d: %s", path, got.code, got.body)
		}
	}
	if n := s.task("settle").RequestedTotal; n == nil || *n != 8 {
		t.Errorf("requested number of queues %v, want 8", n)
	}
}

// A trigger that fires while a person reads its form can be changed all the same: it may fire each second.
func TestFormsOfATriggerThatFires(t *testing.T) {
	t.Parallel()
	s := newOpenSite(t)
	for _, path := range []string{"trigger-pause", "trigger-apply", "trigger-delete"} {
		form := s.formOf(path + "?trigger=nightly")
		if path == "trigger-apply" {
			form.Set("priority", "3")
		}
		centertest.Exec(t, s.center, "UPDATE schedule_trigger SET fires = fires + 1, version = version + 1")
		if got := s.do(post(path, confirmed(form))); got.code >= 400 {
			t.Errorf("%s: status %d: %s", path, got.code, got.body)
		}
	}
	if got := s.trigger("nightly"); got.Name != "" {
		t.Errorf("the trigger is there: %+v", got)
	}
}

// Each page shows an invisible character, and one that turns the direction of the text, as an unknown one. A form sends
// the character itself back, so that its button acts on the item of its row.
func TestUnseenCharacters(t *testing.T) {
	t.Parallel()
	s := newOpenSite(t)
	const tricks = "a\u202egpj\u2066b\u200bc\u009bd"
	s.must(failures.Of(s.center.Roster()).Save(t.Context(), "settle", []failures.Item{{Key: tricks, QueueID: "1", State: ops.ItemDead, LastError: tricks}}))
	s.must(s.center.Roster().Operator(tricks).Pause(t.Context(), "settle", true))
	for _, page := range append(s.paths(), "/task-pause?task="+url.QueryEscape(tricks)) {
		if got := s.get(page); strings.ContainsAny(sentBack.ReplaceAllString(got.body, ""), "\u202e\u2066\u200b\u009b") {
			t.Errorf("%s shows unseen characters", page)
		}
	}
	if got := s.get("/items?task=settle"); !strings.Contains(got.body, "a\ufffdgpj\ufffdb\ufffdc") {
		t.Errorf("the item is not shown: %s", got.body)
	}
	form := s.formOf("item-drop?task=settle&key=" + url.QueryEscape(tricks))
	if got := s.do(post("item-drop", confirmed(form))); got.code != http.StatusSeeOther || s.item(tricks) != "" {
		t.Errorf("drop the item %q: status %d, the item is %q", form["key"], got.code, s.item(tricks))
	}
	form = s.formOf("run-submit?task=nightly")
	form.Set("params", tricks)
	form = s.formIn(s.do(post("run-submit", form)))
	if got := s.do(post("run-submit", confirmed(form))); got.code != http.StatusSeeOther {
		t.Errorf("submit a run: status %d: %s", got.code, got.body)
	}
	if got := s.newest("nightly").Params; got != tricks {
		t.Errorf("the parameters of the run are %q, want %q", got, tricks)
	}
}

// sentBack finds the values of hidden fields and of fields that a person fills in.
var sentBack = regexp.MustCompile(` value="[^"]*"|<textarea[^>]*>[^<]*`)

// Keys that look alike are told apart in each list of failed items.
func TestKeysThatLookAlike(t *testing.T) {
	t.Parallel()
	s := newOpenSite(t)
	s.must(failures.Of(s.center.Roster()).Save(t.Context(), "settle", []failures.Item{
		{Key: "f", QueueID: "3", State: ops.ItemDead}, {Key: "f ", QueueID: "3", State: ops.ItemDead},
	}))
	for _, page := range []string{"/items?task=settle", "/queue?task=settle&queue=3"} {
		if got := s.get(page); !strings.Contains(got.body, `class="id">f<`) || !strings.Contains(got.body, `class="id">&#34;f &#34;<`) {
			t.Errorf("%s does not tell the keys apart: %s", page, got.body)
		}
	}
}

// Over TLS browsers are told to stay with it. Nothing of the roster is kept in a browser's cache.
func TestHeadersOfTransport(t *testing.T) {
	t.Parallel()
	s := newOpenSite(t)
	for _, page := range []string{"/", "/?format=json", "/?format=csv", "/task-pause?task=settle", "/nope", "/scale?task=settle&per_worker=1"} {
		for _, state := range []*tls.ConnectionState{nil, {}} {
			r := request(http.MethodGet, page)
			r.TLS = state
			got := s.await(r)
			if hsts := got.Get("Strict-Transport-Security"); (hsts != "") != (state != nil) || got.Get("Cache-Control") != "no-store" {
				t.Errorf("%s, TLS %t: HSTS %q, Cache-Control %q", page, state != nil, hsts, got.Get("Cache-Control"))
			}
		}
	}
}

// Each request that is refused is logged with what is known about it, and not the first one of a person who has not signed in
// yet. Many at once do not fill the log.
func TestRefusedRequestsAreLogged(t *testing.T) {
	t.Parallel()
	logger, log := logtest.New(slog.LevelWarn)
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Access: rightsOf, Logger: logger})
	other := post("task-pause", values("task", "settle"))
	other.Header.Set("Sec-Fetch-Site", "cross-site")
	for _, c := range []struct {
		request            *http.Request
		path, actor, error string
	}{
		{request(http.MethodGet, "/task?task=regions"), "/task", "settle", "you have no right"},
		{post("task-pause", values("task", "regions")), "/task-pause", "settle", "you have no right"},
		{request(http.MethodGet, "/scale?task=regions&per_worker=1"), "/scale", "settle", "you have no right"},
		{request(http.MethodGet, "/in/NOPE/"), "/in/NOPE/", "settle", "you have no right"},
		{request(http.MethodGet, "/"), "/", "", "sign in first"},
		{other, "/task-pause", "", "only from its own pages"},
	} {
		before := len(log.Lines())
		if c.actor != "" {
			c.request.Header.Set("Remote-User", c.actor)
		}
		got := s.do(c.request)
		lines := log.Lines()[before:]
		if got.code != http.StatusForbidden || got.Get("Content-Security-Policy") == "" || len(lines) != 1 {
			t.Errorf("%s: status %d, headers %v, log %+v", c.request.URL, got.code, got.Header, lines)
			continue
		}
		f := lines[0].Fields
		if err, _ := f["error"].(error); f["path"] != c.path || f["actor"] != c.actor || f["address"] != "127.0.0.1" || err == nil || !strings.Contains(err.Error(), c.error) {
			t.Errorf("%s: logged %v", c.request.URL, f)
		}
	}
	for range 1_000 {
		s.do(request(http.MethodGet, "/"))
	}
	if n := len(log.Lines()); n > 500 {
		t.Errorf("%d lines about 1,000 refused requests", n)
	}
	before := len(log.Lines())
	signIn := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Access: annsPassword(t).Access, Logger: logger})
	if got := signIn.do(request(http.MethodGet, "/")); got.code != http.StatusUnauthorized || len(log.Lines()) != before {
		t.Errorf("status %d, and it was logged: %+v", got.code, log.Lines()[before:])
	}
}

// The files have the types that browsers want, whatever the host says about them.
func TestTypesOfFiles(t *testing.T) {
	t.Parallel()
	s := newOpenSite(t)
	body := s.get("/").body
	for ext, want := range map[string]string{"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml; charset=utf-8"} {
		path := regexp.MustCompile(`static/[0-9a-f]+/[a-z]+\.` + ext).FindString(body)
		if got := s.get("/" + path); got.code != http.StatusOK || got.Get("Content-Type") != want {
			t.Errorf("%s has the type %q, want %q", path, got.Get("Content-Type"), want)
		}
	}
}
