//go:build linux

package faults

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/verbs"
)

// dataScenarios have the items in data databases, and the fence too (F11). The data databases of a play on PostgreSQL
// or MariaDB are of both kinds. They record the epochs and the effects, and keep them when the roster loses history.
var dataScenarios = []scenario{
	{name: "data-kill", play: kill, kinds: everywhere, shards: 3, quick: true},
	{name: "data-kill-before-commit", play: killBeforeCommit, kinds: everywhere, shards: 3},
	{name: "data-pause-in-item", play: pauseInItem, kinds: everywhere, shards: 3, threads: 1, quick: true},
	{name: "data-pause-before-commit", play: pauseWithShardHeld, shards: 3, threads: 1, quick: true},
	{name: "data-vanish-before-commit", play: vanishWithShardHeld, shards: 3, proxied: true, idleTx: 5 * time.Second},
	{name: "data-rolling-restart", play: rollingRestart, kinds: everywhere, shards: 3, quick: true},
	{name: "data-cursor-pause-before-commit", play: pauseWithShardHeld, shards: 3, threads: 1, variant: inOrder},
	{name: "data-replies-lost-at-random", play: shardRepliesLost, shards: 3, proxied: true},
	{name: "data-partition-of-shard", play: shardPartitioned, shards: 3, proxied: true, reply: shardReply},
	{name: "data-shard-away-from-one", play: shardAwayFromOne, shards: 3, proxied: true, reply: shardReply},
	{name: "data-repartitioned", play: repartitionWithShardHeld, shards: 1, threads: 1},
	{name: "data-split", play: splitWithShardHeld, shards: 1, threads: 1},
	{name: "data-split-kill", play: splitUnderKill, shards: 1},
	{name: "data-galera-node-dies", play: nodeDiesUnderKills, kinds: galeraKinds, galera: true, slow: true, shards: 1},
	{name: "data-galera-node-freezes", play: shardFreezes, kinds: galeraKinds, galera: true, slow: true, shards: 1},
	{name: "data-backup-restored", play: backupRestored, own: true, shards: 3, review: reviewWitnessedLoss},
	{name: "data-alone-is-witness", play: dataAloneIsWitness, own: true, shards: 3, review: reviewWitnessedLoss},
	{
		name: "data-split-brain", play: splitBrainOverShards, kinds: pooledKinds, own: true, proxied: true, shards: 3,
		review: reviewWitnessedLoss,
	},
}

// shard is a data database.
type shard struct{ name, url string }

// prepareData makes n data databases, or one on the cluster of the scenario, and divides the queues among them.
func (s *scene) prepareData(kind string, n int) {
	s.t.Helper()
	var parts []string
	for i := range n {
		name := fmt.Sprintf("shard%d", i)
		var at string
		if s.nodes != nil {
			at, _ = testdb.Balanced(s.t, s.nodes[0].URL(), s.nodes[1].URL(), s.nodes[2].URL())
		} else {
			at = testdb.URL(s.t, shardKind(s.t, kind, i))
		}
		s.data = append(s.data, shard{name, at})
		parts = append(parts, fmt.Sprintf("%d-%d=%s", i*queues/n, (i+1)*queues/n-1, name))
	}
	if n == 1 {
		parts = []string{s.data[0].name} // also for the parts of a queue that is split
	}
	s.settings.Database = strings.Join(parts, ",")
}

// shardKind returns the kind of a data database: the kinds of servers take turns.
func shardKind(t *testing.T, kind string, i int) string {
	other := map[string]string{testdb.Postgres: testdb.MySQL, testdb.MySQL: testdb.Postgres, testdb.MariaDB: testdb.Postgres}[kind]
	if i%2 == 1 && slices.Contains(testdb.Kinds(t), other) {
		return other
	}
	return kind
}

// openData creates the tables of the fence in the data databases, and opens them for the scenario.
func (s *scene) openData(ctx context.Context) {
	s.t.Helper()
	for _, d := range s.data {
		_, err := center.MigrateData(ctx, anydb.URL(d.url))
		s.must(err)
		_, err = s.c.FenceIn(d.name, anydb.URL(d.url))
		s.must(err)
	}
}

