package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// broker is a private message broker with a topic for the events.
type broker interface {
	// url is that of the sink.
	url() string
	// fails says what becomes of what is produced: all of it fails if the receiver is down, and else a part, some of it
	// after the broker has kept the event.
	fails(r *receiver)
	// consume calls take with each event of the topic, in the order of the broker, until ctx ends.
	consume(ctx context.Context, take func(Message)) error
}

// kafka is a cluster in this process. An order is in one of its three partitions.
type kafka struct {
	t       *testing.T
	cluster *kfake.Cluster
}

func startKafka(t *testing.T) broker {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return kafka{t, cluster}
}

func (k kafka) address() string { return k.cluster.ListenAddrs()[0] }

func (k kafka) url() string { return "kafka://" + k.address() + "/orders" }

func (k kafka) fails(r *receiver) {
	k.cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		k.cluster.KeepControl()
		if r.fails() {
			return nil, errors.New("down"), true // closes the connection
		}
		return nil, nil, false
	})
}

func (k kafka) consume(ctx context.Context, take func(Message)) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(k.address()), kgo.ConsumeTopics("orders"))
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		fetched := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := fetched.Err(); err != nil {
			return err
		}
		fetched.EachRecord(func(r *kgo.Record) {
			m := Message{OrderID: number(k.t, string(r.Key)), Payload: string(r.Value)}
			for _, h := range r.Headers {
				switch h.Key {
				case "event_id":
					m.ID = number(k.t, string(h.Value))
				case "epoch":
					m.Epoch = number(k.t, string(h.Value))
				}
			}
			take(m)
		})
	}
}

// consumer is the name of the connection of the test.
const consumer = "consumer"

// jetStream is a NATS server in this process. It drops an event whose id it has seen.
type jetStream struct {
	t      *testing.T
	server *server.Server
	stream jetstream.Stream
}

func startNATS(t *testing.T) broker {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server is not ready")
	}
	conn, err := nats.Connect(s.ClientURL(), nats.Name(consumer))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders"}})
	if err != nil {
		t.Fatal(err)
	}
	return jetStream{t, s, stream}
}

func (j jetStream) url() string { return j.server.ClientURL() + "/orders" }

// fails makes the server close connections of relays, which then do not know whether it has the event.
func (j jetStream) fails(r *receiver) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for j.t.Context().Err() == nil {
			time.Sleep(200 * time.Millisecond)
			connections, _ := j.server.Connz(&server.ConnzOptions{})
			for _, c := range connections.Conns {
				if c.Name != consumer && r.fails() {
					_ = j.server.DisconnectClientByID(c.Cid)
				}
			}
		}
	}()
	j.t.Cleanup(func() { <-done })
}

func (j jetStream) consume(ctx context.Context, take func(Message)) error {
	for seq := uint64(1); ; {
		raw, err := j.stream.GetMsg(ctx, seq)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, jetstream.ErrMsgNotFound):
			time.Sleep(time.Millisecond)
			continue
		case err != nil:
			return err
		}
		seq++
		take(Message{
			ID: number(j.t, raw.Header.Get("Nats-Msg-Id")), OrderID: number(j.t, raw.Header.Get("Order-Id")),
			Epoch: number(j.t, raw.Header.Get("Epoch")), Payload: string(raw.Data),
		})
	}
}

// fails draws whether a call fails.
func (r *receiver) fails() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.down || rand.Float64() < r.flaky
}
