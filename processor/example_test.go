package processor_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dutyrota/rota/processor"
)

// order is an item: one row of the user's table.
type order struct{ ID int }

// settle is a TaskDealer of orders. A real dealer selects and updates rows with SQL.
type settle struct {
	mu   sync.Mutex
	open map[int]bool
}

func (s *settle) Select(_ context.Context, sel processor.Selection) ([]order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var orders []order
	for id := range s.open {
		if id%sel.Total == sel.Queue.Index && len(orders) < sel.Limit {
			orders = append(orders, order{id})
		}
	}
	return orders, nil
}

func (s *settle) Execute(_ context.Context, orders []order) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range orders {
		delete(s.open, o.ID)
	}
	return nil
}

// This example runs a dealer without a roster. A real program passes it to manager.Serve.
func Example() {
	dealer := &settle{open: map[int]bool{}}
	for id := range 100 {
		dealer.open[id] = true
	}
	stats := work(dealer, processor.Queue{ID: "0", Index: 0}, processor.Queue{ID: "1", Index: 1})
	fmt.Println("settled:", stats.SuccessCount)
	// Output: settled: 100
}

// push is a Keyed dealer of messages, and a Discarder.
type push struct{ open []string }

func (p *push) Key(message string) string { return message }

func (p *push) Select(context.Context, processor.Selection) ([]string, error) {
	return slices.Clone(p.open), nil
}

func (p *push) Execute(_ context.Context, messages []string) error {
	for _, m := range messages {
		if strings.HasPrefix(m, "bad") {
			return fmt.Errorf("%s: no such device", m)
		}
	}
	p.remove(messages...)
	return nil
}

// Discard removes a message that failed for the last time.
func (p *push) Discard(_ context.Context, message string, cause error) error {
	fmt.Printf("discarded %s: %v\n", message, cause)
	p.remove(message)
	return nil
}

func (p *push) remove(messages ...string) {
	p.open = slices.DeleteFunc(p.open, func(m string) bool { return slices.Contains(messages, m) })
}

// A Discarder removes an item that is given up, here after its only attempt alone. The others of its batch are pushed.
func ExampleDiscarder() {
	dealer := &push{open: []string{"one", "two", "bad", "three"}}
	stats := work(dealer, processor.Queue{ID: "0"})
	fmt.Println("pushed:", stats.SuccessCount, "dead:", stats.DeadCount, "open:", dealer.open)
	// Output:
	// discarded bad: bad: no such device
	// pushed: 3 dead: 1 open: []
}

// mail sends messages one by one, and names the messages that failed.
type mail struct{ push }

func (m *mail) Execute(ctx context.Context, messages []string) error {
	var failures processor.Failures
	for i, message := range messages {
		if err := m.push.Execute(ctx, []string{message}); err != nil {
			failures.Add(i, processor.Permanent(err)) // another attempt would fail too
		}
	}
	return failures.Err()
}

// A dealer that knows which items of a batch failed names them. The other items are done.
func ExampleFailures() {
	dealer := &mail{push{open: []string{"one", "bad", "two"}}}
	stats := work(dealer, processor.Queue{ID: "0"})
	fmt.Println("sent:", stats.SuccessCount)
	fmt.Println(stats.LastError)
	// Output:
	// discarded bad: bad: no such device
	// sent: 2
	// execute 3 items of queue 0: items failed: 1; bad: no such device
}

// events is a Cursored dealer of an append-only log.
type events []string

func (e events) Cursor(event string) string { return event }

func (e events) Select(_ context.Context, s processor.Selection) ([]string, error) {
	var next []string
	for _, event := range e {
		if event > s.Queue.Cursor && len(next) < s.Limit {
			next = append(next, event)
		}
	}
	return next, nil
}

func (e events) Execute(_ context.Context, batch []string) error {
	fmt.Println(batch)
	return nil
}

// A log is read in order after its cursor. The cursor moves after each batch.
func ExampleCursored() {
	log := events{"2026-01", "2026-02", "2026-03", "2026-04"}
	work(log, processor.Queue{ID: "0", Cursor: "2026-01"})
	// Output: [2026-02 2026-03 2026-04]
}

// A job without items runs once for each queue of each run. A program passes it to manager.Serve, for a task type of
// mode RUN. This example runs it without a roster.
func ExampleEach() {
	report := processor.Each(func(_ context.Context, s processor.Selection) error {
		fmt.Println("report on", s.Queue.ID, "for", s.Run.Key)
		return nil
	})
	run := &processor.Run{Key: "2026-01-31"}
	work(report, processor.Queue{ID: "north", Run: run}, processor.Queue{ID: "south", Run: run})
	// Output:
	// report on north for 2026-01-31
	// report on south for 2026-01-31
}

// mailboxes is a dealer of many queues that are mostly empty. It says with one statement which of them have work.
type mailboxes struct {
	mu    sync.Mutex
	mails map[string][]string // by queue
	peeks int
}

func (m *mailboxes) Select(_ context.Context, s processor.Selection) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.mails[s.Queue.ID]), nil
}

func (m *mailboxes) Execute(_ context.Context, mails []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, mail := range mails {
		to, _, _ := strings.Cut(mail, ":")
		m.mails[to] = slices.DeleteFunc(m.mails[to], func(other string) bool { return other == mail })
		fmt.Println("sent", mail)
	}
	return nil
}

// Peek stands for SELECT DISTINCT recipient FROM mails WHERE sent_at IS NULL. A mail comes after the second peek.
func (m *mailboxes) Peek(_ context.Context, idle []processor.Selection) (busy []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.peeks++; m.peeks == 2 {
		fmt.Println("idle queues:", len(idle))
		m.mails["box7"] = []string{"box7: hello"}
	}
	for to, mails := range m.mails {
		if len(mails) > 0 {
			busy = append(busy, to)
		}
	}
	return busy, nil
}

// A hundred idle queues cost one statement each sleep_time_nodata, and not a hundred.
func ExamplePeeker() {
	var boxes []processor.Queue
	for i := range 100 {
		boxes = append(boxes, processor.Queue{ID: fmt.Sprint("box", i), Index: i})
	}
	workUntil(func(s processor.Stats) bool { return s.SuccessCount > 0 }, &mailboxes{mails: map[string][]string{}}, boxes...)
	// Output:
	// idle queues: 100
	// sent box7: hello
}