// places returns the databases with items.
func (s *scene) places() (list []place) {
	for _, d := range s.c.AllData() {
		list = append(list, d)
	}
	if len(list) == 0 {
		list = append(list, s.c)
	}
	return list
}

// placeOf returns the database with the items of a queue.
func (s *scene) placeOf(queue int) place {
	name, err := s.settings.DatabaseOf(strconv.Itoa(queue))
	if err != nil {
		panic(err) // prepareData has divided all queues
	}
	return placeOf(s.c, name)
}

// dataThrough returns the URLs of the data databases for a worker. If the scenario disturbs the network, they lead
// through proxies, which it puts into the map.
func (s *scene) dataThrough(proxies map[string]*testdb.Proxy) map[string]string {
	urls := map[string]string{}
	for _, d := range s.data {
		urls[d.name] = d.url
		if s.proxied {
			urls[d.name], proxies[d.name] = testdb.Through(s.t, d.url)
		}
	}
	return urls
}

// anyShard returns the name of a random data database.
func (s *scene) anyShard() string { return s.data[s.IntN(len(s.data))].name }

// worksIn waits until n more items of a data database are done.
func (s workerSteps) worksIn(name string, n int) {
	s.t.Helper()
	from := s.doneIn(name)
	s.until(fmt.Sprintf("%d more items of %s are done", n, name), func() bool { return s.doneIn(name) >= from+n })
}

func (s *scene) doneIn(name string) int {
	return s.countIn(s.c.Data(name), `SELECT COUNT(*) FROM items WHERE done = 1`)
}

// awaitAlert waits for an alert of a kind.
func (s *scene) awaitAlert(kind condition.Kind) {
	s.t.Helper()
	s.until("there is the alert "+kind.Name, func() bool {
		return s.count(`SELECT COUNT(*) FROM schedule_event WHERE alert = ?`, kind.Name) > 0
	})
}

// pauseWithShardHeld: a transaction of a data database that has its fence stands still before its commit. The others
// take over all queues of the worker, since nothing is held in the roster. They work them all except that of the
// transaction, which waits for it (FENCE_WAIT).
func pauseWithShardHeld(s *stage) {
	w := s.any()
	from := time.Now()
	w.arm("stop commit")
	s.until("the worker has stopped itself", w.Stopped)
	s.awaitExpiry(w, from)
	s.until("the others own all queues", func() bool {
		return s.count(`SELECT COUNT(*) FROM schedule_assignment WHERE status = 'HELD' AND cur_pid <> ?`, w.PID) == queues
	})
	s.awaitAlert(condition.FenceWait)
	s.works(queues * backlog)
	s.awaitRaise()
	s.wake(w, from)
	for _, d := range s.data {
		s.worksIn(d.name, 10)
	}
}

// awaitRaise waits until a raise waits for a transaction of a data database. It gives up soon, and the next select
// tries again.
func (s *scene) awaitRaise() {
	s.t.Helper()
	s.until("a raise waits", func() bool {
		return slices.ContainsFunc(s.data, func(d shard) bool {
			return testdb.Waiting(s.t, d.url, s.c.Data(d.name).DB()) > 0
		})
	})
}

// repartitionWithShardHeld: while a transaction of a data database that has its fence stands still before its commit,
// the number of queues changes. All queues of the new number wait for it, because any of them may get its items.
func repartitionWithShardHeld(s *stage) {
	w := s.any()
	from := time.Now()
	w.arm("stop commit")
	s.until("the worker has stopped itself", w.Stopped)
	s.awaitExpiry(w, from)
	s.repartition(queues - 2)
	s.awaitAlert(condition.FenceWait)
	s.awaitRaise()
	s.wake(w, from)
	s.works(20)
	s.repartition(queues)
	s.works(20)
}

