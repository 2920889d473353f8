package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

const web1, web2 = "web1:1:00000001", "web2:2:00000002"

// testRoster is a roster with two task types. web1 owns the four queues of settle, and web2 requests two of them. No
// server has ever owned the named queues of regions.
type testRoster struct {
	*testing.T
	url, dir string
	c        *center.Center
}

func newTestRoster(t *testing.T, url string) *testRoster {
	t.Helper()
	if _, _, err := center.Migrate(t.Context(), anydb.URL(url)); err != nil {
		t.Fatal(err)
	}
	c, err := center.Open(t.Context(), anydb.URL(url), center.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &testRoster{t, url, t.TempDir(), c}
	s.define("settle", center.Settings{Queues: 4, ExecuteNumber: 10})
	s.define("regions", center.Settings{QueueNames: []string{"north", "south"}})
	s.join(web1)
	s.join(web2)
	return s
}

// runs adds the task types extract, report (after extract) and idle, all of mode RUN; a run of extract and of report;
// and a trigger that fires extract at two o'clock. It returns the ids of the runs.
func (s *testRoster) runs() (extract, report string) {
	s.Helper()
	s.define("extract", center.Settings{Mode: center.ModeRun, Queues: 4})
	s.define("report", center.Settings{Mode: center.ModeRun, Queues: 1, After: []runs.After{{Upstream: "extract"}}})
	s.define("idle", center.Settings{Mode: center.ModeRun, Queues: 1})
	_, err := ops.New(s.c).Triggers().Define(s.Context(), runs.Trigger{
		Name: "nightly", Target: "extract", Kind: runs.TriggerCron, Expression: "0 0 2 * * ?", TimeZone: "Europe/Berlin", Overlap: runs.OverlapWait,
	})
	s.must(err)
	extract, _, err = s.c.Engine().Runs.Submit(s.Context(), "extract", runs.Submission{Key: "first", Params: "p"})
	s.must(err)
	dependant, err := ops.New(s.c).Runs().Find(s.Context(), "report")
	s.must(err)
	return extract, dependant.ID
}

func (s *testRoster) define(task string, settings center.Settings) {
	s.Helper()
	_, err := ops.New(s.c).Tasks().Define(s.Context(), task, settings)
	s.must(err)
}

func (s *testRoster) join(uuid string) {
	s.Helper()
	s.serve("settle", uuid)
}

func (s *testRoster) serve(task, uuid string) {
	s.Helper()
	host, _, _ := strings.Cut(uuid, ":")
	_, err := s.c.Roster().Register(s.Context(), roster.ServerInfo{UUID: uuid, TaskType: task, Host: host, PID: 1, JudgeDeadInterval: time.Hour})
	s.must(err)
	_, err = s.c.Roster().Planner(task, uuid).Rebalance(s.Context(), roster.RebalanceOptions{})
	s.must(err)
}

// sweep opens a run and finishes the named queues, which the server owns, with ten items each.
func (s *testRoster) sweep(task, uuid string, queues ...string) {
	s.Helper()
	for _, sw := range s.claim(task, uuid, queues...) {
		s.must(s.c.Engine().Sweeps.Finish(s.Context(), sw, runs.Progress{ItemsDone: 10, ItemsFailed: 0}))
	}
	s.tick(task)
}

// claim claims queues of the open run for a server.
func (s *testRoster) claim(task, uuid string, queues ...string) []runs.Sweep {
	s.Helper()
	s.tick(task)
	view, err := s.c.Roster().Server(task, uuid).View(s.Context())
	s.must(err)
	var held []center.QueueEpoch
	for _, q := range view.Queues {
		if slices.Contains(queues, q.ID) {
			held = append(held, center.QueueEpoch{ID: q.ID, Epoch: q.Epoch})
		}
	}
	sweeps, err := s.c.Engine().Sweeps.Claim(s.Context(), task, uuid, held, len(held))
	s.must(err)
	if len(sweeps) != len(queues) {
		s.Fatalf("%d sweeps of %d queues", len(sweeps), len(queues))
	}
	return sweeps
}

// tick does the due work of runs, as a worker does once a second.
func (s *testRoster) tick(task string) {
	s.Helper()
	for more := true; more; {
		ticked, err := s.c.Engine().Scheduler.Tick(s.Context(), task)
		s.must(err)
		more = ticked.More
	}
}

func (s *testRoster) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// run runs a command that must succeed, and returns its output.
func (s *testRoster) run(args string, more ...string) string {
	s.Helper()
	stdout, stderr, code := s.try(args, more...)
	if code != 0 || stderr != "" {
		s.Fatalf("rota %s: exit code %d, stderr %q, stdout\n%s", args, code, stderr, stdout)
	}
	return stdout
}

func (s *testRoster) try(args string, more ...string) (stdout, stderr string, code int) {
	s.Helper()
	list := append(strings.Fields(args), more...)
	return runRota(s.T, s.dir, append(list, "--database", s.url)...)
}

// wantError runs a command that must fail with one line, and nothing on stdout.
func (s *testRoster) wantError(code int, want, args string, more ...string) {
	s.Helper()
	stdout, stderr, got := s.try(args, more...)
	if got != code || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) {
		s.Errorf("rota %s: exit code %d, want %d; stdout %q; stderr\n%swant %s", args, got, code, stdout, stderr, want)
	}
}

func (s *testRoster) wantOutput(args, want string) {
	s.Helper()
	if got := s.run(args); !regexp.MustCompile(want).MatchString(got) {
		s.Errorf("rota %s: want %s, got\n%s", args, want, got)
	}
}

func (s *testRoster) exec(statement string) {
	s.Helper()
	execute(s.T, s.c.DB(), statement)
}
