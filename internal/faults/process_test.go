//go:build linux

package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/testdb"
)

// worker is a worker process and what the scenario has done to it.
type worker struct {
	t      *testing.T
	pid    int
	cmd    *exec.Cmd
	input  io.WriteCloser
	proxy  *testdb.Proxy // between the process and its database; may be nil
	notes  string
	log    string
	gone   chan struct{} // closed when the process has ended
	err    error         // of Wait; read it only after gone
	ended  time.Time     // read it only after gone
	doomed time.Time     // when the scenario killed it, or made it kill itself: others notice the end before this process
	killed bool          // by the scenario

	data map[string]*testdb.Proxy // between the process and its data databases, by their names; may be empty
}

// startWorker starts a process that ends with this process at the latest. The program is a test program of this package.
// The names of the process's files begin with the prefix files.
func startWorker(t *testing.T, program, files string, o order, proxy *testdb.Proxy) *worker {
	t.Helper()
	o.Notes = files + ".notes"
	w := &worker{t: t, proxy: proxy, notes: o.Notes, log: files + ".log", gone: make(chan struct{})}
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(w.log)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.notes, nil, 0o644); err != nil { // the process may be killed before it opens them
		t.Fatal(err)
	}
	w.cmd = exec.Command(program)
	w.cmd.Env = append(os.Environ(), orderVariable+"="+string(text))
	w.cmd.Stdout, w.cmd.Stderr = log, log
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if w.input, err = w.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	started := make(chan error, 1)
	go func() {
		// Linux ends the child when the thread that started it ends, so this goroutine keeps its thread until then.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(w.gone)
		err := w.cmd.Start()
		started <- err
		if err == nil {
			w.err = w.cmd.Wait()
		}
		w.ended = time.Now()
		_ = log.Close() // only the child has written to it
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	w.pid = w.cmd.Process.Pid
	t.Cleanup(func() { // also ends a stopped process
		_ = w.cmd.Process.Kill() // fails if the process has ended
		<-w.gone
	})
	return w
}

// arm sets the failpoint of one of the next calls, for example "stop work".
func (w *worker) arm(what string) {
	w.t.Helper()
	w.doomed = time.Now()
	if _, err := fmt.Fprintln(w.input, what); err != nil {
		w.t.Fatal(err)
	}
}

func (w *worker) signal(s syscall.Signal) {
	w.t.Helper()
	if s == syscall.SIGKILL {
		w.doomed = time.Now()
	}
	if err := w.cmd.Process.Signal(s); err != nil {
		w.t.Fatalf("signal %s to worker %d: %v", s, w.pid, err)
	}
}

// stopped reports whether the process stands still, according to the kernel.
func (w *worker) stopped() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.pid))
	if err != nil {
		w.t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(stat, []byte(") ")) // the state follows the name
	return bytes.HasPrefix(rest, []byte("T"))
}

// alive reports whether the process has not ended yet.
func (w *worker) alive() bool {
	select {
	case <-w.gone:
		return false
	default:
		return true
	}
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
			w.t.Fatalf("note %q of worker %d: %v", line, w.pid, err)
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
			stalls = append(stalls, Window{Process: w.pid, Kind: Pause, From: n.Since, To: n.At})
		case "begin":
			calls[n.Call] = &Span{
				Process: w.pid, Server: n.Batch, Queue: n.Queue, Epoch: n.Epoch, Begin: n.At,
				LastSeen: w.ended,
			}
			order = append(order, calls[n.Call])
		case "queue draining":
			drains = append(drains, Drain{Process: w.pid, Queue: n.Queue, Epoch: n.Epoch, From: n.At})
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

// logTail returns the last lines of the log of the process.
func (w *worker) logTail(lines int) string {
	text, err := os.ReadFile(w.log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	// the driver repeats itself
	all = slices.DeleteFunc(all, func(line string) bool { return strings.HasPrefix(line, "[mysql]") })
	return strings.Join(all[max(0, len(all)-lines):], "\n")
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
		w := &worker{t: t, notes: filepath.Join(t.TempDir(), "notes")}
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
