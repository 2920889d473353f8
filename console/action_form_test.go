package console_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/verbs"
	"github.com/dutyrota/rota/runs"
)

// Pages have buttons for those who have the right, and for nobody else. All pages that they lead to are well-formed,
// with the texts of users in them.
func TestButtonsNeedTheRight(t *testing.T) {
	t.Parallel()
	racetest.Defer(t)
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Access: allowed})
	s.must(s.center.Roster().Operator("test").AddQueue(t.Context(), "regions", evil, evil))
	failed := s.failedRun()
	paths := append(s.paths(), "/queue?task=regions&queue="+url.QueryEscape(evil), "/run?run="+failed)
	seen := map[string]bool{}
	_, err := s.center.Engine().Backfills.Start(t.Context(), runs.BackfillRange{TaskType: "nightly", From: time.Now().Add(-72 * time.Hour)}, "test")
	s.must(err)
	s.seeButtons(paths, seen)
	backfills, err := ops.New(s.center).Backfills().List(t.Context(), runs.BackfillFilter{}, 1)
	s.must(err)
	for path, form := range map[string]url.Values{
		"queue-pin": values("task", "regions", "queue", evil, "labels", "zone=b"), "worker-pause": values("worker", web2), "trigger-pause": values("trigger", "nightly"),
		"run-pause": values("run", s.newest("nightly").ID), "run-backfill-pause": values("backfill", backfills[0].ID),
	} {
		if got := s.do(post(path, confirmed(form))); got.code != http.StatusSeeOther {
			t.Errorf("%s: status %d: %s", path, got.code, got.body)
		}
	}
	s.seeButtons(append(paths, "/run?run="+s.newest("nightly").ID), seen) // what ends a pin or a pause
	var wanted []string
	for _, v := range verbs.All() {
		if v.NoPage == "" {
			wanted = append(wanted, "/"+strings.ReplaceAll(v.Name, " ", "-"))
		}
	}
	for _, path := range wanted {
		if !seen[path] {
			t.Errorf("no page has a button for %s", path)
		}
	}
}

// seeButtons follows the buttons of pages, and notes to which forms they lead.
func (s *site) seeButtons(paths []string, seen map[string]bool) {
	s.Helper()
	for _, p := range paths {
		r := s.get(p)
		for _, link := range s.check(p, r.body) {
			if path, _, _ := strings.Cut(link, "?"); strings.Contains(path, "-") {
				seen[path] = true
				got := s.get(link)
				if got.code != http.StatusOK {
					s.Errorf("%s leads to %s: status %d: %s", p, link, got.code, got.body)
				}
				s.check(link, got.body)
			}
		}
		for _, m := range regexp.MustCompile(`action="([a-z]+-[a-z]+)"`).FindAllStringSubmatch(r.body, -1) {
			seen["/"+m[1]] = true
		}
		only := request(http.MethodGet, p)
		only.Header.Set("Test-Actor", "eve:")
		if body := s.await(only).body; regexp.MustCompile(`(href|action)="(task|queue|worker|item|run|trigger)-`).MatchString(body) {
			s.Errorf("%s has a button for a person who may only look: %s", p, body)
		}
	}
}

// Before a server is drained, the page shows the moves that the plan makes.
func TestDrainShowsTheMoves(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, databaseURL string) {
		t.Parallel()
		s := newSite(t, databaseURL, console.Options{Access: allowed})
		got := s.do(request(http.MethodGet, "/worker-drain?worker=web1"))
		for _, want := range []string{"Drain web1:1 of settle?", "<dd>4</dd>", "its owner is draining", `value="` + web1 + `"`, "before 4, after 0", "before 0, after 4"} {
			if !strings.Contains(got.body, want) {
				t.Errorf("the page lacks %q: %s", want, got.body)
			}
		}
		got = s.do(request(http.MethodGet, "/worker-drain?worker=web1&worker=web2"))
		if !strings.Contains(got.body, "no other worker can take its 4 queues now: it works on until one can.") {
			t.Errorf("to drain all workers: %s", got.body)
		}
		if strings.Contains(got.body, "nobody") {
			t.Errorf("to drain all workers: the plan takes queues from them: %s", got.body)
		}
		s.must(s.center.Roster().Operator("test").PauseServer(t.Context(), web2, true))
		got = s.do(request(http.MethodGet, "/worker-resume?worker="+web2))
		if !strings.Contains(got.body, "before 0, after 2") {
			t.Errorf("to resume a worker that has handed over: %s", got.body)
		}
	})
}

