//go:build linux

package faults

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/engines"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

// failoverScenarios are the engines as operators run them. On each, three workers do many rows, and the faults come one
// after the other while they do. Execute has no guard of its own: a row that is done again has a second effect. The
// figures are in docs/engines.md.
var failoverScenarios = rushed(
	scenario{
		name: "failover-workers", play: failover("one server", workerFaults...),
		kinds: []string{testdb.Postgres, testdb.MySQL, testdb.MariaDB, testdb.TiDB}, proxied: true,
	},
	scenario{
		name: "failover-file", play: failover("one file", workerKilled, workerStopped), kinds: []string{testdb.SQLite},
	},
	scenario{
		name: "failover-server", play: failover("one server", beside(serverCrashed)...), own: true, proxied: true,
	},
	scenario{
		name:  "failover-pgbouncer",
		play:  failover("one server behind PgBouncer", beside(serverCrashed, poolerKilled)...),
		kinds: pooledKinds, own: true, pooled: true, proxied: true,
	},
	scenario{
		name:  "failover-standby",
		play:  withStandby,
		kinds: pooledKinds, own: true, proxied: true,
	},
	scenario{
		name:  "failover-lagging",
		play:  failover("primary and a standby that lags", beside(fault{standbyTakesOver, standbyPromoted})...),
		kinds: pooledKinds, own: true, proxied: true, review: reviewLoss,
	},
	scenario{
		name:  "failover-patroni",
		play:  failover("three servers of Patroni, one etcd", beside(primaryKilled, switchedOver, allCrashed)...),
		kinds: pooledKinds, patroni: true, proxied: true,
	},
	scenario{
		name:  "failover-mysql-semisync",
		play:  failover("source and a semi-synchronous replica", beside(bothCrashed, replicaPromoted)...),
		kinds: []string{testdb.MySQL}, semi: true, proxied: true,
	},
	scenario{
		name:  "failover-group-replication",
		play:  failover("three servers of a Group Replication, one primary", beside(groupPrimaryKilled, groupPrimaryFrozen)...),
		kinds: []string{testdb.MySQL}, group: true, proxied: true, slow: true,
	},
	scenario{
		name:  "failover-galera",
		play:  failover("three nodes of Galera behind a balancer", beside(nodeKilled, allCrashed)...),
		kinds: galeraKinds, galera: true, proxied: true, slow: true,
	},
)

// beside returns the faults of workers, and others.
func beside(others ...fault) []fault { return slices.Concat(workerFaults, others) }

// rushed gives scenarios of fail-overs what they have in common: a load that keeps the servers busy.
func rushed(list ...scenario) []scenario {
	for i := range list {
		list[i].threads, list[i].backlog, list[i].seldom = 8, 100, true
	}
	return list
}

// fault is a fault of a fail-over, with its name in docs/engines.md.
type fault struct {
	name string
	play func(*stage)
}

// The faults of fail-overs.
var (
	workerKilled = fault{"worker killed", func(s *stage) {
		kill(s)
		s.start(1)
	}}
	workerStopped = fault{"worker stopped beyond its trust", pauseInItem}
	workerCutOff  = fault{"worker cut off", partitionOfOne}
	workerFaults  = []fault{workerKilled, workerStopped, workerCutOff}

	serverCrashed = fault{allServersKilled, func(s *stage) { s.stopDatabase(s.server.Kill, s.dead(1)) }}
	allCrashed    = fault{allServersKilled, func(s *stage) {
		s.crashAll()
		s.awaitBalance()
	}}
	poolerKilled = fault{"PgBouncer killed", poolerRestart}
	nodeKilled   = fault{"one server killed", func(s *stage) {
		node := s.nodes[s.IntN(len(s.nodes))]
		s.killServers(node)
		s.must(node.Start())
		s.awaitNodes()
		s.awaitBalance()
	}}
	primaryKilled = fault{"one server killed", func(s *stage) {
		primary := s.awaitPrimary()
		s.killServers(primary)
		s.must(primary.Start())
		s.awaitPrimary()
		s.awaitBalance()
	}}
	switchedOver = fault{standbyTakesOver, func(s *stage) {
		s.must(s.cluster.SwitchOver(s.awaitPrimary()))
		s.awaitPrimary()
		s.awaitBalance()
	}}
)

