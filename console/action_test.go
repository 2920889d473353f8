package console_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// change is a form of the console, what it needs, and how to see that it was done.
type change struct {
	path  string
	form  url.Values
	right console.Right
	task  string
	done  string // what the next page says
	check func(s *site) bool
}

func values(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Add(pairs[i], pairs[i+1])
	}
	return v
}

// refresh writes what stands for the present settings of a trigger into its form.
func (c change) refresh(s *site) change {
	if c.path == "trigger-apply" {
		c.form.Set("version", s.trigger("nightly").Revision())
	}
	return c
}

// changes returns a form for each action, in an order in which each can be done.
func (s *site) changes() []change {
	s.Helper()
	run := s.newest("nightly").ID
	runIn := func(state string) func(*site) bool {
		return func(s *site) bool { return s.run(run).State == state }
	}
	settings := func(s *site) center.Settings {
		got, err := ops.New(s.center).Tasks().Settings(s.Context(), "settle")
		s.must(err)
		return got
	}
	settingsForm := s.formOf("task-set?task=settle")
	settingsForm.Set("execute_number", "77")
	cron := values("trigger", "nightly", "step", "show", "version", "1", "task", "nightly", "cron", "0 0 3 * * ?", "time-zone", "UTC", "misfire", "ONE", "overlap", "SKIP")
	return []change{
		{"task-pause", values("task", "settle"), console.Operate, "settle", "settle$BASE: paused", func(s *site) bool { return s.task("settle").Paused }},
		{"task-resume", values("task", "settle"), console.Operate, "settle", "settle$BASE: resumed", func(s *site) bool { return !s.task("settle").Paused }},
		{"task-set", settingsForm, console.Change, "settle", "settle$BASE: changed", func(s *site) bool { return settings(s).ExecuteNumber == 77 }},
		{"queue-split", values("task", "settle", "queue", "1", "step", "show"), console.Change, "settle", "queue 1 of settle$BASE: split as soon as", func(s *site) bool { return s.task("settle").Resizing["1"] == 8 }},
		{"queue-split", values("task", "settle", "queue", "1", "total", "4", "step", "show"), console.Change, "settle", "queue 1 of settle$BASE: left as it is", func(s *site) bool { return len(s.task("settle").Resizing) == 0 }},
		{"queue-merge", values("task", "settle", "queue", "1", "step", "show"), console.Change, "settle", "queue 1 of settle$BASE: merged as soon as", func(s *site) bool { return s.task("settle").Resizing["3"] == 2 }},
		{"task-set", values("task", "settle", "queues", "6", "step", "show"), console.Change, "settle", "settle$BASE: changed", func(s *site) bool { n := s.task("settle").RequestedTotal; return n != nil && *n == 6 }},
		{"queue-add", values("task", "regions", "queue", evil, "parameter", "7"), console.Change, "regions", "of regions$BASE: added", func(s *site) bool { return slices.Contains(s.queues("regions"), evil) }},
		{"queue-remove", values("task", "regions", "queue", "north"), console.Change, "regions", "queue north of regions$BASE: removed as soon as", func(s *site) bool { return !slices.Contains(s.queues("regions"), "north") }},
		{"queue-pin", values("task", "regions", "queue", evil, "labels", "zone=b"), console.Change, "regions", "of regions$BASE: pinned to zone=b", func(s *site) bool { return s.pin(evil) == "zone=b" }},
		{"queue-set", values("task", "regions", "queue", evil, "rate-per-second", "2.5", "weight", "3", "step", "show"), console.Change, "regions", "of regions$BASE: given rate_per_second 2.5, weight 3", func(s *site) bool { return s.limits(evil) == "rate_per_second 2.5, weight 3" }},
		{"queue-unpin", values("task", "regions", "queue", evil), console.Change, "regions", "of regions$BASE: not pinned any more", func(s *site) bool { return s.pin(evil) == "" }},
		{"worker-weight", values("worker", web2, "weight", "3"), console.Operate, "settle", "(settle): given weight 3", func(s *site) bool { return s.server(web2).Weight == 3 }},
		{"worker-drain", values("worker", "web1:1"), console.Operate, "settle", "(settle): drained", func(s *site) bool { return s.server(web1).State == ops.StateDraining }},
		{"worker-pause", values("worker", web2), console.Operate, "settle", "(settle): paused", func(s *site) bool { return s.server(web2).State == ops.StatePaused }},
		{"worker-resume", values("worker", "web1", "worker", web2), console.Operate, "settle", "(settle): resumed", func(s *site) bool {
			return s.server(web1).State != ops.StateDraining && s.server(web2).State != ops.StatePaused
		}},
		{"item-retry", values("task", "settle", "key", evil), console.Operate, "settle", "settle$BASE: 1 failed item retried", func(s *site) bool { return s.item(evil) == ops.ItemRetry }},
		{"item-drop", values("task", "settle", "all", "true", "error", "account … is closed"), console.Change, "settle", "settle$BASE: 2 failed items forgotten", func(s *site) bool { return s.item("4711") == "" && s.item(evil) != "" }},
		{"run-pause", values("run", run), console.Operate, "nightly", "(nightly): paused", func(s *site) bool { return s.run(run).Paused }},
		{"run-resume", values("run", run), console.Operate, "nightly", "(nightly): resumed", func(s *site) bool { return !s.run(run).Paused }},
		{"run-cancel", values("run", run), console.Operate, "nightly", "(nightly): cancelled", runIn(runs.Cancelled)},
		{"run-rerun", values("run", run), console.Operate, "nightly", "(nightly): reopened", runIn(runs.Ready)},
		{"run-submit", values("task", "nightly", "step", "show", "key", "k0", "priority", "7", "not-before", "2090-01-01T00:00:00Z", "deadline", "2090-01-02T00:00:00Z", "attempts", "2"), console.Operate, "nightly", "a run of nightly$BASE: submitted", func(s *site) bool {
			r := s.newest("nightly")
			return r.Key == "k0" && r.Priority == 7 && r.NotBefore.Year() == 2090 && r.EndBefore.Day() == 2 && r.MaxAttempts == 2
		}},
		{"run-submit", values("task", "nightly", "step", "show", "key", "k1", "params", evil), console.Operate, "nightly", "a run of nightly$BASE: submitted", func(s *site) bool { return s.newest("nightly").Key == "k1" }},
		{"run-ack", values("run", s.failedRun()), console.Operate, "failing", "(failing): acknowledged", func(s *site) bool { return !s.newest("failing").AckedAt.IsZero() }},
		{"trigger-fire", values("trigger", "nightly"), console.Operate, "nightly", "nightly$BASE: it has made run", func(s *site) bool { return s.newest("nightly").Trigger == "nightly" }},
		{"run-backfill", values("task", "nightly", "trigger", "nightly", "step", "show", "from", "2026-01-01", "to", "2026-01-03"), console.Operate, "nightly", "a backfill of nightly$BASE: started", func(s *site) bool {
			list, err := ops.New(s.center).Backfills().List(s.Context(), runs.BackfillFilter{}, 1)
			s.must(err)
			return len(list) == 1 && list[0].SlotsTotal == 2
		}},
		{"trigger-pause", values("trigger", "nightly"), console.Operate, "nightly", "nightly$BASE: paused", func(s *site) bool { return s.trigger("nightly").Status == runs.TriggerPaused }},
		{"trigger-resume", values("trigger", "nightly"), console.Operate, "nightly", "nightly$BASE: resumed", func(s *site) bool { return s.trigger("nightly").Status == runs.TriggerActive }},
		{"trigger-apply", cron, console.Change, "nightly", "nightly$BASE: changed", func(s *site) bool { return s.trigger("nightly").Expression == "0 0 3 * * ?" }},
		{"trigger-delete", values("trigger", "nightly"), console.Change, "nightly", "nightly$BASE: deleted", func(s *site) bool { return s.trigger("nightly").Name == "" }},
	}
}