// A page that somebody has just looked at shows the change that leads to it.
func TestTheNextPageShowsTheChange(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Access: allowed})
	const resume = `action="task-resume"`
	if got := s.get("/task?task=settle"); strings.Contains(got.body, resume) {
		t.Fatalf("the task type is paused: %s", got.body)
	}
	got := s.do(post("task-pause", confirmed(values("task", "settle"))))
	if next := s.get("/" + got.Get("Location")); !strings.Contains(next.body, resume) {
		t.Errorf("the page is older than the change: %s", next.body)
	}
}

// A form that somebody else has overtaken writes nothing.
func TestFormsDoNotOverwriteOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Access: allowed})
	form := s.formOf("task-set?task=settle")
	form.Set("execute_number", "12")
	if got := s.do(post("task-set", form)); !strings.Contains(got.body, "<ins>12</ins>") {
		t.Fatalf("the change is not shown: %s", got.body)
	}
	other := s.formOf("task-set?task=settle")
	other.Set("thread_number", "3")
	if got := s.do(post("task-set", confirmed(other))); got.code != http.StatusSeeOther {
		t.Fatalf("the faster one: status %d: %s", got.code, got.body)
	}
	if got := s.do(post("task-set", confirmed(form))); got.code != http.StatusConflict || !strings.Contains(got.body, "somebody has changed it meanwhile") {
		t.Errorf("the slower one: status %d: %s", got.code, got.body)
	}
	settings, err := ops.New(s.center).Tasks().Settings(t.Context(), "settle")
	s.must(err)
	if settings.ThreadNumber != 3 || settings.ExecuteNumber != 10 {
		t.Errorf("thread_number is %d and execute_number %d, want 3 and 10", settings.ThreadNumber, settings.ExecuteNumber)
	}
	trigger := s.formOf("trigger-apply?trigger=nightly")
	theirs := s.trigger("nightly").Trigger
	theirs.Priority = 9
	d, err := ops.New(s.center).Triggers().Compare(t.Context(), theirs, 0)
	s.must(err)
	_, err = ops.New(s.center).Triggers().Apply(t.Context(), d, "test")
	s.must(err)
	trigger.Set("cron", "0 0 4 * * ?")
	if got := s.do(post("trigger-apply", confirmed(trigger))); got.code != http.StatusConflict {
		t.Errorf("a trigger that was changed: status %d: %s", got.code, got.body)
	}
}

var fieldPattern = regexp.MustCompile(`<(?:input|textarea|select)[^>]* name="([a-z_-]+%?)"(?:[^>]* value="([^"]*)")?`)

// formOf returns the fields of a page's form with their values.
func (s *site) formOf(path string) url.Values {
	s.Helper()
	return s.formIn(s.get("/" + path))
}

func (s *site) formIn(page reply) url.Values {
	s.Helper()
	_, body, ok := strings.Cut(page.body, `<form class="ask"`)
	if !ok {
		s.Fatalf("the page has no form: %s", page.body)
	}
	form := url.Values{}
	for _, m := range fieldPattern.FindAllStringSubmatch(body, -1) {
		form.Add(m[1], unescape(m[2]))
	}
	for _, m := range regexp.MustCompile(`(?s)<select name="([a-z_-]+)">(.*?)</select>`).FindAllStringSubmatch(body, -1) {
		if chosen := regexp.MustCompile(`<option selected>([^<]*)<`).FindStringSubmatch(m[2]); chosen != nil {
			form.Set(m[1], unescape(chosen[1]))
		}
	}
	return form
}

