//go:build linux

package faults

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/manager"
)

// orderVariable is the environment variable that makes this program a worker. Its value is an order in JSON.
const orderVariable = "ROTA_FAULTS_WORKER"

// order is the configuration of a worker process.
type order struct {
	URL      string
	Notes    string // the file for the notes
	Settings manager.Settings
	Work     time.Duration // outside the database, for each batch
	Pool     int           // connections of the dealers; 0 means no limit
	IdleTx   time.Duration // idle_tx_timeout; 0 means the default
	Witness  string        // the witness directory; empty: none
	Name     string        // the name for which the worker reserves its queues when it leaves
	Returns  time.Duration // for how long it reserves them; 0 means not at all
	Variant  variant       // of the dealer
	Single   bool          // the dealer writes a batch by one statement

	Data  map[string]string // URLs of data databases by name
	Reply time.Duration     // reply_timeout; 0 means the default
}

const taskType = taskName

// work is the main function of a worker process. SIGTERM makes the worker leave in order.
func work(text string) (err error) {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	n, err := openNotes(o.Notes)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c, err := center.Open(ctx, anydb.URL(o.URL), center.Options{
		Schema: center.SchemaRequire, IdleTxTimeout: o.IdleTx, ReplyTimeout: o.Reply,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	c.DB().SetMaxOpenConns(o.Pool)
	for name, url := range o.Data {
		if _, err := c.FenceIn(name, anydb.URL(url)); err != nil {
			return err
		}
	}
	d := &dealer{c: c, notes: n, work: o.Work, single: o.Single}
	go d.listen()
	go n.watchStalls(margin(o.Settings) / 2)
	go n.watchDisk(margin(o.Settings) / 2)
	log := slog.New(noting{slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}), n})
	m, err := manager.New(c, manager.Config{
		Logger: log, Grace: 2 * time.Second, WitnessDir: o.Witness, Name: o.Name,
		ReturnWithin: o.Returns,
	}, d.tasks(o)...)
	if err != nil {
		return err
	}
	return m.Run(ctx)
}

// note is a line in the record of a worker. The worker writes it at once, so that it survives a kill of the process.
type note struct {
	At    time.Time
	What  string // begin, worked and end of a call; stall
	Call  int64  `json:",omitempty"`
	Batch string `json:",omitempty"` // the server
	Queue string `json:",omitempty"`
	Epoch int64  `json:",omitempty"`
	Since time.Time
	Error string `json:",omitempty"`
}

// noError is note.Error at the end of a call that has done its items.
const noError = "<nil>"

type notes struct{ file *os.File }

func openNotes(path string) (notes, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	return notes{f}, err
}

// noting is a log that notes when the manager begins and ends a drain. The suspension of a sweep, for example in a
// run that is paused, leaves the queue drained. Then the next sweep of the queue ends the drain, under the same
// epoch.
type noting struct {
	slog.Handler
	notes
}

// Handle implements slog.Handler.
func (h noting) Handle(ctx context.Context, r slog.Record) error {
	switch r.Message {
	case "queue draining", "queue resumed", "sweep begins":
		line := note{What: r.Message}
		r.Attrs(func(a slog.Attr) bool {
			switch a.Key {
			case "queue":
				line.Queue = a.Value.String()
			case "epoch":
				line.Epoch = a.Value.Int64()
			}
			return true
		})
		h.add(line)
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h noting) WithAttrs(attrs []slog.Attr) slog.Handler {
	return noting{h.Handler.WithAttrs(attrs), h.notes}
}

// add appends a line in a single write, so that the lines of several threads do not mix.
func (n notes) add(line note) {
	line.At = time.Now()
	text, err := json.Marshal(line)
	if err == nil {
		_, err = n.file.Write(append(text, '\n'))
	}
	if err != nil {
		panic(err) // a history with gaps proves nothing
	}
}

// watchStalls records each time that this process stood still for longer than the limit, whatever the cause. A machine
// that is too busy must not look like a violation.
func (n notes) watchStalls(limit time.Duration) {
	last := time.Now()
	for {
		time.Sleep(limit / 8)
		if now := time.Now(); now.Sub(last) > limit {
			n.add(note{What: "stall", Since: last})
		}
		last = time.Now()
	}
}

// watchDisk records each time that a sync of the disk took longer than the limit. The file of SQLite is on the same
// disk.
func (n notes) watchDisk(limit time.Duration) {
	for {
		time.Sleep(limit / 2)
		begun := time.Now()
		_ = n.file.Sync() // only the duration matters
		if time.Since(begun) > limit {
			n.add(note{What: "stall", Since: begun})
		}
	}
}

// failpoints make one call stop or kill its own process at an exact point, which a signal from outside would miss.
type failpoints struct{ armed atomic.Pointer[failpoint] }

// failpoint is the signal and the point.
type failpoint struct {
	signal syscall.Signal
	point  string // work, commit, or empty: a select of a run that returns no items
}

// listen reads commands such as "stop work", "kill commit" or "hog 500ms" from the standard input, and ends the process
// at its end.
func (d *dealer) listen() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		verb, point, _ := strings.Cut(lines.Text(), " ")
		if verb == "hog" {
			go d.hog(point)
			continue
		}
		d.failpoints.armed.Store(&failpoint{
			map[string]syscall.Signal{"stop": syscall.SIGSTOP, "kill": syscall.SIGKILL}[verb],
			point,
		})
	}
	os.Exit(3)
}

// hog takes all connections of the dealers for a while, as code does that forgets to close them.
func (d *dealer) hog(duration string) {
	for range d.c.DB().Stats().MaxOpenConnections {
		if conn, err := d.c.DB().Conn(context.Background()); err == nil {
			defer conn.Close()
		}
	}
	d.notes.add(note{What: "hogs"})
	pause, err := time.ParseDuration(duration)
	if err != nil {
		panic(err)
	}
	time.Sleep(pause)
}

// take gives the failpoint to the first call that passes one of the points.
func (t *failpoints) take(points ...string) failpoint {
	s := t.armed.Load()
	if s == nil || !slices.Contains(points, s.point) || !t.armed.CompareAndSwap(s, nil) {
		return failpoint{}
	}
	return *s
}

// at sends the signal if this is its point. It sends the signal to the current thread, which therefore
// executes no further instruction.
func (s failpoint) at(point string) error {
	if s.point != point {
		return nil
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return syscall.Tgkill(os.Getpid(), syscall.Gettid(), s.signal)
}
