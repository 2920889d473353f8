package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/manager/rotatest"
	"github.com/dutyrota/rota/processor"
)

// fresh returns a roster with the tables of the shop, and with the versions 1 to 4 of the orders 0 to 4.
func fresh(t *testing.T, o rotatest.Options) (*rotatest.Roster, store) {
	t.Helper()
	r := rotatest.Open(t, o)
	s, err := openStore(t.Context(), r.Center())
	if err == nil {
		err = s.addOrders(t.Context(), 5)
	}
	for _, state := range []string{"PAID", "PACKED", "SHIPPED", "RETURNED"} {
		for order := range int64(5) {
			if err == nil {
				err = s.setState(t.Context(), order, state)
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return r, s
}

var small = manager.Settings{Queues: 2, SleepTimeNoData: 10 * time.Millisecond}

// sink opens a sink, which is closed at the end of the test.
func sink(t *testing.T, url string) Sink {
	t.Helper()
	to, err := openSink(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(to.Close)
	return to
}

func TestHTTP(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		r, s := fresh(t, rotatest.Options{Database: anydb.URL(url)})
		to := newReceiver()
		r.Work(manager.Serve("outbox", relay{s, sink(t, to.start(t))}, small))
		to.check(t)
		if got, want := to.versions(), (map[int64]int64{0: 4, 1: 4, 2: 4, 3: 4, 4: 4}); !maps.Equal(got, want) {
			t.Errorf("last versions %v, want %v", got, want)
		}
		if to.repeats+to.late > 0 {
			t.Errorf("%d repetitions, %d late calls, want none", to.repeats, to.late)
		}
	})
}

// An event that the receiver never takes holds back those behind it, or lets them pass, and the other orders go on.
func TestPoison(t *testing.T) {
	for onDead, want := range map[string]int64{"HOLD": 1, "PASS": 4} {
		t.Run(onDead, func(t *testing.T) {
			r, s := fresh(t, rotatest.Options{})
			to := newReceiver()
			to.refuse = func(c change) bool { return c.Order == 3 && c.Version == 2 }
			settings := small
			settings.OnDead = onDead
			r.Work(manager.Serve("outbox", relay{s, sink(t, to.start(t))}, settings))
			if got, want := to.versions(), (map[int64]int64{0: 4, 1: 4, 2: 4, 3: want, 4: 4}); !maps.Equal(got, want) {
				t.Errorf("last versions %v, want %v", got, want)
			}
			items := r.FailedItems("outbox")
			if len(items) != 1 || items[0].State != "DEAD" || items[0].OrderKey != "3" {
				t.Errorf("failed items %+v, want one that is dead, of order 3", items)
			}
		})
	}
}

// watched is a relay that counts the selects of its one queue that begin behind a position.
type watched struct {
	relay
	behind int
}

func (w *watched) Select(ctx context.Context, s processor.Selection) ([]event, error) {
	if s.After != "" {
		w.behind++
	}
	return w.relay.Select(ctx, s)
}

// Selects go on behind events that the receiver never takes, also if there are more than a page has room for.
func TestPosition(t *testing.T) {
	r, s := fresh(t, rotatest.Options{})
	to := newReceiver()
	to.refuse = func(c change) bool { return c.Order < 4 }
	settings := small
	settings.Queues, settings.FetchNumber, settings.ExecuteNumber, settings.OnDead = 1, 1, 1, "PASS"
	dealer := &watched{relay: relay{s, sink(t, to.start(t))}}
	r.Work(manager.Serve("outbox", dealer, settings))
	if dealer.behind == 0 {
		t.Error("no select has begun behind a position")
	}
	if got := to.versions(); got[4] != 4 {
		t.Errorf("last versions %v, want 4 of order 4", got)
	}
	if items := r.FailedItems("outbox"); len(items) != 16 {
		t.Errorf("%d failed items, want the 16 of the other orders", len(items))
	}
}

// testBroker lets a relay deliver all events to a broker, and then, once more, an event that is older than the last one
// of its order, as a relay that stood still would do. It returns what the receiver makes of what the broker has.
func testBroker(t *testing.T, b broker) *receiver {
	t.Helper()
	r, s := fresh(t, rotatest.Options{})
	to, judge := sink(t, b.url()), newReceiver()
	var all []Message
	read := func(until func(m Message) bool) {
		t.Helper()
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		all = nil
		err := b.consume(ctx, func(m Message) {
			if all = append(all, m); until(m) {
				stop()
			}
		})
		if err != nil || !errors.Is(ctx.Err(), context.Canceled) {
			t.Fatalf("%d messages, and then %v", len(all), errors.Join(err, ctx.Err()))
		}
	}
	r.Work(manager.Serve("outbox", relay{s, to}, small))
	read(func(Message) bool { return len(all) == 20 })
	late, next := all[0], all[0]
	late.Epoch--
	next.ID, next.Payload = math.MaxInt64, fmt.Sprintf(`{"order": %d, "version": 5}`, next.OrderID)
	for _, m := range []Message{late, next} {
		if err := to.Deliver(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	read(func(m Message) bool { return m.ID == next.ID })
	for _, m := range all {
		if err := judge.take(m); err != nil {
			t.Fatal(err)
		}
	}
	judge.check(t)
	if judge.repeats > 0 {
		t.Errorf("%d repetitions, want none", judge.repeats)
	}
	return judge
}

// Kafka keeps the repetition. A consumer drops it by its id.
func TestKafka(t *testing.T) {
	if late := testBroker(t, startKafka(t)).late; late != 1 {
		t.Errorf("%d late events, want 1", late)
	}
}

// JetStream drops the repetition, because it has seen its id.
func TestNATS(t *testing.T) {
	if late := testBroker(t, startNATS(t)).late; late != 0 {
		t.Errorf("%d late events, want none", late)
	}
}

// The program itself: a shop, then a relay that delivers what the shop has left.
func TestRun(t *testing.T) {
	url, to := testdb.URL(t, testdb.SQLite), newReceiver()
	for _, what := range []string{"shop", to.start(t)} {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- run(ctx, url, what) }()
		for end := time.Now().Add(time.Minute); what != "shop" && len(to.versions()) == 0 && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(500 * time.Millisecond)
		stop()
		if err := <-ended; err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	to.check(t)
	if len(to.versions()) == 0 {
		t.Error("the receiver has got nothing")
	}
}

func TestUnknownSink(t *testing.T) {
	if _, err := openSink("amqp://localhost/orders"); err == nil {
		t.Error("amqp:// was opened")
	}
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
