// Command outbox is an outbox relay. A shop changes the states of orders, and writes an event of each change to a table
// in the same transaction. Any number of relays deliver these events: the events of one order in their order, each at
// least once, with an id by which the receiver knows repetitions.
//
//	go run . postgres://app@localhost/shop shop                              # change orders, until Ctrl-C
//	go run . postgres://app@localhost/shop http://localhost:9000/events      # deliver their events
//	go run . postgres://app@localhost/shop kafka://localhost:9092/orders     # to a topic
//	go run . postgres://app@localhost/shop nats://localhost:4222/orders      # to a subject of JetStream
//
// The database may as well be mysql://... or sqlite:FILE. store.go is the shop's part, relay.go the dealer, and http.go,
// kafka.go and nats.go are the sinks. docs/outbox.md says what happens when relays join, crash and stand still.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/manager"
)

// settings are those of a new roster. Then those in the database win.
var settings = manager.Settings{
	Queues:        16,
	ExecuteNumber: 20,               // events of as many orders are delivered at the same time
	BatchTimeout:  30 * time.Second, // for a receiver that does not answer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) != 3 {
		log.Fatal("want the URL of a database, and shop or the URL of a sink")
	}
	if err := run(ctx, os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

// run is the shop or a relay, until ctx ends.
func run(ctx context.Context, database, what string) (err error) {
	c, err := center.Open(ctx, anydb.URL(database), center.Options{Schema: center.SchemaCreate})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	s, err := openStore(ctx, c)
	if err != nil {
		return err
	}
	if what == "shop" {
		if err := s.addOrders(ctx, 100); err != nil {
			return err
		}
		return s.trade(ctx, 100, 10*time.Millisecond)
	}
	to, err := openSink(what)
	if err != nil {
		return err
	}
	defer to.Close()
	return deliver(ctx, c, s, to)
}

// deliver is a relay. After ctx has ended it finishes the calls in flight, hands its queues over and returns.
func deliver(ctx context.Context, c *center.Center, s store, to Sink) error {
	config := manager.Config{Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	m, err := manager.New(c, config, manager.Serve("outbox", relay{s, to}, settings))
	if err != nil {
		return err
	}
	return m.Run(ctx)
}

// Sink is where events go to. Its methods may be called at the same time.
type Sink interface {
	// Deliver returns nil when the receiver has the message for good. After an error the receiver may have it, too.
	// processor.Permanent marks an error that no repetition changes.
	Deliver(ctx context.Context, m Message) error
	Close()
}

// Message is what the receiver gets of an event.
type Message struct {
	ID      int64 // rises with each event of an order: the receiver drops an id that is not above the last one
	OrderID int64
	Epoch   int64 // of the queue: rises with each relay that takes the order over
	Payload string
}

// openSink opens the sink of a URL.
func openSink(raw string) (Sink, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, err
	}
	name := strings.TrimPrefix(u.Path, "/")
	switch u.Scheme {
	case "http", "https":
		return newHTTPSink(raw), nil
	case "kafka":
		return openKafka(u.Host, name)
	case "nats":
		return openNATS(u.Host, name)
	}
	return nil, fmt.Errorf("sink %s: want http://, https://, kafka:// or nats://", u.Redacted())
}
