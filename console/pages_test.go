package console_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/runs"
)

// Every page is well-formed, on every database. No text of a user becomes an element, an attribute or an address that a
// browser executes. No page needs anything that the policy forbids. All links are relative, and lead to pages that
// exist. A page says worker, and never server, which is a word of the tables.
func TestPages(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, databaseURL string) {
		t.Parallel()
		s := newSite(t, databaseURL, console.Options{})
		links := map[string]bool{}
		for _, p := range s.paths() {
			r := s.get(p)
			if r.code != http.StatusOK {
				t.Errorf("%s: status %d: %s", p, r.code, r.body)
				continue
			}
			for _, link := range s.check(p, r.body) {
				links[link] = true
			}
		}
		for link := range links {
			if r := s.get(link); r.code != http.StatusOK {
				t.Errorf("the link %s leads to status %d", link, r.code)
			}
		}
		if len(links) < 20 {
			t.Errorf("only %d links were found: %v", len(links), links)
		}
	})
}

// wordOfTables is what the tables call a worker. Names such as max_servers keep it.
var wordOfTables = regexp.MustCompile(`(?i)\bservers?\b`)

// check looks at the elements of a page, and returns the addresses to which its links lead.
func (s *site) check(page, body string) (links []string) {
	s.Helper()
	ids := map[string]bool{}
	d := xml.NewDecoder(strings.NewReader(body))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	inScript := false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return links
		}
		s.must(err)
		switch t := token.(type) {
		case xml.CharData:
			if inScript && strings.TrimSpace(string(t)) != "" {
				s.Errorf("%s: an inline script: %s", page, t)
			}
			if wordOfTables.Match(t) {
				s.Errorf("%s: a word of the tables: %s", page, t)
			}
		case xml.EndElement:
			inScript = inScript && t.Name.Local != "script"
		case xml.StartElement:
			inScript = t.Name.Local == "script"
			links = append(links, s.checkElement(page, t, ids)...)
		}
	}
}

// checkElement looks at an element, and returns the addresses to which it links.
func (s *site) checkElement(page string, e xml.StartElement, ids map[string]bool) (links []string) {
	s.Helper()
	name := e.Name.Local
	if slices.Contains([]string{"img", "style", "iframe", "base", "object", "embed"}, name) {
		s.Errorf("%s: element %v", page, e)
	}
	for _, a := range e.Attr {
		switch key := a.Name.Local; {
		case key == "id" && ids[a.Value]:
			s.Errorf("%s: two elements have the id %s", page, a.Value)
		case key == "id":
			ids[a.Value] = true
		case strings.HasPrefix(key, "aria-"), key == "placeholder", key == "title":
			if wordOfTables.MatchString(a.Value) {
				s.Errorf("%s: a word of the tables: %v", page, a)
			}
		case strings.HasPrefix(key, "on"), key == "style":
			s.Errorf("%s: attribute %s of %s", page, key, name)
		case name == "script" && key == "src", name == "link" && key == "href":
			if !strings.HasPrefix(a.Value, "static/") {
				s.Errorf("%s: %v", page, e)
			}
			links = append(links, s.resolve(page, a.Value))
		case key == "action":
			s.resolve(page, a.Value) // the fields of the form are missing
		case key == "href" && !strings.HasPrefix(a.Value, "#"):
			links = append(links, s.resolve(page, a.Value))
		}
	}
	return links
}

// resolve returns the address to which a link of a page leads. It fails for a link that is not relative: the console
// may be mounted below any path.
func (s *site) resolve(page, link string) string {
	s.Helper()
	u, err := url.Parse(link)
	s.must(err)
	at, _, _ := strings.Cut(strings.TrimPrefix(page, "/"), "?")
	if u.IsAbs() || u.Host != "" || strings.HasPrefix(u.Path, "/") || strings.HasPrefix(path.Join(path.Dir(at), u.Path), "..") {
		s.Errorf("%s: the link %s is not relative", page, link)
	}
	base, err := url.Parse("http://localhost/" + strings.TrimPrefix(page, "/"))
	s.must(err)
	return base.ResolveReference(u).RequestURI()
}

