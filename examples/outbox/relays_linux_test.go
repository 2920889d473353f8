package main

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/proctest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
)

// The variables that make the test binary a relay.
const databaseVariable, sinkVariable = "OUTBOX_TEST_DATABASE", "OUTBOX_TEST_SINK"

func TestMain(m *testing.M) {
	if database := os.Getenv(databaseVariable); database != "" {
		if err := relayProcess(database, os.Getenv(sinkVariable)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// options end the transactions of a process that stands still before the tests lose their patience.
var options = center.Options{Schema: center.SchemaCreate, IdleTxTimeout: 5 * time.Second}

// relayProcess is the main function of a relay of the tests.
func relayProcess(database, sink string) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c, err := center.Open(ctx, anydb.URL(database), options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	s, err := openStore(ctx, c)
	if err != nil {
		return err
	}
	to, err := openSink(sink)
	if err != nil {
		return err
	}
	return deliver(ctx, c, s, pausing{to, proctest.NewGate(os.Stdin)})
}

// pausing is a sink in which a delivery stays while the test holds it. Meanwhile the test stops the process and continues
// it. Then the delivery is made, whatever has happened meanwhile, which is the worst that a relay can do.
type pausing struct {
	Sink
	gate proctest.Gate
}

// Deliver implements Sink.
func (p pausing) Deliver(ctx context.Context, m Message) error {
	if p.gate.Pass() {
		ctx = context.WithoutCancel(ctx)
	}
	return p.Sink.Deliver(ctx, m)
}

// Relays are killed, stand still, lose the database, leave and join, and the receiver fails, while orders change: the
// receiver gets all events of each order in their order.
func TestRelays(t *testing.T) {
	eachServer(t, func(t *testing.T, url string) { play(t, newStage(t, url, nil)) })
}

// eachServer runs a test on PostgreSQL and MariaDB. One process at a time writes to SQLite.
func eachServer(t *testing.T, test func(t *testing.T, url string)) {
	for _, kind := range testdb.Kinds(t) {
		if kind != testdb.SQLite {
			t.Run(kind, func(t *testing.T) {
				t.Parallel()
				test(t, testdb.URL(t, kind))
			})
		}
	}
}

// The same on a Galera cluster behind a balancer. It is skipped where Galera is not installed.
func TestRelaysOnGalera(t *testing.T) {
	nodes := testdb.Galera(t)
	url, _ := testdb.Balanced(t, nodes[0].URL(), nodes[1].URL(), nodes[2].URL())
	play(t, newStage(t, url, nil))
}

// The same with brokers, whose connections break, and a consumer of their topic.
func TestRelaysToBrokers(t *testing.T) {
	if !slices.Contains(testdb.Kinds(t), testdb.Postgres) {
		t.Skip("ROTA_TEST_DATABASES omits PostgreSQL")
	}
	for name, start := range map[string]func(*testing.T) broker{"kafka": startKafka, "nats": startNATS} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, newStage(t, testdb.URL(t, testdb.Postgres), start(t)))
		})
	}
}

func play(t *testing.T, s *stage) {
	through, proxy := testdb.Through(t, s.url)
	a, b, c, d := s.start(s.url), s.start(s.url), s.start(s.url), s.start(through)
	s.share("four relays start", a, b, c, d)

	a.Kill()
	s.share("one is killed", b, c, d)
	e := s.start(s.url)
	s.share("one joins", b, c, d, e)

	b.Hold()
	s.until("a relay is in a call", b.Held)
	b.Signal(syscall.SIGSTOP)
	s.share("one stands still", c, d, e)
	s.receiver.set(func(r *receiver) { r.flaky = 0 }) // so that the late call gets through
	late := s.late()
	b.Release()
	b.Signal(syscall.SIGCONT)
	if !s.dropsRepeated {
		s.until("the call of the relay that stood still has come late", func() bool { return s.late() > late })
	}
	s.receiver.set(func(r *receiver) { r.flaky = flaky })
	s.share("it is back", b, c, d, e)

	proxy.Refuse(true)
	proxy.Cut()
	s.share("one loses the database", b, c, e)
	proxy.Refuse(false)
	s.share("it has it again", b, c, d, e)

	c.Leave()
	f := s.start(s.url)
	s.share("one leaves, one joins", b, d, e, f)

	s.receiver.set(func(r *receiver) { r.down = true })
	time.Sleep(2 * time.Second)
	s.receiver.set(func(r *receiver) { r.down = false })
	s.share("the receiver was down", b, d, e, f)

	s.finish()
	for _, w := range []*proctest.Process{b, d, e, f} {
		w.Leave()
	}
	s.receiver.check(t)
	r := s.receiver
	t.Logf("dropped: %d repetitions of the last event of an order, %d late calls of an earlier owner", r.repeats, r.late)
}

const (
	orders = 30
	flaky  = 0.02 // of the calls
	dead   = 2 * time.Second
)

// stage is one play.
type stage struct {
	t     *testing.T
	url   string
	sink  string
	store store

	dropsRepeated bool // the broker drops an event whose id it has seen

	started int              // relays
	owners  map[grant]string // as the roster has shown them to until; nil: it does not look

	receiver *receiver
	trade    *errgroup.Group
	end      context.CancelFunc // of the trade
	since    time.Time
}