func (s *site) task(name string) ops.TaskRecord {
	s.Helper()
	list, err := ops.New(s.center).Tasks().List(s.Context(), name)
	s.must(err)
	return list[0]
}

func (s *site) queues(task string) (ids []string) {
	s.Helper()
	list, err := ops.New(s.center).Queues().List(s.Context(), ops.QueueFilter{TaskType: task})
	s.must(err)
	for _, q := range list {
		ids = append(ids, q.QueueID)
	}
	return ids
}

func (s *site) pin(queue string) string {
	s.Helper()
	list, err := ops.New(s.center).Queues().List(s.Context(), ops.QueueFilter{TaskType: "regions"})
	s.must(err)
	return list[slices.IndexFunc(list, func(q ops.QueueRecord) bool { return q.QueueID == queue })].Pin
}

func (s *site) limits(queue string) string {
	s.Helper()
	list, err := ops.New(s.center).Queues().List(s.Context(), ops.QueueFilter{TaskType: "regions"})
	s.must(err)
	return list[slices.IndexFunc(list, func(q ops.QueueRecord) bool { return q.QueueID == queue })].Limits()
}

func (s *site) server(uuid string) ops.ServerRecord {
	s.Helper()
	list, err := ops.New(s.center).Servers().Matching(s.Context(), uuid)
	s.must(err)
	return list[0]
}

