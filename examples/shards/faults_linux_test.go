package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/proctest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/verbs"
	"github.com/dutyrota/rota/schema"
)

// workerVariable makes the test binary a worker. It has the URLs of the roster and of the shards.
const workerVariable = "SHARDS_TEST_WORKER"

func TestMain(m *testing.M) {
	if urls := strings.Fields(os.Getenv(workerVariable)); len(urls) > 0 {
		if err := workerProcess(cluster{urls[0], urls[1:], options}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// options make databases give up a silent process, and processes a silent database, before the tests lose their
// patience.
var options = center.Options{IdleTxTimeout: 5 * time.Second, ReplyTimeout: 3 * time.Second}

// workerProcess is the main function of a worker of the tests.
func workerProcess(cl cluster) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c, err := cl.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return cl.pay(ctx, c, pausing{payments{c}, proctest.NewGate(os.Stdin)})
}

// pausing is a dealer in which a payment stays while the test holds it. Meanwhile the test stops the process and
// continues it. Then the payment is tried, whatever has happened meanwhile, which is the worst that a worker can do.
type pausing struct {
	payments
	gate proctest.Gate
}

// What a payment prints that was held.
const (
	through = "the payment has got through"
	refused = "the fence has refused the payment"
)

// Execute implements processor.TaskDealer.
func (p pausing) Execute(ctx context.Context, ids []int64) error {
	if !p.gate.Pass() {
		return p.payments.Execute(ctx, ids)
	}
	err := p.payments.Execute(context.WithoutCancel(ctx), ids)
	switch {
	case err == nil:
		fmt.Println(through)
	case errors.Is(err, center.ErrFenced):
		fmt.Println(refused)
	}
	return err
}

// Workers are killed and stand still in a payment, leave and join, while invoices come: each is paid once.
func TestFaultsOnSQLite(t *testing.T) {
	t.Parallel()
	cl := cluster{roster: testdb.URL(t, testdb.SQLite)}
	for range 8 {
		cl.shards = append(cl.shards, testdb.URL(t, testdb.SQLite))
	}
	s := newStage(t, cl)
	s.startThree()
	s.killInPayment()
	s.stopInPayment()
	s.handOver()
	s.finish()
}

// The same on servers of two kinds. Besides, the workers lose a shard of each kind, and the roster is split. Short tests
// leave that out: the plays data-* of internal/faults have faults of data databases on servers, some in each run.
func TestFaultsOnServers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a minute: make check plays it")
	}
	server := testdb.Own(t, testdb.Postgres)
	view, proxy := testdb.Through(t, server.URL())
	cl := cluster{roster: view}
	for range 4 {
		cl.shards = append(cl.shards, testdb.URL(t, testdb.Postgres), testdb.URL(t, testdb.MySQL))
	}
	s := newStage(t, cl)
	s.server, s.view = server, proxy
	s.startThree()
	s.killInPayment()
	s.stopInPayment()
	s.partition(0)
	s.partition(1)
	s.splitRoster()
	s.finish()
}

// stage is one play. Its goroutine calls the methods.
type stage struct {
	t       *testing.T
	c       *center.Center // of the test: leads past the proxies of the workers
	cluster cluster
	live    []*worker
	since   time.Time

	server *testdb.Server // of the roster; nil on SQLite
	view   *testdb.Proxy  // between the test and the server of the roster

	supply *errgroup.Group
	end    context.CancelFunc // of the supply
}

// worker is a process that pays, and the proxies between it and the databases. There are none on SQLite.
type worker struct {
	*proctest.Process
	roster *testdb.Proxy
	shards []*testdb.Proxy
}

