package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/dutyrota/rota/processor"
)

// httpSink posts events to a URL.
type httpSink struct {
	client *http.Client
	url    string
}

func newHTTPSink(url string) httpSink {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 100 // a connection for each call in flight
	return httpSink{&http.Client{Transport: transport}, url}
}

// Deliver posts an event. An answer such as 400 or 422 means that the receiver will never take it.
func (s httpSink) Deliver(ctx context.Context, m Message) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(m.Payload))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", strconv.FormatInt(m.ID, 10))
	req.Header.Set("Order-Id", strconv.FormatInt(m.OrderID, 10))
	req.Header.Set("Epoch", strconv.FormatInt(m.Epoch, 10))
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // when it is read to the end, the connection is used again
	_ = resp.Body.Close()
	switch status := resp.StatusCode; {
	case status < 300:
		return nil
	case status == http.StatusBadRequest, status == http.StatusUnprocessableEntity, status == http.StatusRequestEntityTooLarge:
		return processor.Permanent(fmt.Errorf("post event %d: %s", m.ID, resp.Status))
	default:
		return fmt.Errorf("post event %d: %s", m.ID, resp.Status)
	}
}

// Close implements Sink.
func (s httpSink) Close() { s.client.CloseIdleConnections() }
