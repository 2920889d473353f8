//go:build linux

package faults

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/proctest"
	"github.com/dutyrota/rota/internal/testdb"
)

// worker is a worker process and what the scenario has done to it.
type worker struct {
	*proctest.Process
	t      *testing.T
	proxy  *testdb.Proxy // between the process and its database; may be nil
	notes  string
	doomed time.Time // when the scenario killed it, or made it kill itself: others notice the end before this process
	killed bool      // by the scenario

	data map[string]*testdb.Proxy // between the process and its data databases, by their names; may be empty
}

// startWorker starts a process of a program, which is a test program of this package. The names of the process's files
// begin with the prefix files.
func startWorker(t *testing.T, program, files string, o order, proxy *testdb.Proxy) *worker {
	t.Helper()
	o.Notes = files + ".notes"
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o.Notes, nil, 0o644); err != nil { // the process may be killed before it opens them
		t.Fatal(err)
	}
	return &worker{
		Process: proctest.Start(t, program, files+".log", orderVariable+"="+string(text)),
		t:       t, proxy: proxy, notes: o.Notes,
	}
}

// arm sets the failpoint of one of the next calls, for example "stop work".
func (w *worker) arm(what string) {
	w.t.Helper()
	w.doomed = time.Now()
	w.Say(what)
}

func (w *worker) signal(s syscall.Signal) {
	w.t.Helper()
	if s == syscall.SIGKILL {
		w.doomed = time.Now()
	}
	w.Signal(s)
}

// eachNote reads the notes of a worker that has ended.
func (w *worker) eachNote(do func(note)) {
	w.t.Helper()
	text, err := os.ReadFile(w.notes)
	if err != nil {
		w.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var n note
		if err := json.Unmarshal([]byte(line), &n); err != nil {
			w.t.Fatalf("note %q of worker %d: %v", line, w.PID, err)
		}
		do(n)
	}
}

// history returns what a worker that has ended did.
func (w *worker) history() (spans []Span, drains []Drain, stalls []Window) {
	w.t.Helper()
	calls := map[int64]*Span{}
	var order []*Span
	w.eachNote(func(n note) {
		switch n.What {
		case "stall":
			stalls = append(stalls, Window{Process: w.PID, Kind: Pause, From: n.Since, To: n.At})
		case "begin":
			calls[n.Call] = &Span{
				Process: w.PID, Server: n.Batch, Queue: n.Queue, Epoch: n.Epoch, Begin: n.At,
				LastSeen: w.Ended,
			}
			order = append(order, calls[n.Call])
		case "queue draining":
			drains = append(drains, Drain{Process: w.PID, Queue: n.Queue, Epoch: n.Epoch, From: n.At})
		case "queue resumed", "sweep begins":
			for i, d := range drains {
				if d.Queue == n.Queue && d.Epoch == n.Epoch && d.To.IsZero() {
					drains[i].To = n.At
				}
			}
		case "worked":
			calls[n.Call].WorkEnd = n.At
		case "end":
			calls[n.Call].End, calls[n.Call].Done = n.At, n.Error == noError
		}
	})
	for _, s := range order {
		spans = append(spans, *s)
	}
	return spans, drains, stalls
}

func TestEndOfDrain(t *testing.T) {
	for _, c := range []struct {
		message string
		epoch   int64
		ends    bool
	}{
		{"queue resumed", 2, true},
		{"sweep begins", 2, true},
		{"sweep begins", 3, false},
		{"queue granted", 2, false}, // a released queue is not worked again under its epoch
	} {
		w := &worker{Process: &proctest.Process{}, t: t, notes: filepath.Join(t.TempDir(), "notes")}
		n, err := openNotes(w.notes)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = n.file.Close() })
		log := slog.New(noting{slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}), n})
		log.Debug("queue draining", slog.String("queue", "0"), slog.Int64("epoch", 2))
		log.Debug(c.message, slog.String("queue", "0"), slog.Int64("epoch", c.epoch))
		_, drains, _ := w.history()
		if len(drains) != 1 || drains[0].To.IsZero() == c.ends {
			t.Errorf("drains after %q of epoch %d: %v, want one, ended: %t", c.message, c.epoch, drains, c.ends)
		}
	}
}