// splitWithShardHeld: while a transaction of a data database that has its fence stands still before its commit, the others
// take its queue over and split it. Each part waits for the transaction, because it may have items of either.
func splitWithShardHeld(s *stage) {
	w := s.any()
	from := time.Now()
	w.arm("stop commit")
	s.until("the worker has stopped itself", w.Stopped)
	s.awaitExpiry(w, from)
	s.resize(2 * queues)
	s.until("all queues are split", func() bool {
		return s.count(`SELECT COUNT(*) FROM schedule_queue WHERE task_type = ?`, taskType) == 2*queues
	})
	s.awaitAlert(condition.FenceWait)
	s.wake(w, from)
	s.resized(2 * queues)
	s.works(20)
}

// repartition changes the number of queues.
func (s workerSteps) repartition(n int) {
	s.t.Helper()
	s.must(s.c.Roster().Operator("test").Repartition(s.t.Context(), taskType, n, 0))
	s.until(fmt.Sprintf("there are %d queues", n), func() bool {
		return s.count(`SELECT COUNT(*) FROM schedule_queue WHERE task_type = ?`, taskType) == n
	})
}

// nodeDiesUnderKills: the items are on a cluster, and the roster is not. Workers are killed while a node is away, and
// again when it has come back.
func nodeDiesUnderKills(s *stage) {
	for range 2 {
		node := s.nodes[s.IntN(len(s.nodes))]
		s.must(node.Kill())
		kill(s)
		s.worksIn(s.data[0].name, 50)
		s.start(1)
		s.must(node.Start())
		s.awaitNodes()
		kill(s)
		s.start(1)
		s.worksIn(s.data[0].name, 50)
		s.awaitBalance()
	}
}

// shardFreezes: as in nodeFreezes, but only the items are on the cluster. A worker is killed meanwhile.
func shardFreezes(s *stage) {
	node := s.nodes[s.IntN(len(s.nodes))]
	s.must(node.Freeze())
	kill(s)
	s.sleep(75 * time.Second) // longer than reply_timeout
	s.worksIn(s.data[0].name, queues*backlog)
	s.must(node.Thaw())
	s.awaitNodes()
	s.start(1)
	s.worksIn(s.data[0].name, 50)
	s.awaitBalance()
}

// vanishWithShardHeld: the host of a worker vanishes in the middle of a fenced transaction of a data database, which
// ends it after idle_tx_timeout.
func vanishWithShardHeld(s *stage) {
	w := s.any()
	w.arm("stop commit")
	s.until("the worker has stopped itself", w.Stopped)
	w.proxy.Vanish()
	for _, p := range w.data {
		p.Vanish()
	}
	s.kill(w)
	s.awaitExpiry(w, w.Ended)
	s.awaitBalance()
	for _, d := range s.data {
		s.worksIn(d.name, 10)
	}
}

// shardRepliesLost: statements reach a data database, commits and raises included, and their replies are lost.
func shardRepliesLost(s *stage) {
	for range 20 {
		p := s.any().data[s.anyShard()]
		p.LoseReplies(true)
		s.sleep(s.upTo(s.settings.HeartbeatInterval / 2))
		p.Cut()
		p.LoseReplies(false)
		s.sleep(s.upTo(s.settings.HeartbeatInterval))
	}
	for _, d := range s.data {
		s.worksIn(d.name, 10)
	}
}

// shardReply is the reply_timeout in scenarios in which the network swallows packets. It bounds how long the calls that
// are under way keep their executors.
const shardReply = 3 * time.Second

// shardPartitioned: no worker reaches one of the data databases. Its queues stand still, and all others go on. Then a
// worker is killed, and the others take over its queues.
func shardPartitioned(s *stage) {
	lost := s.anyShard()
	s.cutOff(lost, s.workers...)
	s.awaitAlert(condition.Unreachable)
	s.sleep(s.dead(1))
	from := s.doneIn(lost)
	s.othersWork(lost)
	w := s.any()
	s.kill(w)
	s.awaitExpiry(w, w.Ended)
	s.othersWork(lost)
	if n := s.doneIn(lost); n != from {
		s.t.Errorf("%d items of %s were done while no worker reached it", n-from, lost)
	}
	s.reconnect(lost, s.workers...)
	s.worksIn(lost, 20)
}