// newStage opens the database, and begins to change orders. The receiver gets the events by HTTP, or from a broker. The
// changes are those of the settings.
func newStage(t *testing.T, url string, b broker, changes ...func(*manager.Settings)) *stage {
	t.Helper()
	c, err := center.Open(t.Context(), anydb.URL(url), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	st, err := openStore(t.Context(), c)
	if err == nil {
		err = st.addOrders(t.Context(), orders)
	}
	if err != nil {
		t.Fatal(err)
	}
	settings := manager.Settings{
		Queues: queues, ThreadNumber: 2, ExecuteNumber: 5, BatchTimeout: 5 * time.Second,
		HeartbeatInterval: 400 * time.Millisecond, JudgeDeadInterval: dead,
		SleepTimeNoData: 20 * time.Millisecond, ItemRetry: 50 * time.Millisecond, ItemRetryMax: 500 * time.Millisecond,
	}
	for _, change := range changes {
		change(&settings)
	}
	if _, err = ops.New(c).Tasks().Define(t.Context(), "outbox", settings); err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, url: url, store: st, receiver: newReceiver(), since: time.Now()}
	s.receiver.flaky = flaky
	ctx, end := context.WithCancel(t.Context())
	if b == nil {
		s.sink = s.receiver.start(t)
	} else {
		s.receive(b)
	}
	s.trade, ctx = errgroup.WithContext(ctx)
	s.end = end
	for range 3 {
		s.trade.Go(func() error {
			for {
				err := st.trade(ctx, orders, 15*time.Millisecond)
				if !c.IsTransient(err) { // on Galera, transactions of two nodes that change one order conflict
					return err
				}
			}
		})
	}
	t.Cleanup(func() {
		end()
		_ = s.trade.Wait() // finish has looked at it, unless the test has failed
	})
	return s
}

// receive lets the receiver consume what the relays send to a broker.
func (s *stage) receive(b broker) {
	s.sink = b.url()
	_, s.dropsRepeated = b.(jetStream)
	b.fails(s.receiver)
	var consumer errgroup.Group
	ctx, end := context.WithCancel(s.t.Context())
	consumer.Go(func() error {
		return b.consume(ctx, func(m Message) {
			if err := s.receiver.take(m); err != nil {
				s.t.Error(err)
			}
		})
	})
	s.t.Cleanup(func() {
		end()
		if err := consumer.Wait(); err != nil {
			s.t.Error(err)
		}
	})
}

// share waits until the relays own all queues, each at least one, and each order has got two more events by then.
func (s *stage) share(when string, workers ...*proctest.Process) {
	s.t.Helper()
	s.until(when+": they share the queues", func() bool {
		rows, err := s.store.db.QueryContext(s.t.Context(),
			`SELECT cur_pid, COUNT(*) FROM schedule_assignment WHERE status = 'HELD' GROUP BY cur_pid`)
		if err != nil {
			s.t.Fatal(err)
		}
		defer rows.Close()
		owners, owned := map[int]bool{}, 0
		for rows.Next() {
			var pid, n int
			if err := rows.Scan(&pid, &n); err != nil {
				s.t.Fatal(err)
			}
			owners[pid], owned = true, owned+n
		}
		return rows.Err() == nil && owned == queues && len(owners) == len(workers) &&
			!slices.ContainsFunc(workers, func(w *proctest.Process) bool { return !owners[w.PID] })
	})
	before := s.receiver.versions()
	s.until(when+": each order has two more events", func() bool {
		now := s.receiver.versions()
		for order := range int64(orders) {
			if now[order] < before[order]+2 {
				return false
			}
		}
		return true
	})
	s.t.Logf("%4.1f s: %s", time.Since(s.since).Seconds(), when)
}

// finish ends the trade and waits until the receiver has all events.
func (s *stage) finish() {
	s.t.Helper()
	s.end()
	if err := s.trade.Wait(); err != nil {
		s.t.Fatal(err)
	}
	s.until("all events are sent", func() bool {
		return s.number(`SELECT COUNT(*) FROM outbox WHERE sent_at IS NULL`) == 0
	})
	versions := s.receiver.versions()
	for order := range int64(orders) {
		if want := s.number(s.store.bind(`SELECT version FROM orders WHERE id = ?`), order); versions[order] != want {
			s.t.Errorf("order %d: the receiver has version %d, want %d", order, versions[order], want)
		}
	}
	s.t.Logf("%4.1f s: %d events of %d orders", time.Since(s.since).Seconds(), s.number(`SELECT COUNT(*) FROM outbox`), orders)
}

func (s *stage) number(query string, args ...any) (n int64) {
	s.t.Helper()
	if err := s.store.db.QueryRowContext(s.t.Context(), query, args...).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *stage) late() int {
	s.receiver.mu.Lock()
	defer s.receiver.mu.Unlock()
	return s.receiver.late
}

// until waits for a condition, for a minute. It fails the test as soon as the receiver has seen a fault.
func (s *stage) until(what string, condition func() bool) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); !condition(); time.Sleep(20 * time.Millisecond) {
		s.receiver.check(s.t)
		s.look()
		if time.Now().After(end) {
			s.t.Fatalf("not within a minute: %s", what)
		}
	}
}

// start starts a relay. Each has a path of its own at a receiver of HTTP, which knows it by that.
func (s *stage) start(url string) *proctest.Process {
	s.t.Helper()
	s.started++
	sink := s.sink
	if strings.HasPrefix(sink, "http:") {
		sink += fmt.Sprintf("/relay%d", s.started)
	}
	return proctest.Start(s.t, os.Args[0], filepath.Join(s.t.TempDir(), "log"),
		databaseVariable+"="+url, sinkVariable+"="+sink)
}