// newStage creates the tables and begins to add invoices.
func newStage(t *testing.T, cl cluster) *stage {
	t.Helper()
	cl.options = options
	c, err := cl.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	s := &stage{t: t, c: c, cluster: cl, since: time.Now()}
	s.must(createTables(t.Context(), c))
	settings := cl.settings()
	settings.HeartbeatInterval, settings.JudgeDeadInterval = 400*time.Millisecond, 2*time.Second
	if c.Dialect() == schema.SQLite { // its writers wait for each other in no fair order
		settings.HeartbeatInterval, settings.JudgeDeadInterval = 600*time.Millisecond, 3*time.Second
	}
	settings.SleepTimeNoData = 50 * time.Millisecond
	_, err = ops.New(c).Tasks().Define(t.Context(), "pay", settings)
	s.must(err)
	ctx, end := context.WithCancel(t.Context())
	s.supply, ctx = errgroup.WithContext(ctx)
	s.end = end
	s.supply.Go(func() error { return s.addInvoices(ctx) })
	t.Cleanup(func() {
		end()
		_ = s.supply.Wait() // finish has looked at it, unless the test has failed
	})
	return s
}

// addInvoices keeps a few unpaid invoices in each queue, so that a queue that stands still does not stop the others.
func (s *stage) addInvoices(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(100 * time.Millisecond):
		}
		for shard, data := range s.c.AllData() {
			ctx := context.WithoutCancel(ctx)
			all, paid, err := invoices(ctx, data)
			if err != nil {
				return err
			}
			var ids []int
			first, next := s.cluster.queuesOf(shard)
			for queue := first; queue < next; queue++ {
				for n := all[queue]; n < paid[queue]+3; n++ {
					ids = append(ids, n*queues+queue)
				}
			}
			if err := addInvoices(ctx, data, ids); err != nil {
				return err
			}
		}
	}
}

// invoices counts the invoices of a shard by queue, and those that are paid.
func invoices(ctx context.Context, data *center.Data) (all, paid map[int]int, err error) {
	rows, err := data.DB().QueryContext(ctx,
		`SELECT queue, COUNT(*), COUNT(paid_by) FROM invoice GROUP BY queue`)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	all, paid = map[int]int{}, map[int]int{}
	for rows.Next() {
		var queue, n, done int
		if err := rows.Scan(&queue, &n, &done); err != nil {
			return nil, nil, err
		}
		all[queue], paid[queue] = n, done
	}
	return all, paid, rows.Err()
}

// start starts a worker.
func (s *stage) start() *worker {
	s.t.Helper()
	w := &worker{shards: make([]*testdb.Proxy, len(s.cluster.shards))}
	urls := slices.Concat([]string{s.cluster.roster}, s.cluster.shards)
	if s.server != nil {
		urls[0], w.roster = testdb.Through(s.t, s.server.URL())
		for i, url := range s.cluster.shards {
			urls[1+i], w.shards[i] = testdb.Through(s.t, url)
		}
	}
	w.Process = proctest.Start(s.t, os.Args[0], filepath.Join(s.t.TempDir(), "log"),
		workerVariable+"="+strings.Join(urls, " "))
	s.live = append(s.live, w)
	return w
}

// gone forgets the first worker, and returns it.
func (s *stage) gone() (w *worker) {
	w, s.live = s.live[0], s.live[1:]
	return w
}

func (s *stage) startThree() {
	s.t.Helper()
	for range 3 {
		s.start()
	}
	s.shared("three workers start")
}

func (s *stage) killInPayment() {
	s.t.Helper()
	w := s.gone()
	w.Hold()
	s.until("a worker is in a payment", w.Held)
	w.Kill()
	s.shared("one is killed in a payment")
	s.start()
	s.shared("one joins")
}

// stopInPayment makes a worker stand still in a payment until the others have its queues. Then it goes on to pay.
func (s *stage) stopInPayment() {
	s.t.Helper()
	w := s.gone()
	w.Hold()
	s.until("a worker is in a payment", w.Held)
	s.stop(w)
	s.shared("one stands still in a payment")
	w.Release()
	w.Signal(syscall.SIGCONT)
	printed := func(text string) bool { return strings.Contains(w.Log(), text) }
	s.until("it has tried to pay", func() bool { return printed(through) || printed(refused) })
	if printed(through) {
		s.t.Error("the fence has not refused a payment of an earlier owner")
	}
	s.live = append(s.live, w)
	s.shared("it is back")
}