// shardAwayFromOne: one worker does not reach one of the data databases. It keeps its queues there, which stand still,
// until it leaves. Then the others work them.
func shardAwayFromOne(s *stage) {
	w := s.any()
	lost := s.shardOf(w)
	s.cutOff(lost, w)
	s.awaitAlert(condition.Unreachable)
	s.othersWork(lost)
	s.leave(w)
	s.awaitBalance()
	s.worksIn(lost, 20)
	s.start(1)
	s.worksIn(lost, 20)
}

// shardOf returns the data database of a queue that a worker owns.
func (s *scene) shardOf(w *worker) string {
	s.t.Helper()
	queue := s.count(`SELECT MIN(queue_index) FROM schedule_assignment WHERE status = 'HELD' AND cur_pid = ?`, w.PID)
	name, err := s.settings.DatabaseOf(strconv.Itoa(queue))
	s.must(err)
	return name
}

// cutOff makes packets between workers and a data database vanish.
func (*scene) cutOff(name string, from ...*worker) {
	for _, w := range from {
		w.data[name].Swallow(true)
	}
}

// reconnect ends what cutOff has begun.
func (*scene) reconnect(name string, to ...*worker) {
	for _, w := range to {
		w.data[name].Swallow(false)
		w.data[name].Cut() // lost packets stay lost
	}
}

// othersWork waits until items of all data databases but one are done.
func (s workerSteps) othersWork(lost string) {
	s.t.Helper()
	for _, d := range s.data {
		if d.name != lost {
			s.worksIn(d.name, 2*backlog)
		}
	}
}

// dataAloneIsWitness: a backup of the roster is restored after all workers have ended, so that no process remembers
// what is lost. The data databases have the epochs since the backup.
func dataAloneIsWitness(s *stage) {
	s.must(s.server.Stop())
	s.must(s.server.Save())
	from := time.Now()
	s.must(s.server.Start())
	s.works(10)
	s.moveQueues()
	for _, w := range s.live() {
		s.kill(w)
	}
	s.must(s.server.Kill())
	s.must(s.server.Restore())
	s.must(s.server.Start())
	s.start(workers)
	s.fallsBack(from)
}

// splitBrainOverShards: as in splitBrain, but both sides work the same data databases. These let only the side write
// that has raised a queue's epoch last. Each side finds the other one ahead of its own roster, and raises its epochs
// once. The second time it waits for an operator.
func splitBrainOverShards(s *stage) {
	standby, from := s.lag()
	live := s.live()
	s.promote(standby)
	s.lead(live[0], standby)
	ahead := func() bool { return s.fenced() >= s.highestEpoch()+leastRise }
	s.until("both sides have raised their epochs", func() bool { return s.highestEpoch() > 2*leastRise || ahead() })
	s.works(20)
	s.must(s.server.Kill())
	for _, w := range live[1:] {
		s.lead(w, standby)
	}
	s.workerURL = standby.URL()
	s.awaitBalance()
	if ahead() {
		s.acknowledgeLoss()
		s.until("no data database is ahead", func() bool { return !ahead() })
	}
	s.fallsBack(from)
}

// leastRise is half the number by which epochs rise at least after a loss of history (H8).
const leastRise = 500_000

// highestEpoch returns the highest epoch in the roster.
func (s *scene) highestEpoch() int { return s.count(`SELECT MAX(epoch) FROM schedule_queue`) }

// fenced returns the highest epoch in the data databases.
func (s *scene) fenced() (epoch int) {
	for _, at := range s.places() {
		epoch = max(epoch, s.countIn(at, `SELECT COALESCE(MAX(epoch), 0) FROM rota_fence`))
	}
	return epoch
}

// acknowledgeLoss acknowledges the loss of history as an operator does.
func (s *scene) acknowledgeLoss() {
	s.t.Helper()
	change, err := verbs.AckLoss{}.Prepare(s.t.Context(), ops.New(s.c))
	s.must(err)
	_, err = change.Do(s.t.Context(), "test")
	s.must(err)
}

// reviewWitnessedLoss is reviewLoss for a roster whose effects are in data databases. These keep the effects under the
// epochs that are lost.
func reviewWitnessedLoss(s *stage, h *History) {
	reviewLoss(s, h)
	h.Witnessed = true
}