func unescape(text string) string {
	return strings.NewReplacer("&#43;", "+", "&#34;", `"`, "&#39;", "'", "&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(text)
}

// Each wrong value is named with its rule, the form keeps what was typed, and nothing is written.
func TestFormsNameWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Access: allowed})
	for _, c := range []struct{ page, field, value, want string }{
		{"task-set?task=settle", "execute_number", "many", "execute_number (many) must be a whole number"},
		{"task-set?task=settle", "judge_dead_interval", "3s", "judge_dead_interval (3s) must be at least"},
		{"task-set?task=settle", "execute_number", "10", "this changes nothing"},
		{"task-set?task=settle", "queues", "0", "queues"},
		{"task-set?task=settle", "queues", "x", "must both number the queues or both name them"},
		{"trigger-apply?trigger=nightly", "cron", "0 0 25 * * ?", "0 0 25 * * ?"},
		{"trigger-apply?trigger=nightly", "start", "tomorrow", `start ("tomorrow") must be a time such as`},
		{"trigger-apply?trigger=nightly", "task", "nobody", "nobody"},
	} {
		form := s.formOf(c.page)
		form.Set(c.field, c.value)
		before := s.fingerprint()
		path, _, _ := strings.Cut(c.page, "?")
		got := s.do(post(path, confirmed(form)))
		if got.code < 400 || got.code >= 500 || !strings.Contains(unescape(got.body), c.want) || s.fingerprint() != before {
			t.Errorf("%s with %s=%s: status %d, want %q: %s", c.page, c.field, c.value, got.code, c.want, got.body)
		}
		if c.field != "task" && !strings.Contains(unescape(got.body), `value="`+c.value+`"`) {
			t.Errorf("%s with %s=%s: the form has lost the value", c.page, c.field, c.value)
		}
	}
	for path, want := range map[string]string{
		"queue-add?task=regions&queue=north": "there is a queue of that name", "queue-split?task=nightly&queue=0": "is not splittable",
		"queue-merge?task=regions&queue=north": "has a name",
	} {
		if got := s.do(request(http.MethodGet, "/"+path)); got.code != http.StatusUnprocessableEntity || !strings.Contains(got.body, want) {
			t.Errorf("%s: status %d, want 422 and %q: %s", path, got.code, want, got.body)
		}
	}
	for _, path := range []string{"task-pause?task=nobody", "worker-drain?worker=nobody", "run-cancel?run=nobody", "trigger-fire?trigger=nobody", "item-retry?task=nobody&all=true"} {
		if got := s.do(request(http.MethodGet, "/"+path)); got.code != http.StatusNotFound || !strings.Contains(got.body, "nobody") {
			t.Errorf("%s: status %d: %s", path, got.code, got.body)
		}
	}
}

// The next slots of a trigger cost no more than a moment, whatever its expression, and a preview writes nothing.
func TestTriggerPreviewIsBounded(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Access: allowed})
	days := make([]string, 0, 330)
	for d := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC); len(days) < cap(days); d = d.AddDate(0, 0, 1) {
		days = append(days, d.Format("01-02"))
	}
	for name, set := range map[string]url.Values{
		"each second":            values("cron", "* * * * * ?"),
		"a day in 400 years":     values("cron", "0 0 0 29 2 ? 2096"),
		"a day that never comes": values("cron", "0 0 0 30 2 ?"),
		"nearly no day":          values("cron", "* * * * 1-11 ?", "exclude", strings.Join(days, ",")),
		"a long list":            values("cron", strings.TrimSuffix(strings.Repeat("0,", 120), ",")+" * * * * ?"),
		"a long ago start":       values("cron", "", "every", "1s", "start", "1990-01-01T00:00:00Z"),
	} {
		form := s.formOf("trigger-apply?trigger=nightly")
		maps.Copy(form, set)
		// The limit is that of a change, not a measure: an expression without a bound would take hours.
		got := s.do(post("trigger-apply", form))
		if got.code != http.StatusOK && got.code != http.StatusUnprocessableEntity {
			t.Errorf("%s: status %d: %s", name, got.code, got.body)
		}
	}
	if got := s.trigger("nightly"); got.Version != 1 {
		t.Errorf("the trigger has version %d: a preview has written it", got.Version)
	}
}