// stop stops a worker. A process that stops in a transaction of SQLite keeps all others out of the file, without a time
// limit. So the test has the lock of each file meanwhile.
func (s *stage) stop(w *worker) {
	s.t.Helper()
	if s.c.Dialect() == schema.SQLite {
		dbs := []*sql.DB{s.c.DB()}
		for _, data := range s.c.AllData() {
			dbs = append(dbs, data.DB())
		}
		for _, db := range dbs {
			tx, err := db.BeginTx(s.t.Context(), nil) // has the lock: _txlock is immediate
			s.must(err)
			defer tx.Rollback()
		}
	}
	w.Signal(syscall.SIGSTOP)
	s.until("the worker stands still", w.Stopped)
}

// partition keeps all packets from a shard. All other shards go on.
func (s *stage) partition(shard int) {
	s.t.Helper()
	lost := s.c.AllData()[shard]
	first, next := s.cluster.queuesOf(shard)
	isLost := func(queue int) bool { return first <= queue && queue < next }
	for _, w := range s.live {
		w.shards[shard].Swallow(true)
	}
	s.until("there is an alert", func() bool {
		return s.number(fmt.Sprintf(`SELECT COUNT(*) FROM schedule_event WHERE alert = '%s' AND reason LIKE '%%%s%%'`,
			condition.Unreachable.Name, lost.Name())) > 0
	})
	_, before, err := invoices(s.t.Context(), lost)
	s.must(err)
	s.pays("no worker reaches "+lost.Name(), func(queue int) bool { return !isLost(queue) })
	_, after, err := invoices(s.t.Context(), lost)
	s.must(err)
	for queue := first; queue < next; queue++ {
		if after[queue] != before[queue] {
			s.t.Errorf("%d invoices of queue %d were paid in %s, which no worker reached", after[queue]-before[queue], queue,
				lost.Name())
		}
	}
	for _, w := range s.live {
		w.shards[shard].Swallow(false)
		w.shards[shard].Cut() // lost packets stay lost
	}
	s.shared(lost.Name() + " is back")
}

// handOver makes one worker leave in order, and another one join.
func (s *stage) handOver() {
	s.t.Helper()
	s.gone().Leave()
	s.start()
	s.shared("one leaves, one joins")
}

// splitRoster promotes a standby of the roster that lags, while the primary lives: it has seen nothing of the last
// hand-over. One worker gets its queues from the standby, and the others get theirs from the primary. All pay in the
// same shards. Then the primary dies.
func (s *stage) splitRoster() {
	s.t.Helper()
	standby, replication := testdb.Standby(s.t, s.server)
	replication.Refuse(true)
	replication.Cut()
	s.handOver()
	s.must(s.view.Redirect(standby.URL()))
	s.view.Cut()
	s.until("the standby answers", func() bool { return s.number(`SELECT 1`) == 1 })
	if s.number(`SELECT 1 WHERE pg_promote()`) != 1 {
		s.t.Fatal("the standby is not promoted")
	}
	lead := func(w *worker) {
		s.must(w.roster.Redirect(standby.URL()))
		w.roster.Cut()
	}
	lead(s.live[0])
	s.until("one worker owns all queues in the standby", func() bool { return s.own(s.live[:1]) })
	// The side that finds a shard ahead of its roster raises all epochs by a million or more. Then the other side finds
	// the shards ahead.
	s.until("both sides have raised their epochs", func() bool { return s.fenced() > 2_000_000 })
	s.pays("the roster is split", func(int) bool { return true })
	s.must(s.server.Kill())
	for _, w := range s.live[1:] {
		lead(w)
	}
	s.server = standby
	s.until("all workers have queues in the standby", func() bool { return s.own(s.live) })
	if s.fenced() > s.number(`SELECT MAX(epoch) FROM schedule_queue`) {
		// The standby has raised its epochs before the primary did. The second time the workers wait for an operator.
		change, err := verbs.AckLoss{}.Prepare(s.t.Context(), ops.New(s.c))
		s.must(err)
		_, err = change.Do(s.t.Context(), "test")
		s.must(err)
	}
	s.shared("the primary is dead")
	if s.number(fmt.Sprintf(`SELECT COUNT(*) FROM schedule_event WHERE kind = '%s'`, ops.EventHistory)) == 0 {
		s.t.Error("no worker has noticed that the roster has lost history")
	}
	s.handOver()
}