// The pages show what the roster has.
func TestPagesShow(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, databaseURL string) {
		t.Parallel()
		s := newSite(t, databaseURL, console.Options{})
		for p, wants := range map[string][]string{
			"/":                          {"settle", "regions", "nightly", "PAUSED", "2 dead", "DEAD_ITEMS", "UNSERVED"},
			"/task?task=settle":          {"Continuous, 4 queues, served by 2 workers on 2 hosts", `key o1`, `key o2`, "execute_number", "10"},
			"/queue?task=settle&queue=1": {"settle, queue 1", "granted", "account &#34;4711&#34; is closed"},
			"/workers":                   {"web1:1", "web2:2", "2 processes"},
			"/items":                     {"account … is closed", "4711", "never", "&lt;script&gt;alert(1)"},
			"/runs":                      {"nightly", "ready"},
			"/triggers":                  {"0 0 2 * * ?", "active"},
			"/events":                    {"joined", "granted"},
		} {
			r := s.get(p)
			for _, want := range wants {
				if !strings.Contains(r.body, want) {
					t.Errorf("%s does not show %q:\n%s", p, want, r.body)
				}
			}
		}
	})
}

// Each list is JSON and CSV, too, by the parameter and by the Accept header.
func TestFormats(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{})
	for _, p := range s.paths() {
		u, err := url.Parse(p)
		s.must(err)
		q := u.Query()
		q.Set("format", "json")
		r := s.get(u.Path + "?" + q.Encode())
		var list []map[string]any
		if err := json.Unmarshal([]byte(r.body), &list); err != nil || r.code != http.StatusOK || r.Get("Content-Type") != "application/json" {
			t.Errorf("%s as JSON: status %d, %v: %s", p, r.code, err, r.body)
		}
		ask := request(http.MethodGet, p)
		ask.Header.Set("Accept", "text/csv")
		r = s.await(ask)
		lines, err := csv.NewReader(bytes.NewReader([]byte(r.body))).ReadAll()
		if err != nil || len(lines) != len(list)+1 || !strings.HasPrefix(r.Get("Content-Type"), "text/csv") {
			t.Errorf("%s as CSV: %d lines for %d records, %v: %s", p, len(lines), len(list), err, r.body)
		}
	}
}

// A page that is not there is told so.
func TestUnknownPages(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{})
	for _, p := range []string{
		"/task?task=nope", "/task", "/queue?task=settle&queue=9", "/queue?task=nope&queue=1", "/run?run=nope", "/nope", "/static/style.css", "/static/../doc.go", "/static/%2e%2e/doc.go",
	} {
		if r := s.get(p); r.code != http.StatusNotFound && r.code != http.StatusTemporaryRedirect && r.code != http.StatusMovedPermanently {
			t.Errorf("%s: status %d: %s", p, r.code, r.body)
		}
	}
	s.define("weekly", center.Settings{Queues: 1, Mode: center.ModeRun})
	for _, name := range []string{"settle", "weekly"} { // the database has answered: they have no run
		for _, p := range []string{"/run?run=" + name, "/run?run=" + name + "&format=json", "/run-cancel?run=" + name} {
			if r := s.get(p); r.code != http.StatusNotFound {
				t.Errorf("%s: status %d: %s", p, r.code, r.body)
			}
		}
	}
	if r := s.get("/task?task=" + url.QueryEscape(evil)); r.code != http.StatusNotFound || strings.Contains(r.body, "<script>alert") {
		t.Errorf("status %d: %s", r.code, r.body)
	}
}

// An unchanged page is not sent again. The time of the read is not part of it.
func TestETag(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{})
	var first, r reply
	for deadline := time.Now().Add(30 * time.Second); r.code != http.StatusNotModified; {
		if time.Now().After(deadline) {
			t.Fatalf("status %d, headers %v: %q", r.code, r.Header, r.body)
		}
		first = s.get("/events") // not the triggers, whose picture of the next day moves with the time
		again := request(http.MethodGet, "/events")
		again.Header.Set("If-None-Match", first.Get("ETag"))
		r = s.await(again) // on a busy machine, a count at the top may be read anew in between
	}
	if r.body != "" || r.Get("Rota-As-Of") == "" {
		t.Errorf("headers %v: %q", r.Header, r.body)
	}
	other := s.get("/runs")
	if other.Get("ETag") == first.Get("ETag") || first.Get("ETag") == "" || first.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v and %v", first.Header, other.Header)
	}
}