// All failed items that match are changed in several requests, each of which says how far it is.
func TestManyItemsGoOnRequestByRequest(t *testing.T) {
	t.Parallel()
	racetest.Defer(t)
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Access: allowed})
	const many = 12_000
	items := make([]failures.Item, many)
	for i := range items {
		items[i] = failures.Item{Key: fmt.Sprint("item ", i), QueueID: "0", State: ops.ItemDead, Attempts: 25, LastError: fmt.Sprintf("order %d is locked", i)}
	}
	s.must(failures.Of(s.center.Roster()).Save(t.Context(), "settle", items))
	form := values("task", "settle", "all", "true", "state", "dead", "error", "order … is locked")
	got := s.do(post("item-drop", confirmed(form)))
	for requests := 1; got.code != http.StatusSeeOther; requests++ { // more than two on a slow machine
		if got.code != http.StatusOK || !strings.Contains(got.body, "data-again") || !strings.Contains(got.body, "000 examined") || requests > many/1000 {
			t.Fatalf("request %d: status %d: %s", requests, got.code, got.body)
		}
		form = url.Values{}
		for _, m := range fieldPattern.FindAllStringSubmatch(got.body[strings.Index(got.body, `<form class="ask"`):], -1) {
			form.Add(m[1], unescape(m[2]))
		}
		got = s.do(post("item-drop", confirmed(form)))
	}
	if form.Get("after") == "" {
		t.Error("one request has examined all items")
	}
	if next := s.get("/" + got.Get("Location")); !strings.Contains(next.body, "settle$BASE: 12000 failed items forgotten") {
		t.Errorf("the end: %s", next.body)
	}
	left, err := ops.New(s.center).Items().List(t.Context(), ops.ItemFilter{}, 100)
	s.must(err)
	if len(left) != 3 {
		t.Errorf("%d items are left, want the 3 with other errors", len(left))
	}
}

// A link cannot make the console say something.
func TestNobodyPutsWordsIntoTheConsole(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Access: allowed})
	got := s.get("/?notice=" + url.QueryEscape("call us and tell your password"))
	if strings.Contains(got.body, "tell your") || strings.Contains(got.body, `id="notice"`) {
		t.Errorf("the page repeats its address: %s", got.body)
	}
}

// No path leads out of the console, and none shows a file.
func TestPathsStayInside(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Access: allowed})
	for _, path := range []string{"/static/../../go.mod", "/static/..%2f..%2fgo.mod", "/..", "/%2e%2e/secret", "/static/", "/static", "//evil.example/", "/task/../item-drop"} {
		r := request(http.MethodGet, "/")
		r.URL = &url.URL{Path: path}
		got := s.do(r)
		if got.code == http.StatusOK || strings.Contains(got.body, "module github.com") || strings.HasPrefix(got.Get("Location"), "//") {
			t.Errorf("%s: status %d to %q: %s", path, got.code, got.Get("Location"), got.body)
		}
	}
}

// The script fetches a page again by its address alone. That would show another error, or another form, in the place of
// the answer to what a person has sent.
func TestAnAnswerToAFormStays(t *testing.T) {
	t.Parallel()
	s := newOpenSite(t)
	for path, form := range map[string]url.Values{
		"item-retry": values("task", "settle", "key", "none"), "task-pause": values("task", "none"),
	} {
		if got := s.do(post(path, confirmed(form))); got.code != http.StatusNotFound || !strings.Contains(got.body, "data-still") {
			t.Errorf("%s: status %d, want a page that stays: %s", path, got.code, got.body)
		}
	}
	if got := s.get("/task?task=none"); got.code != http.StatusNotFound || strings.Contains(got.body, "data-still") {
		t.Errorf("status %d, want a page that is renewed: %s", got.code, got.body)
	}
}

// asABrowser returns what a browser sends of a form: it ends each line of a value with \r\n.
func asABrowser(form url.Values) url.Values {
	sent := url.Values{}
	for name, values := range form {
		for _, value := range values {
			value = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(value)
			sent.Add(name, strings.ReplaceAll(value, "\n", "\r\n"))
		}
	}
	return sent
}

