package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/processor"
)

const owner = "web1:1:00000001"

// openRoster returns a roster in which owner has queue 1 of settle under the epoch 7.
func openRoster(t *testing.T, url string) *center.Center {
	t.Helper()
	c, err := center.Open(t.Context(), anydb.URL(url), center.Options{Schema: center.SchemaCreate, OwnSign: "TEST"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := ops.New(c).Tasks().Define(t.Context(), "settle", center.Settings{Queues: 2}); err != nil {
		t.Fatal(err)
	}
	_, err = c.DB().ExecContext(t.Context(), "UPDATE schedule_queue SET cur_server = '"+owner+"', epoch = 7 WHERE queue_id = '1'")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func bind(t *testing.T, c *center.Center, epoch int64) context.Context {
	t.Helper()
	return c.Bind(t.Context(), center.Batch{Server: owner, TaskType: "settle", Queue: center.QueueEpoch{ID: "1", Epoch: epoch}})
}

func selectionOf(index int) processor.Selection {
	return processor.Selection{
		TaskType: "settle", OwnSign: "TEST", Server: owner, Parameter: "p", Total: 2, Limit: 3,
		Queue: processor.Queue{ID: fmt.Sprint(index), Index: index, Epoch: 7},
	}
}

var allAnswers = []string{OpSelect, OpDiscard, OpBacklog, OpPeek}

// A command and a service select, peek, count, execute and discard alike.
func TestDealer(t *testing.T) {
	t.Parallel()
	log := logrus.New()
	log.SetOutput(io.Discard)
	command, err := NewCommand([]string{os.Args[0], beProgram}, nil, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(command.Close)
	service := serveHTTP(t, "secret", func(w http.ResponseWriter, r *http.Request) {
		var b request
		if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
			t.Error(err)
		}
		if _, keyed := r.Header[idempotencyHeader]; keyed != (b.Items != nil) || r.Header.Get(signatureHeader) == "" {
			t.Errorf("%s has the headers %v", b.Op, r.Header)
		}
		_, _ = io.WriteString(w, b.answer(""))
	})
	c := openRoster(t, testdb.URL(t, testdb.SQLite))
	for name, p := range map[string]Program{"command": command, "service": service} {
		d := NewDealer(p, allAnswers, c.DB())
		if !d.Capabilities().Discarder {
			t.Error("the dealer is no Discarder")
		}
		s := selectionOf(1)
		s.Held = []string{"0 of 1"}
		items, err := d.Select(t.Context(), s)
		if err != nil {
			t.Fatal(name, err)
		}
		got := make([]string, 0, 3)
		for _, item := range items {
			got = append(got, fmt.Sprintf("%s %s %s", d.Key(item), d.OrderKey(item), item.Row))
		}
		if want := []string{`11 1 of 1 {"n":11}`, `13 1 of 1 {"n":13}`, `15 1 of 1 {"n":15}`}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if err := d.Execute(bind(t, c, 7), items); err != nil {
			t.Error(name, err)
		}
		if err := d.Discard(bind(t, c, 7), items[0], errors.New("no")); err != nil {
			t.Error(name, err)
		}
		if b, err := d.Backlog(t.Context(), selectionOf(1)); err != nil || b.Items != 20 || !b.Oldest.IsZero() {
			t.Errorf("%s: %v, %v", name, b, err)
		}
		if ids, err := d.Peek(t.Context(), []processor.Selection{selectionOf(0), selectionOf(1)}); err != nil || !slices.Equal(ids, []string{"0", "1"}) {
			t.Errorf("%s: %v, %v", name, ids, err)
		}
	}
}

// fakeProgram replies with what it has, and keeps the last request.
type fakeProgram struct {
	reply Reply
	err   error
	batch *Batch
}

func (f *fakeProgram) Ask(_ context.Context, b *Batch) (*Reply, error) {
	f.batch = b
	return &f.reply, f.err
}

// A row comes back as the program has given it, beside the fence, in the next operations.
func TestDealerRequests(t *testing.T) {
	t.Parallel()
	testdb.Each(t, testDealerRequests)
}

func testDealerRequests(t *testing.T, url string) {
	t.Parallel()
	c := openRoster(t, url)
	f := &fakeProgram{reply: Reply{Selected: []Selected{{Key: "a", Row: json.RawMessage(`{"n":9007199254740993}`)}, {Key: "b", Row: noRow}}}}
	d := NewDealer(f, allAnswers, c.DB())
	s := selectionOf(1)
	s.Run = &processor.Run{Key: "r", TraceParent: traceParent}
	items, err := d.Select(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	f.reply.Outcome = Outcome{"b": errors.New("no")}
	if err := d.Execute(bind(t, c, 7), append(items, items[1])); !strings.HasPrefix(errorText(err), "items failed: 2; no") {
		t.Errorf("error %v", err)
	}
	wantBatch := func(op, items string) {
		t.Helper()
		b := f.batch
		text, err := json.Marshal(b.Items)
		if diff := cmp.Diff(items, string(text)); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", op, err, diff)
		}
		if b.Op != op || b.Queue != "1" || b.Epoch != 7 || b.Server != owner || b.RunKey != "r" || b.Parameter != "p" || b.Fence == nil {
			t.Errorf("the request is %+v", b)
		}
	}
	wantBatch(OpExecute, `[{"key":"a","row":{"n":9007199254740993}},{"key":"b","row":{}}]`)
	result, err := c.DB().ExecContext(t.Context(), f.batch.Fence.SQL, f.batch.Fence.Args...)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := result.RowsAffected(); n != 1 {
		t.Errorf("the fence changes %d rows", n)
	}
	f.reply.Outcome = nil
	if err := d.Discard(bind(t, c, 7), items[0], errors.New("too small")); err != nil {
		t.Error(err)
	}
	wantBatch(OpDiscard, `[{"key":"a","row":{"n":9007199254740993},"error":"too small"}]`)
	f.err = ErrFenced
	if err := d.Execute(bind(t, c, 6), items); !errors.Is(err, center.ErrFenced) {
		t.Errorf("the batch is fenced: error %v", err)
	}
	if err := d.Discard(bind(t, c, 7), items[0], errors.New("x")); errors.Is(err, center.ErrFenced) || !errors.Is(err, ErrFenced) {
		t.Errorf("the program is wrong: error %v", err)
	}
}

// In a data database each batch has the name and the fence of that, and a program that says it is fenced is checked there.
func TestDealerInADataDatabase(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := openRoster(t, testdb.URL(t, testdb.SQLite))
		data, err := c.FenceIn("orders", anydb.URL(url))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := center.MigrateData(t.Context(), anydb.URL(url)); err != nil {
			t.Fatal(err)
		}
		queue := center.QueueEpoch{ID: "1", Epoch: 7}
		if _, err := data.Enter(t.Context(), center.Entry{TaskType: "settle", Server: owner, Queue: queue}); err != nil {
			t.Fatal(err)
		}
		f := &fakeProgram{reply: Reply{Selected: []Selected{{Key: "a", Row: noRow}}}}
		d := NewDealer(f, allAnswers, c.DB())
		s := selectionOf(1)
		s.Queue.Database = "orders"
		items, err := d.Select(t.Context(), s)
		if err != nil || f.batch.Database != "orders" || f.batch.Fence != nil {
			t.Fatalf("the request is %+v, error %v", f.batch, err)
		}
		ctx := c.Bind(t.Context(), center.Batch{
			Server: owner, TaskType: "settle", Queue: queue, Database: "orders",
		})
		wantFence := func(what string, want int64) {
			t.Helper()
			result, err := data.DB().ExecContext(t.Context(), f.batch.Fence.SQL, f.batch.Fence.Args...)
			if err != nil {
				t.Fatal(what, err)
			}
			if n, err := result.RowsAffected(); n != want || err != nil || f.batch.Database != "orders" {
				t.Errorf("%s: the fence changes %d rows in %q, %v, want %d", what, n, f.batch.Database, err, want)
			}
		}
		if err := d.Execute(ctx, items); err != nil {
			t.Error(err)
		}
		wantFence("execute", 1)
		if err := d.Discard(ctx, items[0], errors.New("no")); err != nil {
			t.Error(err)
		}
		wantFence("discard", 1)
		f.err = ErrFenced
		if err := d.Execute(ctx, items); errors.Is(err, center.ErrFenced) || !errors.Is(err, ErrFenced) {
			t.Errorf("the program is wrong: error %v", err)
		}
		if _, err := data.DB().ExecContext(t.Context(), "UPDATE rota_fence SET epoch = 8 WHERE queue_id = '1'"); err != nil {
			t.Fatal(err)
		}
		if err := d.Execute(ctx, items); !errors.Is(err, center.ErrFenced) {
			t.Errorf("the batch is fenced: error %v", err)
		}
		wantFence("a later owner", 0)
	})
}

// A program is asked only what it answers. An age counts back from now.
func TestDealerAnswers(t *testing.T) {
	t.Parallel()
	count, age := int64(3), int64(60_000)
	f := &fakeProgram{reply: Reply{Count: &count, OldestAgeMS: &age}}
	least := NewDealer(f, []string{OpSelect}, nil)
	if least.Capabilities().Discarder {
		t.Error("the dealer is a Discarder")
	}
	if _, err := least.Peek(t.Context(), []processor.Selection{selectionOf(0)}); !errors.Is(err, processor.ErrNoPeek) {
		t.Errorf("peek: error %v", err)
	}
	if _, err := least.Backlog(t.Context(), selectionOf(0)); !errors.Is(err, processor.ErrNoBacklog) || f.batch != nil {
		t.Errorf("backlog: error %v", err)
	}
	b, err := NewDealer(f, allAnswers, nil).Backlog(t.Context(), selectionOf(0))
	if since := time.Since(b.Oldest); err != nil || b.Items != 3 || since < time.Minute || since > 2*time.Minute {
		t.Errorf("backlog %+v, %v", b, err)
	}
}

// A command that sends a wrong answer is killed, as its next line may belong to another request.
func TestWrongAnswerKills(t *testing.T) {
	t.Parallel()
	log := logrus.New()
	log.SetOutput(io.Discard)
	c, err := NewCommand([]string{os.Args[0], beProgram, "greedy"}, nil, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	_, err = NewDealer(c, allAnswers, nil).Select(t.Context(), selectionOf(1))
	if !strings.HasSuffix(errorText(err), "the reply has 10 items, which is more than the limit (3)") || len(c.all) != 0 {
		t.Errorf("error %v, and %d processes", err, len(c.all))
	}
}