// Faults of MySQL servers that replicate.
var (
	bothCrashed = fault{allServersKilled, func(s *stage) {
		s.nodes = []*testdb.Server{s.server, s.replica}
		s.crashAll()
		s.awaitBalance()
	}}
	replicaPromoted = fault{standbyTakesOver, func(s *stage) {
		from := time.Now()
		s.must(s.server.Kill())
		s.must(testdb.Promote(s.replica))
		s.switchTo(s.replica)
		for _, w := range s.workers {
			s.lead(w, s.replica)
		}
		s.workerURL = s.replica.URL()
		s.awaitWrites(from)
		s.awaitBalance()
	}}
	groupPrimaryKilled = fault{"one server killed", func(s *stage) {
		primary := s.group.Primary()
		s.killServers(primary)
		s.must(primary.Start())
		s.awaitGroup(primary)
		s.awaitBalance()
	}}
	// A router closes the connections to a primary that the group has expelled. What the old primary has under way when it
	// runs again, it cannot commit.
	groupPrimaryFrozen = fault{"primary frozen", func(s *stage) {
		primary, from := s.group.Primary(), time.Now()
		s.must(primary.Freeze())
		s.until("the group has another primary", func() bool { p := s.group.Primary(); return p != nil && p != primary })
		for _, w := range s.workers {
			w.proxy.Cut()
		}
		s.view.Cut()
		s.awaitWrites(from)
		s.eachQueueGoesOn()
		s.must(primary.Thaw())
		s.awaitGroup(primary)
		s.awaitBalance()
	}}
)

// awaitGroup takes a server back into its group, and waits until the group is whole.
func (s *stage) awaitGroup(back *testdb.Server) {
	s.t.Helper()
	s.until("the group is whole", func() bool { return s.group.Join(back) == nil && s.group.Whole() })
}

// The names of faults that several engines have.
const (
	allServersKilled = "all servers killed"
	standbyTakesOver = "standby takes over"
)

// awaitPrimary waits until both other servers of a cluster of Patroni follow the primary, one of them synchronously.
func (s *stage) awaitPrimary() (primary *testdb.Server) {
	s.t.Helper()
	s.until("the cluster is whole", func() bool {
		primary = s.cluster.Primary()
		return primary != nil && s.cluster.MaySwitchOver() &&
			s.count(`SELECT COUNT(*) FROM pg_stat_replication WHERE state = 'streaming'`) == len(s.nodes)-1 &&
			s.count(`SELECT COUNT(*) FROM pg_stat_replication WHERE sync_state = 'sync'`) == 1
	})
	return primary
}

// withStandby: a commit is acknowledged when the standby has it. First both servers die and come back, and then the
// primary dies and the standby takes over.
func withStandby(s *stage) {
	standby, _ := testdb.Standby(s.t, s.server)
	s.exec(`ALTER SYSTEM SET synchronous_standby_names = '*'`, `SELECT pg_reload_conf()`)
	synchronous := func() bool { return s.count(`SELECT COUNT(*) FROM pg_stat_replication WHERE sync_state = 'sync'`) == 1 }
	s.until("the standby is synchronous", synchronous)
	both := fault{allServersKilled, func(s *stage) {
		s.nodes = []*testdb.Server{s.server, standby}
		s.crashAll()
		s.until("the standby is synchronous", synchronous)
		s.awaitBalance()
	}}
	takesOver := fault{standbyTakesOver, func(s *stage) {
		from := time.Now()
		s.must(s.server.Kill())
		s.promote(standby)
		for _, w := range s.workers {
			s.lead(w, standby)
		}
		s.workerURL = standby.URL()
		s.awaitWrites(from)
		s.awaitBalance()
	}}
	failover("primary and a synchronous standby", beside(both, takesOver)...)(s)
}

