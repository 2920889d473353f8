package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/dutyrota/rota/processor"
)

// natsSink publishes events to a subject of a JetStream stream, which must exist.
type natsSink struct {
	conn    *nats.Conn
	js      jetstream.JetStream
	subject string
}

func openNATS(server, subject string) (Sink, error) {
	conn, err := nats.Connect("nats://"+server, nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1),
		nats.ReconnectBufSize(-1)) // without a connection a call fails, rather than being sent late
	if err != nil {
		return nil, fmt.Errorf("open nats: %w", err)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return natsSink{conn, js, subject}, nil
}

// Deliver publishes an event and waits until the stream has it. The stream drops an event whose id it has seen within
// its duplicate window, two minutes by default. Consumers drop later repetitions by the header Nats-Msg-Id.
func (s natsSink) Deliver(ctx context.Context, m Message) error {
	msg := nats.NewMsg(s.subject)
	msg.Data = []byte(m.Payload)
	msg.Header.Set("Order-Id", strconv.FormatInt(m.OrderID, 10))
	msg.Header.Set("Epoch", strconv.FormatInt(m.Epoch, 10))
	_, err := s.js.PublishMsg(ctx, msg, jetstream.WithMsgID(strconv.FormatInt(m.ID, 10)))
	if errors.Is(err, nats.ErrMaxPayload) {
		return processor.Permanent(err)
	}
	return err
}

// Close implements Sink.
func (s natsSink) Close() { s.conn.Close() }
