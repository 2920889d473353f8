//go:build linux

package faults

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/manager"
)

// orderVariable makes this program a worker: it holds an order.
const orderVariable = "ROTA_FAULTS_WORKER"

// order is what a worker process is told.
type order struct {
	URL      string
	Notes    string // the file for its notes
	Settings manager.Settings
	Work     time.Duration // outside the database, for each batch
	Pool     int           // connections of the dealers; 0 for any number
	Power    power         // what the dealer can do besides
}

const taskType = taskName

// work is the whole life of a worker process. SIGTERM ends it in order.
func work(text string) error {
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
	c, err := center.Open(ctx, anydb.URL(o.URL), center.Options{Schema: center.SchemaRequire})
	if err != nil {
		return err
	}
	defer c.Close()
	c.DB().SetMaxOpenConns(o.Pool)
	d := &dealer{c: c, notes: n, work: o.Work}
	go d.listen()
	go n.watchStalls(margin(o.Settings) / 2)
	go n.watchDisk(margin(o.Settings) / 2)
	log := logrus.New()
	log.SetLevel(logrus.DebugLevel)
	log.SetFormatter(&logrus.TextFormatter{FullTimestamp: true, TimestampFormat: "15:04:05.000", DisableColors: true})
	m, err := manager.New(c, manager.Config{Logger: log, Grace: 2 * time.Second}, d.tasks(o)...)
	if err != nil {
		return err
	}
	return m.Run(ctx)
}

// note is a line of what a worker tells about itself. It is written at once, so that it outlives the process.
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

type notes struct{ file *os.File }

func openNotes(path string) (notes, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	return notes{f}, err
}

// add appends one line with one write: lines of several threads do not mix.
func (n notes) add(line note) {
	line.At = time.Now()
	text, err := json.Marshal(line)
	if err == nil {
		_, err = n.file.Write(append(text, '\n'))
	}
	if err != nil {
		panic(err) // a history with holes proves nothing
	}
}

// watchStalls notes when this process stood still for longer, whoever was at fault: a machine that is too
// busy must not look like a broken rule.
func (n notes) watchStalls(longer time.Duration) {
	last := time.Now()
	for {
		time.Sleep(longer / 8)
		if now := time.Now(); now.Sub(last) > longer {
			n.add(note{What: "stall", Since: last})
		}
		last = time.Now()
	}
}

// watchDisk notes when the disk took longer, on which SQLite's file is, too.
func (n notes) watchDisk(longer time.Duration) {
	for {
		time.Sleep(longer / 2)
		begun := time.Now()
		_ = n.file.Sync() // how long it takes is all that matters
		if time.Since(begun) > longer {
			n.add(note{What: "stall", Since: begun})
		}
	}
}

// trap makes one call stop or kill its own process at a known point: no signal from outside would hit it.
type trap struct{ armed atomic.Pointer[snare] }

type snare struct {
	signal syscall.Signal
	point  string // work, commit or, in a run, empty: a select that finds nothing
}

// listen takes orders like "stop work", "kill commit" or "hog 500ms" from the standard input, and ends the
// process with it.
func (d *dealer) listen() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		verb, point, _ := strings.Cut(lines.Text(), " ")
		if verb == "hog" {
			go d.hog(point)
			continue
		}
		d.trap.armed.Store(&snare{map[string]syscall.Signal{"stop": syscall.SIGSTOP, "kill": syscall.SIGKILL}[verb], point})
	}
	os.Exit(3)
}

// hog keeps all connections that dealers may have, as code does that forgets to give them back.
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

// take gives the trap to one call that passes one of the points.
func (t *trap) take(points ...string) snare {
	s := t.armed.Load()
	if s == nil || !slices.Contains(points, s.point) || !t.armed.CompareAndSwap(s, nil) {
		return snare{}
	}
	return *s
}

// at springs the trap if this is its point. The signal is sent to this very thread, which hence does not
// run on for as much as an instruction.
func (s snare) at(point string) error {
	if s.point != point {
		return nil
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return syscall.Tgkill(os.Getpid(), syscall.Gettid(), s.signal)
}
