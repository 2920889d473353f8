//go:build linux

package faults

import (
	"cmp"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/internal/witness/witnesstest"
)

// scenario is one fault, or several faults of one kind.
type scenario struct {
	name    string
	play    func(*stage)
	kinds   []string // databases; nil for PostgreSQL and MariaDB
	quick   bool     // short enough to be played for each change
	always  bool     // played by each choice that may have it
	seldom  bool     // too long for a choice: only ROTA_FAULTS=all and a campaign play it
	family  string   // groups related scenarios; scenarios() sets it
	own     bool     // has a database server of its own, which it may stop
	proxied bool     // disturbs the network: each worker has a proxy
	threads int      // executors of each worker; 0 means 2
	idle    bool     // no items are supplied during the scenario
	backlog int      // undone items that the supply keeps in each queue; 0 means few
	variant variant  // what the dealer can do
	inTx    bool     // the workers write in transactions; without it, the seed decides whether they use ExecFenced

	pooled  bool                   // a PgBouncer in transaction mode is between the workers and the database
	galera  bool                   // the database, or that of the items, is a Galera cluster behind a balancer
	patroni bool                   // the database is a cluster that Patroni leads, behind a balancer
	group   bool                   // the database is a Group Replication of MySQL, behind a balancer
	semi    bool                   // the database is a MySQL server with a semi-synchronous replica
	guest   bool                   // the workers have a database user of their own; requires own
	disk    bool                   // the scenario's own database has a disk that can be filled
	slow    bool                   // uses the default intervals
	upgrade bool                   // the roster is a first release's, and the first workers are of the previous version
	witness bool                   // the workers have a witness directory
	idleTx  time.Duration          // idle_tx_timeout of the workers; 0 means the default
	returns time.Duration          // return_within of workers with names
	reply   time.Duration          // reply_timeout of the workers; 0 means the default
	shards  int                    // the items are in so many data databases; 0 means in the roster's database
	pool    int                    // connections of the dealers of each worker; 0 means no limit
	review  func(*stage, *History) // reads the history before Check, and may change it

	checked func(History, []Violation) // receives the violations that Check found; may be nil
}

var everywhere = []string{testdb.Postgres, testdb.MySQL, testdb.MariaDB, testdb.SQLite}

func scenarios() (list []scenario) {
	families := []struct {
		name string
		list []scenario
	}{
		{"process", slices.Concat(processScenarios, resizeScenarios)},
		{"witness", witnessScenarios},
		{"database", databaseScenarios},
		{"network", networkScenarios},
		{"limit", limitScenarios},
		{"pooled", pooledScenarios},
		{"standby", standbyScenarios},
		{"lost", lostScenarios},
		{"data", dataScenarios},
		{"galera", galeraScenarios},
		{"failover", failoverScenarios},
		{"variant", slices.Concat(variantScenarios, orderScenarios)},
		{"block", blockScenarios},
		{"reserve", reserveScenarios},
		{"edit", editScenarios},
		{"run", runScenarios},
		{"step", stepScenarios},
		{"trigger", triggerScenarios},
		{"operate", operateScenarios},
		{"backfill", backfillScenarios},
		{"upgrade", upgradeScenarios},
	}
	for _, f := range families {
		for _, sc := range f.list {
			sc.family = f.name
			list = append(list, sc)
		}
	}
	return list
}

// TestFaults plays the chosen scenarios. go test -run with the name of a scenario plays only that one; the seed repeats
// its random choices.
func TestFaults(t *testing.T) {
	seed := seed(t)
	list := plays(testdb.Kinds(t))
	names := wanted(t, list, seed)
	for _, p := range list {
		t.Run(p.name(), func(t *testing.T) {
			if !names[p.name()] {
				t.Skip("not chosen by the seed; ROTA_FAULTS=all plays it")
			}
			t.Parallel()
			p.run(t, p.kind, seed)
		})
	}
}

func seed(t *testing.T) uint64 {
	text := os.Getenv("ROTA_FAULTS_SEED")
	if text == "" {
		return uint64(time.Now().UnixNano())
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("parse ROTA_FAULTS_SEED: %v", err)
	}
	return n
}

func (sc scenario) run(t *testing.T, kind string, seed uint64) {
	again := "TestFaults/" + kind + "/" + sc.name // the same in TestFaults and TestCampaign
	name := fnv.New64a()
	_, _ = name.Write([]byte(again)) // cannot fail
	s := newStage(&scene{
		t: t, Rand: rand.New(rand.NewPCG(seed, name.Sum64())), settings: defaults(kind),
		proxied: sc.proxied, dir: t.TempDir(),
	})
	s.settings.ThreadNumber = cmp.Or(sc.threads, s.settings.ThreadNumber)
	s.idleTx, s.reply = sc.idleTx, sc.reply
	s.pool, s.returns, s.variant, s.backlog = sc.pool, sc.returns, sc.variant, cmp.Or(sc.backlog, sc.variant.backlog())
	s.review, s.checked = sc.review, sc.checked
	s.single = !sc.inTx && s.IntN(2) == 0
	sc.variant.apply(&s.settings)
	if sc.slow {
		s.settings.HeartbeatInterval, s.settings.JudgeDeadInterval = 2*time.Second, 10*time.Second
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("play again: ROTA_FAULTS=all ROTA_FAULTS_SEED=%d go test -run '^%s$' ./internal/faults", seed, again)
		}
	})
	sc.prepareDatabase(s, kind)
	s.prepareData(kind, sc.shards)
	if sc.witness {
		s.witness = witnesstest.Dir(s.t)
	}
	if sc.upgrade {
		s.restore(kind)
		before, _ := s.versions()
		s.program = before.worker
	}
	s.open()
	if sc.guest {
		s.workerURL = s.createGuest()
	}
	if sc.idle {
		s.stopSupply()
	}
	s.start(workers)
	if !sc.idle && !sc.variant.runs() {
		s.works(10)
		for _, d := range s.data { // each has its id: a backup of the roster from before is refused
			s.worksIn(d.name, 1)
		}
	}
	sc.play(s)
	s.close()
}

// prepareDatabase gives the stage a database.
func (sc scenario) prepareDatabase(s *stage, kind string) {
	s.t.Helper()
	switch {
	case sc.galera && sc.shards > 0:
		s.nodes = testdb.Galera(s.t)
		s.url = testdb.URL(s.t, kind)
	case sc.galera:
		s.nodes = testdb.Galera(s.t)
		s.url, s.view = testdb.Balanced(s.t, s.nodes[0].URL(), s.nodes[1].URL(), s.nodes[2].URL())
	case sc.patroni:
		s.cluster, s.url, s.view = testdb.Patroni(s.t)
		s.nodes = s.cluster.Nodes
	case sc.group:
		s.group, s.url, s.view = testdb.GroupReplication(s.t)
		s.nodes = s.group.Nodes
	case sc.semi:
		s.server, s.replica = testdb.SemiSync(s.t)
		s.url, s.view = testdb.Through(s.t, s.server.URL())
	case sc.disk:
		s.server = testdb.OwnDisk(s.t)
		s.url = s.server.URL()
	case sc.own:
		s.server = testdb.Own(s.t, kind)
		s.url = s.server.URL()
	default:
		s.url = testdb.URL(s.t, kind)
	}
	s.workerURL = s.url
	if sc.pooled {
		s.pooler = testdb.Pooled(s.t, s.url)
		s.workerURL = s.pooler.URL()
	}
	if sc.own && sc.proxied {
		s.url, s.view = testdb.Through(s.t, s.url)
	}
}
