package console_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// evil is a text that a page must show, and no browser may execute.
const evil = `"'><script>alert(1)</script><img src=x onerror=alert(2)>{{.}}`

// The servers of a site.
const web1, web2 = "web1:1:00000001", "web2:2:00000002"

// site is a console of a roster. Its task type settle has four queues and two servers, failed items, runs and events.
// The texts that users choose are evil.
type site struct {
	testing.TB
	center  *center.Center
	handler http.Handler
}

func newSite(t *testing.T, databaseURL string, o console.Options) *site {
	t.Helper()
	s := &site{TB: t, center: centertest.Open(t, databaseURL, center.Options{})}
	s.define("settle", center.Settings{Queues: 4, ExecuteNumber: 10, Splittable: true})
	s.define("regions", center.Settings{QueueNames: []string{"north", "a<b>&c=d?e#f"}})
	s.define("nightly", center.Settings{Queues: 2, Mode: center.ModeRun, Cron: "0 0 2 * * ?"})
	for _, uuid := range []string{web1, web2} {

		_, err := s.center.Roster().Register(t.Context(), serverInfo(uuid, "settle"))
		s.must(err)
		_, err = s.center.Roster().Planner("settle", uuid).Rebalance(t.Context(), roster.RebalanceOptions{})
		s.must(err)
	}
	s.must(failures.Of(s.center.Roster()).Save(t.Context(), "settle", []failures.Item{
		{Key: evil, QueueID: "1", State: ops.ItemDead, Attempts: 3, LastError: evil},
		{Key: "4711", QueueID: "1", State: ops.ItemRetry, Attempts: 1, LastError: `account "4711" is closed`, RetryIn: time.Hour},
		{Key: "4712", QueueID: "2", State: ops.ItemDead, Attempts: 1, LastError: `account "4712" is closed`},
	}))
	_, _, err := ops.New(s.center).Runs().Submit(t.Context(), "nightly", runs.Submission{Key: evil, Params: evil})
	s.must(err)
	s.must(s.center.Roster().Operator(evil).Pause(t.Context(), "regions", true))
	s.handler, err = console.Handler(s.center, o)
	s.must(err)
	return s
}

func (s *site) define(taskType string, settings center.Settings) {
	s.Helper()
	_, err := ops.New(s.center).Tasks().Define(s.Context(), taskType, settings)
	s.must(err)
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// reply is what the console answers.
type reply struct {
	code int
	body string
	http.Header
}

// request makes a request as a browser on the same host does.
func request(method, target string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	r.RemoteAddr, r.Host = "127.0.0.1:50000", "localhost:8330"
	r.Header.Set("Accept", "text/html")
	return r
}

func (s *site) do(r *http.Request) reply {
	s.Helper()
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	body, err := io.ReadAll(w.Result().Body)
	s.must(err)
	return reply{w.Code, string(body), w.Result().Header}
}

// get returns a page with all its parts. On a busy machine a part may not be there at once: get then looks again.
func (s *site) get(target string) reply {
	s.Helper()
	return s.await(request(http.MethodGet, target))
}

func (s *site) await(request *http.Request) reply {
	s.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if r := s.do(request); r.code != http.StatusServiceUnavailable && !checking(r) || time.Now().After(deadline) {
			return r
		}
	}
}

// paths returns the addresses of all pages, with objects of the site.
func (s *site) paths() []string {
	s.Helper()
	list, err := ops.New(s.center).Runs().List(s.Context(), runs.Filter{}, 1)
	s.must(err)
	return []string{
		"/", "/task?task=settle", "/task?task=regions", "/task?task=nightly", "/task?task=settle&status=trouble", "/queue?task=settle&queue=1",
		"/queue?task=regions&queue=" + url.QueryEscape("a<b>&c=d?e#f"), "/workers", "/workers?q=web1", "/workers?state=gone", "/workers?q=" + url.QueryEscape(evil),
		"/items", "/items?task=settle&state=dead", "/items?q=" + url.QueryEscape(evil), "/runs", "/runs?task=nightly&state=READY",
		"/run?run=" + list[0].ID, "/run?run=nightly", "/triggers", "/trigger?trigger=nightly", "/events", "/events?task=settle&kind=GRANTED", "/events?worker=web1",
	}
}

func serverInfo(uuid, taskType string) roster.ServerInfo {
	host, _, _ := strings.Cut(uuid, ":")
	return roster.ServerInfo{UUID: uuid, TaskType: taskType, Host: host, PID: 1, JudgeDeadInterval: time.Hour}
}