// A key with ends of lines comes back from each kind of form as it is.
func TestLineEndsInKeys(t *testing.T) {
	t.Parallel()
	s := newOpenSite(t)
	keys := []string{"a\nb", "c\r\nd", "e\rf", "%0a"}
	fromPage := func(kind, key string) url.Values {
		body := s.get("/items?task=settle&q=" + url.QueryEscape(key)).body
		field := regexp.MustCompile(`type="` + kind + `"[^>]* name="(key%?)" value="([^"]*)"`).FindStringSubmatch(body)
		if field == nil {
			t.Fatalf("no %s with the key %q: %s", kind, key, body)
		}
		return values("task", "settle", field[1], unescape(field[2]))
	}
	for kind, formOf := range map[string]func(key string) url.Values{
		"a form that asks":  func(key string) url.Values { return s.formOf("item-drop?task=settle&key=" + url.QueryEscape(key)) },
		"a button of a row": func(key string) url.Values { return fromPage("hidden", key) },
		"a chosen row":      func(key string) url.Values { return fromPage("checkbox", key) },
	} {
		for _, key := range keys {
			s.must(failures.Of(s.center.Roster()).Save(t.Context(), "settle", []failures.Item{{Key: key, QueueID: "1", State: ops.ItemDead}}))
			got := s.do(post("item-drop", asABrowser(confirmed(formOf(key)))))
			if got.code != http.StatusSeeOther || s.item(key) != "" {
				t.Errorf("%s: drop the item %q: status %d, the item is %q", kind, key, got.code, s.item(key))
			}
		}
	}
}

// The form of a text with several lines has all of them, and does not change it by itself.
func TestLineEndsInSettings(t *testing.T) {
	t.Parallel()
	s := newOpenSite(t)
	const lines = "line 1\nline 2"
	s.define("lines", center.Settings{Queues: 1, TaskParameter: lines})
	const field = "<textarea name=\"task_parameter\" rows=\"3\">\n" + lines + "</textarea>"
	if got := s.get("/task-set?task=lines"); !strings.Contains(got.body, field) { // HTML drops the first end of a line
		t.Errorf("the form lacks %q: %s", field, got.body)
	}
	form := s.formOf("task-set?task=lines")
	form.Set("task_parameter", lines)
	form.Set("fetch_number", "77")
	page := s.do(post("task-set", asABrowser(form)))
	if strings.Contains(page.body, "<code>task_parameter</code>") {
		t.Errorf("the form would change the parameter: %s", page.body)
	}
	if got := s.do(post("task-set", asABrowser(confirmed(s.formIn(page))))); got.code != http.StatusSeeOther {
		t.Errorf("status %d: %s", got.code, got.body)
	}
	got, err := ops.New(s.center).Tasks().Settings(t.Context(), "lines")
	s.must(err)
	if got.TaskParameter != lines || got.FetchNumber != 77 {
		t.Errorf("task_parameter is %q, fetch_number %d", got.TaskParameter, got.FetchNumber)
	}
}

// What a list of failed items offers to do to a kind of error is about the items that the list shows.
func TestKindsOfErrorsWithinAFilter(t *testing.T) {
	t.Parallel()
	s := newOpenSite(t)
	closed := func(key, queue, state string) failures.Item {
		return failures.Item{Key: key, QueueID: queue, State: state, LastError: "account " + key + " is closed", RetryIn: time.Hour}
	}
	s.must(failures.Of(s.center.Roster()).Save(t.Context(), "regions", []failures.Item{
		closed("1", "north", ops.ItemDead), closed("2", "north", ops.ItemRetry), closed("3", "south", ops.ItemDead), closed("41", "north", ops.ItemDead),
	}))
	body := s.get("/items?task=regions&queue=north&state=dead&q=1").body
	action := regexp.MustCompile(`<a href="(item-drop[^"]*error=[^"]*)">Drop</a>`).FindStringSubmatch(body)
	if action == nil {
		t.Fatalf("no button to drop a kind of error: %s", body)
	}
	if got := s.do(post("item-drop", confirmed(s.formOf(unescape(action[1]))))); got.code != http.StatusSeeOther {
		t.Fatalf("status %d: %s", got.code, got.body)
	}
	left, err := failures.Of(s.center.Roster()).Find(t.Context(), "regions", []string{"1", "2", "3", "41"})
	s.must(err)
	if len(left) != 2 || left[0].Key == left[1].Key || strings.Contains(left[0].Key+left[1].Key, "1") {
		t.Errorf("left are %+v, want the items 2 and 3, which the list did not show", left)
	}
}