// item returns the state of a failed item; empty if it has no record.
func (s *site) item(key string) string {
	s.Helper()
	list, err := failures.Of(s.center.Roster()).Find(s.Context(), "settle", []string{key})
	s.must(err)
	if len(list) == 0 {
		return ""
	}
	return list[0].State
}

func (s *site) run(id string) runs.Record {
	s.Helper()
	r, err := ops.New(s.center).Runs().Get(s.Context(), id)
	s.must(err)
	return r
}

func (s *site) newest(task string) runs.Record {
	s.Helper()
	r, err := ops.New(s.center).Runs().Find(s.Context(), task)
	s.must(err)
	return r
}

func (s *site) trigger(name string) runs.TriggerRecord {
	s.Helper()
	list, err := ops.New(s.center).Triggers().List(s.Context(), runs.TriggerFilter{Name: name})
	s.must(err)
	if len(list) == 0 {
		return runs.TriggerRecord{}
	}
	return list[0]
}

// failedRun makes a run of a task type of its own that has failed, because its upstream was cancelled.
func (s *site) failedRun() (id string) {
	s.Helper()
	s.define("failing", center.Settings{Queues: 1, Mode: center.ModeRun})
	s.define("upstream", center.Settings{Queues: 1, Mode: center.ModeRun})
	up, _, err := ops.New(s.center).Runs().Submit(s.Context(), "upstream", runs.Submission{})
	s.must(err)
	id, _, err = ops.New(s.center).Runs().Submit(s.Context(), "failing", runs.Submission{After: []string{up}})
	s.must(err)
	s.must(s.center.Engine().Runs.Cancel(s.Context(), up, "test"))
	_, err = s.center.Roster().Register(s.Context(), serverInfo("web3:3:00000003", "failing"))
	s.must(err)
	return id
}

// allowed is an access for everything, of ann; or of the actor that the request names, with rights of its own.
func allowed(r *http.Request) (console.Actor, error) {
	name, rights, ok := strings.Cut(r.Header.Get("Test-Actor"), ":")
	if !ok {
		return console.Actor{Name: "ann", May: func(console.Right, string) bool { return true }}, nil
	}
	return console.Actor{Name: name, May: func(right console.Right, task string) bool {
		return slices.Contains(strings.Fields(rights), string(right)+"/"+task) || right == console.Look
	}}, nil
}

// post returns a POST of a form, as the button that confirms it sends it.
func post(path string, form url.Values) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/"+path, strings.NewReader(form.Encode()))
	r.RemoteAddr, r.Host = "127.0.0.1:50000", "localhost:8330"
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return r
}

func confirmed(form url.Values) url.Values {
	form = maps.Clone(form)
	form.Set("confirm", "yes")
	return form
}

// Each change is shown first, by a GET and by a POST, which change nothing. Confirmed it is done, and the next page
// says so. The event names the person.
func TestChanges(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, databaseURL string) {
		t.Parallel()
		s := newSite(t, databaseURL, console.Options{Access: allowed})
		for _, c := range s.changes() {
			c = c.refresh(s)
			if c.check(s) {
				t.Fatalf("%s: it is so before the change", c.path)
			}
			for _, r := range []*http.Request{request(http.MethodGet, "/"+c.path+"?"+c.form.Encode()), post(c.path, c.form)} {
				got := s.do(r)
				if got.code != http.StatusOK || !strings.Contains(got.body, `name="confirm"`) || c.check(s) {
					t.Fatalf("%s %s: status %d; done: %t: %s", r.Method, c.path, got.code, c.check(s), got.body)
				}
				s.check(c.path, got.body)
			}
			got := s.do(post(c.path, confirmed(c.form)))
			if got.code != http.StatusSeeOther || !c.check(s) {
				t.Fatalf("%s: status %d; done: %t: %s", c.path, got.code, c.check(s), got.body)
			}
			to := "/" + got.Get("Location")
			if next := s.get(to); next.code != http.StatusOK || !strings.Contains(next.body, c.done) {
				t.Errorf("%s leads to %s: status %d, without %q: %s", c.path, to, next.code, c.done, next.body)
			}
			other := request(http.MethodGet, to)
			other.Header.Set("Test-Actor", "bob:")
			if next := s.await(other); strings.Contains(next.body, c.done) {
				t.Errorf("%s: another person sees %q", c.path, c.done)
			}
		}
		events, err := ops.New(s.center).Events().List(t.Context(), ops.EventFilter{}, 1000)
		s.must(err)
		if !slices.ContainsFunc(events, func(e ops.EventRecord) bool {
			return e.Actor == "ann" && strings.HasSuffix(e.Reason, "was submitted")
		}) {
			t.Error("no event names the person who submitted a run")
		}
		if n := len(slices.DeleteFunc(events, func(e ops.EventRecord) bool { return e.Actor != "ann" })); n < 15 {
			t.Errorf("%d events name the person", n)
		}
	})
}