// fenced returns the highest epoch of the shards.
func (s *stage) fenced() (epoch int) {
	for _, data := range s.c.AllData() {
		var n int
		s.must(data.DB().QueryRowContext(s.t.Context(), `SELECT MAX(epoch) FROM rota_fence`).Scan(&n))
		epoch = max(epoch, n)
	}
	return epoch
}

// shared waits until the live workers own all queues, each at least one, and each queue has two more paid invoices by
// then.
func (s *stage) shared(when string) {
	s.t.Helper()
	s.until(when+": they share the queues", func() bool { return s.own(s.live) })
	s.pays(when, func(int) bool { return true })
}

// own reports whether workers own all queues, each at least one.
func (s *stage) own(workers []*worker) bool {
	owned := 0
	for _, w := range workers {
		n := s.number(fmt.Sprintf(`SELECT COUNT(*) FROM schedule_assignment WHERE status = 'HELD' AND cur_pid = %d`, w.PID))
		if n <= 0 {
			return false
		}
		owned += n
	}
	return owned == queues
}

// pays waits until two more invoices of queues are paid.
func (s *stage) pays(when string, ofQueue func(queue int) bool) {
	s.t.Helper()
	paid := func() map[int]int {
		all := map[int]int{}
		for _, data := range s.c.AllData() {
			_, ofShard, err := invoices(s.t.Context(), data)
			s.must(err)
			maps.Copy(all, ofShard)
		}
		return all
	}
	before := paid()
	s.until(when+": each queue has two more paid invoices", func() bool {
		now := paid()
		for queue := range queues {
			if ofQueue(queue) && now[queue] < before[queue]+2 {
				return false
			}
		}
		return true
	})
	s.t.Logf("%4.1f s: %s", time.Since(s.since).Seconds(), when)
}

// finish ends the supply and waits until all invoices are paid. Then the workers leave, and the ledgers are read.
func (s *stage) finish() {
	s.t.Helper()
	s.end()
	s.must(s.supply.Wait())
	s.until("all invoices are paid", func() bool {
		unpaid := 0
		for _, data := range s.c.AllData() {
			var n int
			s.must(data.DB().QueryRowContext(s.t.Context(), `SELECT COUNT(*) FROM invoice WHERE paid_by IS NULL`).Scan(&n))
			unpaid += n
		}
		return unpaid == 0
	})
	for len(s.live) > 0 {
		s.gone().Leave()
	}
	report, err := audit(s.t.Context(), s.c)
	if err != nil {
		s.t.Error(err)
	}
	s.t.Logf("%4.1f s: all is paid\n%s", time.Since(s.since).Seconds(), report)
}

// number returns the number that a query of the roster yields, or -1 if the roster does not answer.
func (s *stage) number(query string) (n int) {
	if err := s.c.DB().QueryRowContext(s.t.Context(), query).Scan(&n); err != nil {
		return -1
	}
	return n
}

// until waits for a condition that must become true.
func (s *stage) until(what string, is func() bool) {
	s.t.Helper()
	for end := time.Now().Add(90 * time.Second); !is(); time.Sleep(25 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("not within 90 s: %s", what)
		}
	}
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}