// failoverRows returns the number of rows: ROTA_FAULTS_ROWS, or a tenth of what make engines plays.
func failoverRows(t *testing.T) int {
	t.Helper()
	text := os.Getenv("ROTA_FAULTS_ROWS")
	if text == "" {
		return 5000
	}
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		t.Fatalf("ROTA_FAULTS_ROWS (%q) must be a number above 0", text)
	}
	return n
}

// failover returns a play of the faults. The supply adds rows as long as faults come, and then what is missing. The
// play states its figures as an attribute of the test.
func failover(servers string, faults ...fault) func(*stage) {
	return func(s *stage) {
		s.t.Attr(engines.EngineAttr, centertest.Engine(s.t, s.c))
		during := make([]interval, len(faults))
		for i, f := range faults {
			during[i].from = time.Now()
			f.play(s)
			s.eachQueueGoesOn()
			during[i].to = time.Now()
		}
		s.supplyUpTo(failoverRows(s.t))
		review := s.review
		s.review = func(s *stage, h *History) {
			list := make([]engines.Fault, len(faults))
			for i, f := range faults {
				all, queue := pauses(h.Spans, during[i])
				list[i] = engines.Fault{Name: f.name, All: tenths(all), Queue: tenths(queue)}
			}
			if review != nil {
				review(s, h)
			} else if slices.ContainsFunc(h.Events, func(e Event) bool { return e.Kind == ops.EventHistory }) {
				s.t.Error("the database has lost history that it had acknowledged")
			}
			figures := tally(*h)
			figures.Servers, figures.Faults = servers, list
			text, err := json.Marshal(figures)
			s.must(err)
			s.t.Attr(engines.FailoverAttr, string(text))
		}
	}
}

// tenths returns the duration in seconds, with one digit behind the point.
func tenths(d time.Duration) float64 { return d.Round(100 * time.Millisecond).Seconds() }

// supplyUpTo ends the supply, inserts what is missing to so many items, and waits until all are done.
func (s *stage) supplyUpTo(rows int) {
	s.t.Helper()
	s.stopSupply()
	next := slices.Max(s.highest[:]) + 1
	for s.count(`SELECT COUNT(*) FROM items`) < rows {
		ids := make([]int, 10*queues)
		for i := range ids {
			ids[i] = next + i
		}
		next += len(ids)
		s.insert(s.t.Context(), s.c, ids)
	}
	for left := rows; left > 0; {
		s.until("more items are done", func() bool {
			n := s.count(`SELECT COUNT(*) FROM items WHERE done = 0`)
			if n < 0 || n >= left {
				return false
			}
			left = n
			return true
		})
	}
}

// TestFailoverFigures checks what a play reads from its history.
func TestFailoverFigures(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	call := func(queue, server string, epoch int64, end int, done bool) Span {
		return Span{Queue: queue, Server: server, Epoch: epoch, End: at(end), Done: done}
	}
	h := History{
		Spans: []Span{
			call("0", "a", 1, 1, true), call("0", "b", 2, 4, true), call("0", "b", 2, 6, false), call("0", "b", 2, 9, true),
			call("1", "a", 1, 2, true), call("1", "b", 1, 3, true), call("1", "b", 1, 8, true),
		},
		Items:   []Item{{1, true, 1}, {2, true, 2}, {3, true, 1}, {4, false, 0}, {5, true, 1}},
		Effects: []Effect{{Item: 1}, {Item: 2}, {Item: 3}, {Item: 3}},
	}
	if all, queue := pauses(h.Spans, interval{at(0), at(10)}); all != 4*time.Second || queue != 5*time.Second {
		t.Errorf("pauses of %s and %s, want 4s of all queues and 5s of one", all, queue)
	}
	if all, queue := pauses(h.Spans, interval{at(5), at(7)}); all != 2*time.Second || queue != 2*time.Second {
		t.Errorf("pauses of %s and %s in an interval without a call, want its 2s", all, queue)
	}
	if f := tally(h); f.Rows != 5 || f.Twice != 2 || f.Lost != 2 || f.TwoOwners != 1 {
		t.Errorf("%+v, want 5 rows, 2 twice, 2 lost, and 1 epoch with two owners", f)
	}
}