// The pages of a run that waits for the end of an outage say so, for the run and for its queue (X5).
func TestPageOfARunThatWaits(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{})
	const uuid, waits = "web3:3:00000003", "it waits: nothing has succeeded since 02:00, and 3 items are tried again (X5)"
	_, err := s.center.Roster().Register(t.Context(), serverInfo(uuid, "nightly"))
	s.must(err)
	_, err = s.center.Roster().Planner("nightly", uuid).Rebalance(t.Context(), roster.RebalanceOptions{})
	s.must(err)
	_, err = s.center.Engine().Scheduler.Tick(t.Context(), "nightly")
	s.must(err)
	view, err := s.center.Roster().Server("nightly", uuid).View(t.Context())
	s.must(err)
	sweeps, err := s.center.Engine().Sweeps.Claim(t.Context(), "nightly", uuid, []center.QueueEpoch{{ID: "1", Epoch: view.Queues[1].Epoch}}, 1)
	s.must(err)
	s.must(s.center.Engine().Sweeps.Save(t.Context(), sweeps[0], runs.Progress{Waits: new(waits)}))
	for page, want := range map[string][]string{
		"/run?run=nightly":            {`<span class="mark warn">running</span><p>` + waits + `</p>`, `<tr id="rq-1"`, `<td class="p3 err">` + waits + `</td>`},
		"/runs?task=nightly":          {`<td class="p3 err">` + waits + `</td>`},
		"/queue?task=nightly&queue=1": {`<td class="p3 err">` + waits + `</td>`},
	} {
		r := s.get(page)
		for _, text := range want {
			if !strings.Contains(r.body, text) {
				t.Errorf("%s: no %q in\n%s", page, text, r.body)
			}
		}
	}
}

// A queue whose calls all fail is trouble in the list of its task type, before the others, and on its own page (X7).
func TestQueueThatFailsIsTrouble(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{})
	_, err := s.center.DB().ExecContext(t.Context(), "UPDATE schedule_queue SET failing_since = '2026-11-25 10:00:00' WHERE task_type = 'settle' AND queue_id = '2'")
	s.must(err)
	const mark = `<span class="mark bad">held, all its calls fail</span>`
	if all := s.get("/task?task=settle").body; strings.Count(all, mark) != 1 || strings.Index(all, `id="row-2"`) > strings.Index(all, `id="row-0"`) {
		t.Errorf("want queue 2 first, with %s:\n%s", mark, all)
	}
	if trouble := s.get("/task?task=settle&status=trouble").body; !strings.Contains(trouble, mark) || strings.Contains(trouble, `id="row-0"`) {
		t.Errorf("want queue 2 only, with %s:\n%s", mark, trouble)
	}
	if page := s.get("/queue?task=settle&queue=2").body; !strings.Contains(page, mark) {
		t.Errorf("want %s in\n%s", mark, page)
	}
}

// A worker is a process, however many task types it serves: the top of the pages counts it once.
func TestWorkersAreCountedByProcess(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{})
	_, err := s.center.Roster().Register(t.Context(), serverInfo("web2:2:00000003", "regions"))
	s.must(err)
	body := s.get("/workers").body
	if !strings.Contains(body, `Workers <span class="n">2</span>`) || !strings.Contains(body, "2 processes on 2 hosts") {
		t.Errorf("two processes serve three times: %s", body)
	}
}

// The list of the runs of a task type offers to submit one only where that can be done.
func TestRunsAreSubmittedInModeRun(t *testing.T) {
	t.Parallel()
	s := newOpenSite(t)
	for task, want := range map[string]bool{"nightly": true, "settle": false} {
		if got := s.get("/runs?task=" + task); strings.Contains(got.body, "run-submit?task="+task) != want {
			t.Errorf("%s: want a button: %t: %s", task, want, got.body)
		}
	}
}
