package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/dutyrota/rota/processor"
)

// kafkaSink produces events to a topic. The key of a record is the order, so that a partition has all its events.
type kafkaSink struct{ client *kgo.Client }

func openKafka(broker, topic string) (Sink, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.DefaultProduceTopic(topic),
		// A call ends with its context, so that a relay that has lost a queue does not go on sending its events.
		kgo.AllowIdempotentProduceCancellation())
	if err != nil {
		return nil, fmt.Errorf("open kafka: %w", err)
	}
	return kafkaSink{client}, nil
}

// Deliver produces an event and waits until the brokers have it. The brokers drop what the client itself repeats, but
// not an event that another relay delivers once more: consumers go by the header event_id.
func (s kafkaSink) Deliver(ctx context.Context, m Message) error {
	err := s.client.ProduceSync(ctx, &kgo.Record{
		Key:   []byte(strconv.FormatInt(m.OrderID, 10)),
		Value: []byte(m.Payload),
		Headers: []kgo.RecordHeader{
			{Key: "event_id", Value: []byte(strconv.FormatInt(m.ID, 10))},
			{Key: "epoch", Value: []byte(strconv.FormatInt(m.Epoch, 10))},
		},
	}).FirstErr()
	if errors.Is(err, kerr.MessageTooLarge) {
		return processor.Permanent(err)
	}
	return err
}

// Close implements Sink.
func (s kafkaSink) Close() { s.client.Close() }