// fingerprint is what any change would alter.
func (s *site) fingerprint() string {
	s.Helper()
	var b strings.Builder
	events, err := ops.New(s.center).Events().List(s.Context(), ops.EventFilter{}, 10_000)
	s.must(err)
	fmt.Fprintln(&b, len(events), s.trigger("nightly").Version)
	items, err := ops.New(s.center).Items().List(s.Context(), ops.ItemFilter{}, 10_000)
	s.must(err)
	for _, i := range items {
		fmt.Fprintln(&b, i.ItemKey, i.State, i.Attempts)
	}
	list, err := ops.New(s.center).Runs().List(s.Context(), runs.Filter{}, 10_000)
	s.must(err)
	for _, r := range list {
		fmt.Fprintln(&b, r.ID, r.State, r.Paused, r.AckedAt)
	}
	return b.String()
}

// A person needs the right of the verb, for the task type. All else is refused and changes nothing: other sites,
// people who may only look, consoles that are read-only, the right to another task type, forms that are too long,
// other methods.
func TestChangesNeedTheirRight(t *testing.T) {
	t.Parallel()
	racetest.Defer(t)
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Access: allowed})
	readOnly, err := console.Handler(s.center, console.Options{Access: allowed, ReadOnly: true})
	s.must(err)
	loopback, err := console.Handler(s.center, console.Options{})
	s.must(err)
	for _, c := range s.changes() {
		c = c.refresh(s)
		before := s.fingerprint()
		other := console.Operate
		if c.right == console.Operate {
			other = console.Change
		}
		as := func(rights string) func(*http.Request) {
			return func(r *http.Request) { r.Header.Set("Test-Actor", "eve:"+rights) }
		}
		for name, a := range map[string]struct {
			handler http.Handler
			alter   func(r *http.Request)
			code    int
		}{
			"who may look":               {s.handler, as(""), http.StatusForbidden},
			"with the other right":       {s.handler, as(fmt.Sprintf("%s/%s %s/", other, c.task, other)), http.StatusForbidden},
			"with another task type":     {s.handler, as(fmt.Sprintf("%s/other", c.right)), http.StatusForbidden},
			"of another site":            {s.handler, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
			"of an old browser":          {s.handler, func(r *http.Request) { r.Header.Del("Sec-Fetch-Site"); r.Header.Set("Origin", "https://evil.example") }, http.StatusForbidden},
			"of a read-only console":     {readOnly, func(*http.Request) {}, http.StatusForbidden},
			"of a console as it is":      {loopback, func(*http.Request) {}, http.StatusForbidden},
			"by PUT":                     {s.handler, func(r *http.Request) { r.Method = http.MethodPut }, http.StatusMethodNotAllowed},
			"by GET, with all the words": {s.handler, func(r *http.Request) { r.Method, r.URL.RawQuery = http.MethodGet, confirmed(c.form).Encode() }, http.StatusOK},
			"with ten megabytes": {s.handler, func(r *http.Request) {
				*r = *post(c.path, values("confirm", "yes", "task", strings.Repeat("x", 10<<20)))
			}, http.StatusRequestEntityTooLarge},
		} {
			r := post(c.path, confirmed(c.form))
			a.alter(r)
			w := httptest.NewRecorder()
			a.handler.ServeHTTP(w, r)
			if w.Code != a.code {
				t.Errorf("%s of one %s: status %d, want %d: %s", c.path, name, w.Code, a.code, w.Body)
			}
		}
		if after := s.fingerprint(); after != before || c.check(s) {
			t.Fatalf("%s: something that was refused is done: %s", c.path, after)
		}
		r := post(c.path, confirmed(c.form))
		r.Header.Set("Test-Actor", fmt.Sprintf("eve:%s/%s", c.right, c.task))
		if got := s.do(r); got.code != http.StatusSeeOther || !c.check(s) || s.fingerprint() == before {
			t.Errorf("%s with the right to %s of %s: status %d: %s", c.path, c.right, c.task, got.code, got.body)
		}
	}
}
