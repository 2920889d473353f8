package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"
)

// receiver is what a receiver needs to do: it drops an event that is not above the last one of its order. Besides, it
// judges the relays.
type receiver struct {
	mu      sync.Mutex
	last    map[int64]accepted // by order
	repeats int                // of the last event of an order
	late    int                // of an earlier event, by a relay that has lost the order
	faults  []string
	relays  map[grant]string // the relay that sent the events of each grant
	inside  map[int64]int    // calls by queue that stay inside

	held   chan struct{} // calls stay inside until it is closed; nil: they do not
	down   bool          // answers 503
	flaky  float64       // the part of the calls that fail before they are looked at, and the part whose reply is lost
	refuse func(change) bool
}

// accepted is an event that was not dropped.
type accepted struct {
	id, epoch int64
	change
}

// queues is the number of queues of the plays. An order belongs to the queue id % queues.
const queues = 8

// grant is a queue under an epoch. Only one relay may have it.
type grant struct{ queue, epoch int64 }

func newReceiver() *receiver {
	return &receiver{last: map[int64]accepted{}, relays: map[grant]string{}, inside: map[int64]int{}}
}

// start returns the URL of the receiver.
func (r *receiver) start(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return server.URL
}

// take looks at one delivery.
func (r *receiver) take(m Message) error {
	got := accepted{id: m.ID, epoch: m.Epoch}
	if err := json.Unmarshal([]byte(m.Payload), &got.change); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.last[m.OrderID]
	switch {
	case m.ID > last.id:
		if got.Order != m.OrderID || got.Version != last.Version+1 {
			r.faults = append(r.faults, fmt.Sprintf("order %d: %+v after %+v", m.OrderID, got, last))
		}
		r.last[m.OrderID] = got
	case m.ID == last.id:
		r.repeats++
	case m.Epoch < last.epoch:
		r.late++
	default:
		r.faults = append(r.faults, fmt.Sprintf("order %d: the owner delivers %+v after %+v", m.OrderID, got, last))
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var m Message
	var c change
	body, err := io.ReadAll(req.Body)
	m.Payload = string(body)
	for name, to := range map[string]*int64{"Idempotency-Key": &m.ID, "Order-Id": &m.OrderID, "Epoch": &m.Epoch} {
		if err == nil {
			*to, err = strconv.ParseInt(req.Header.Get(name), 10, 64)
		}
	}
	if err == nil {
		err = json.Unmarshal(body, &c)
	}
	r.comes(m, req)
	r.mu.Lock()
	down, flaky, refuse := r.down, r.flaky, r.refuse
	r.mu.Unlock()
	if flaky > 0 {
		time.Sleep(rand.N(5 * time.Millisecond))
	}
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	case refuse != nil && refuse(c):
		http.Error(w, "refused", http.StatusUnprocessableEntity)
		return
	case down || rand.Float64() < flaky:
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	if err := r.take(m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if rand.Float64() < flaky {
		panic(http.ErrAbortHandler) // closes the connection without a reply
	}
}

// comes notes which relay calls, by the path of its URL, and keeps the call inside while calls are held.
func (r *receiver) comes(m Message, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := grant{m.OrderID % queues, m.Epoch}
	if by, ok := r.relays[g]; ok && by != req.URL.Path {
		r.faults = append(r.faults, fmt.Sprintf("%+v has two relays: %s and %s", g, by, req.URL.Path))
	}
	r.relays[g] = req.URL.Path
	if held := r.held; held != nil {
		r.inside[g.queue]++
		r.mu.Unlock()
		select {
		case <-held:
		case <-req.Context().Done(): // the relay has given up
		}
		r.mu.Lock()
		r.inside[g.queue]--
	}
}

// hold keeps the calls inside until the caller calls release.
func (r *receiver) hold() (release func()) {
	held := make(chan struct{})
	r.set(func(r *receiver) { r.held = held })
	return sync.OnceFunc(func() {
		r.set(func(r *receiver) { r.held = nil })
		close(held)
	})
}

// holds returns the number of queues that have a call in flight.
func (r *receiver) holds() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, calls := range r.inside {
		if calls > 0 {
			n++
		}
	}
	return n
}

// set changes what the receiver does.
func (r *receiver) set(change func(r *receiver)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r)
}

// versions returns the last version of each order.
func (r *receiver) versions() map[int64]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	versions := map[int64]int64{}
	for order, a := range maps.All(r.last) {
		versions[order] = a.Version
	}
	return versions
}

// check fails the test if the relays have left out or reordered an event.
func (r *receiver) check(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.faults) > 0 {
		t.Fatalf("%d faults, the first ones: %q", len(r.faults), r.faults[:min(3, len(r.faults))])
	}
}
