package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/processor"
)

// task is a task type of a history, as each process serves it.
type task struct {
	name     string
	env      string   // its environment: that of the first processes is empty
	words    []string // of the history: what offers and writes say
	offers   processor.Capabilities
	writes   string // intx, exec, fence or plain
	peeks    bool   // it is a Peeker
	counts   bool   // it is a Backlogger
	settings manager.Settings
	takes    time.Duration // the longest work of a batch
}

// fenced reports whether an item takes effect exactly once.
func (t *task) fenced() bool { return t.writes != "plain" }

// inRuns reports whether the task works in runs.
func (t *task) inRuns() bool { return t.settings.Mode == center.ModeRun }

// process is a worker process.
type process struct {
	w       *world
	name    string
	env     string
	link    *link
	center  *center.Center
	stop    context.CancelFunc
	done    chan struct{} // closed when Run has returned
	applies bool          // it writes its settings when it starts
	err     error
	alive   atomic.Bool
	leaving atomic.Bool
	m       atomic.Pointer[manager.Manager]
}

// world is what a history plays in. Its goroutine takes the steps; the processes call enter, exit, try and kill.
type world struct {
	t        *testing.T
	h        *history
	roster   *file
	data     []*file
	tasks    []*task
	links    uint64 // that were made
	all      []*process
	recorder *recorder
	oracle   *process               // reads and changes the roster as an operator does, over a link without trouble
	ops      map[string]*ops.Client // by environment
	began    time.Time
	undone   map[string]bool // items whose effects the database has lost, as "task id"
	wanted   map[string]bool // named queues that operators want, as "task queue"
	calm     atomic.Bool     // no item ends its process any more

	mu       sync.Mutex
	rng      *rand.Rand
	paced    map[string][]time.Time // when items began, by process, task and queue
	calls    map[*call]bool
	selected map[string]time.Time // the first select under each epoch, by task, queue and epoch
	begun    map[string]int       // calls of each task, also the ended ones
	turns    map[string]time.Time // when the last call began, by task and queue
	tries    map[string]int
	out      map[string]bool // tasks whose calls fail
	hung     map[string]bool // tasks whose calls do not end
	forced   map[string]bool // servers whose queues somebody has moved by force
	edits    []func() error  // undo what a person has written into the settings
	lossAt   time.Time       // when the database last fell back
	trace    []string
	broken   []string // rules, the first one first
}

// call is an Execute under way.
type call struct {
	ctx   context.Context
	p     *process
	task  *task
	batch center.Batch
	items []int64
}

// clock is the clock of the databases of the world that is played: a process plays one history at a time.
var clock atomic.Int64

func init() {
	sqldb.FileClock = func() time.Time { return time.Now().Add(time.Duration(clock.Load())) }
}

// note adds a line to the trace.
func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noteLocked(format, args...)
}

func (w *world) noteLocked(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%8s ", time.Since(w.began).Round(time.Millisecond))+fmt.Sprintf(format, args...))
}

// breaks notes that a rule does not hold. Only the first of them matters: others may follow from it.
func (w *world) breaks(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.breaksLocked(format, args...)
}

func (w *world) breaksLocked(format string, args ...any) {
	w.noteLocked("BROKEN: "+format, args...)
	w.broken = append(w.broken, fmt.Sprintf(format, args...))
}

// upTo returns a random part of a duration.
func (w *world) upTo(d time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return d/10 + time.Duration(w.rng.Int64N(int64(d)))
}

// try counts the attempts of an item.
func (w *world) try(t *task, i item) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := fmt.Sprint(t.name, i.id)
	w.tries[key]++
	return w.tries[key]
}

func (w *world) isOut(t *task) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out[t.name]
}

func (w *world) isHung(t *task) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hung[t.name]
}

// enter notes the begin of a call. No other process may execute one of its items: each trusts that it owns the queue.
// A process that stands still, or has been killed, is not executing. A careless call whose context has ended trusts
// nothing any more. Where somebody has drained a server by force, it and the next owner may work the same items, and so
// may an owner that the database has lost, until it learns of that with a heartbeat.
func (w *world) enter(ctx context.Context, p *process, t *task, b center.Batch, items []item) *call {
	c := &call{ctx: ctx, p: p, task: t, batch: b}
	for _, i := range items {
		c.items = append(c.items, i.id)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for other := range w.calls {
		if other.task != t || other.p == p || !other.p.alive.Load() || other.batch.Run != b.Run || other.p.link.isStopped() {
			continue
		}
		if t.writes == "exec" && other.ctx.Err() != nil || w.forced[b.Server] || w.forced[other.batch.Server] ||
			w.isOfLostHistory(b) || w.isOfLostHistory(other.batch) {
			continue
		}
		for _, id := range c.items {
			if slices.Contains(other.items, id) {
				w.breaksLocked("at once: %s and %s execute item %d of %s, for queues %v and %v", other.p.name, p.name, id, t.name,
					other.batch.Queue, b.Queue)
			}
		}
	}
	w.calls[c], w.begun[t.name] = true, w.begun[t.name]+1
	w.turns[t.name+" "+b.Queue.ID] = time.Now()
	w.paceLocked(c)
	return c
}

// isOfLostHistory reports whether a batch may be of an owner that the database has lost: after a loss, all epochs rise by
// more than a million (H8).
func (w *world) isOfLostHistory(b center.Batch) bool {
	return !w.lossAt.IsZero() && b.Queue.Epoch < 1_000_000
}

// paceWindow is the time within which paceLocked counts items.
const paceWindow = 3 * time.Second

// paceLocked checks that a process does not begin more items of a queue than its rate allows: those of the window and
// what a queue has saved up, which may be that of a few grants.
func (w *world) paceLocked(c *call) {
	rate := c.task.settings.QueueRatePerSecond
	if rate == 0 || w.h.has("queue_set") {
		return
	}
	key := fmt.Sprint(c.p.name, " ", c.task.name, " ", c.batch.Queue.ID)
	list := slices.DeleteFunc(w.paced[key], func(at time.Time) bool { return time.Since(at) > paceWindow })
	for range c.items {
		list = append(list, time.Now())
	}
	w.paced[key] = list
	if most := int(rate * (paceWindow.Seconds() + 3)); len(list) > most {
		w.breaksLocked("rate: %s begins %d items of queue %s of %s within %s, and its rate is %v", c.p.name, len(list),
			c.batch.Queue.ID, c.task.name, paceWindow, rate)
	}
}

// has reports whether a history has a verb.
func (h *history) has(verb string) bool {
	return slices.ContainsFunc(h.steps, func(s step) bool { return slices.Contains(s.words, verb) })
}

// sees notes a select of a queue.
func (w *world) sees(t *task, q processor.Queue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if key := fmt.Sprint(t.name, " ", q.ID, " of ", signOf(t.env), ", epoch ", q.Epoch); w.selected[key].IsZero() {
		w.selected[key] = time.Now()
	}
}

// exit notes the end of a call, and checks that its queue was given to nobody meanwhile.
func (w *world) exit(c *call) {
	if w.trusts(c) {
		if owner, err := w.ownerOf(c); err == nil && owner != c.owner() && w.trusts(c) {
			w.breaks("owned: %s executes items %v of %s of queue %s as %s, and its owner is %s", c.p.name, c.items, c.task.name,
				c.batch.Queue.ID, c.owner(), owner)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.calls, c)
}

// trusts reports whether the process of a call trusts that it owns the queue, and history that it does.
func (w *world) trusts(c *call) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return c.p.alive.Load() && !c.p.link.isStopped() && c.ctx.Err() == nil && !w.forced[c.batch.Server] && w.lossAt.IsZero()
}

// owner is the owner of a queue while a call executes its items.
func (c *call) owner() string {
	return fmt.Sprint(c.batch.Server, " under epoch ", c.batch.Queue.Epoch)
}

// ownerOf reads who owns the queue of a call. Its row may be gone.
func (w *world) ownerOf(c *call) (owner string, err error) {
	owner = "nobody"
	err = eachRow(w.t.Context(), w.oracle.center.DB(), `SELECT COALESCE(cur_server, 'nobody'), epoch FROM schedule_queue
		WHERE task_type = ? AND own_sign = ? AND queue_id = ?`,
		func(server, epoch string) { owner = server + " under epoch " + epoch },
		c.task.name, signOf(c.task.env), c.batch.Queue.ID)
	return owner, err
}

// applies says that a process that starts writes the settings of its program into the rows of its tasks.
const applies = "applies"

// start starts a process.
func (w *world) start(name string, how ...string) {
	w.links++
	ctx, cancel := context.WithCancel(w.t.Context())
	p := &process{w: w, name: name, env: envOf(name), link: newLink(w.h.seed*1000 + w.links), stop: cancel, done: make(chan struct{})}
	p.applies = slices.Contains(how, applies)
	p.alive.Store(true)
	w.all = append(w.all, p)
	go func() {
		defer close(p.done)
		p.err = p.run(ctx)
		w.note("%s has ended: %v", name, p.err)
		if !p.left() && !p.link.isDead() {
			w.breaks("by itself: %s has ended: %v", name, p.err)
		}
		p.alive.Store(false)
	}()
}

// run is the program of a process.
func (p *process) run(ctx context.Context) (err error) {
	if err := p.open(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.center.Close()) }()
	var tasks []manager.Task
	for _, t := range p.w.tasks {
		if t.env == p.env {
			tasks = append(tasks, manager.Serve(t.name, &dealer{t, p}, t.settings))
		}
	}
	retention := p.w.h.retention
	if p.env == otherEnv {
		retention = p.w.h.forgets
	}
	m, err := manager.New(p.center, manager.Config{
		Grace: time.Second, NoHints: !p.w.h.hints, Logger: slog.New(logHandler{p}), Name: p.name, ReturnWithin: p.w.h.returns,
		Retention: retention, Labels: map[string]string{"zone": zoneOf(p.name)}, Weight: weightOf(p.name),
		ApplySettings: p.applies,
	}, tasks...)
	if err != nil {
		return err
	}
	p.m.Store(m)
	return m.Run(ctx)
}

// open opens the roster and the data databases.
func (p *process) open(ctx context.Context) (err error) {
	p.center, err = center.Open(ctx, p.w.roster.database(p.link), center.Options{OwnSign: p.env, Logger: slog.New(logHandler{p})})
	if err != nil {
		return err
	}
	for i, f := range p.w.data {
		if _, err := p.center.FenceIn(dataName(i), f.database(p.link)); err != nil {
			return errors.Join(err, p.center.Close())
		}
	}
	return nil
}

// otherEnv is the environment of the processes m, n and o, which use the same databases.
const otherEnv = "OTHER"

func envOf(process string) string {
	if process >= "m" && process <= "o" {
		return otherEnv
	}
	return ""
}

// zoneOf returns the value of the label zone of a process: x or y, by turns.
func zoneOf(name string) string { return string("xy"[int(name[0])%2]) }

// weightOf returns the weight of a process. That of e is 2, and f stands by.
func weightOf(name string) *int {
	switch name {
	case "e":
		return new(2)
	case "f":
		return new(0)
	}
	return nil
}

func dataName(i int) string { return fmt.Sprintf("d%d", i) }

// kill ends a process at once.
func (w *world) kill(p *process) {
	w.note("%s is killed", p.name)
	p.alive.Store(false)
	p.link.kill()
	for _, f := range w.files() {
		f.breakAll(p.link)
	}
	p.stop()
}

// statements returns how many statements the processes have sent.
func (w *world) statements() (n int) {
	for _, p := range w.all {
		n += p.link.sent().all
	}
	return n
}

func (w *world) files() []*file { return append([]*file{w.roster}, w.data...) }

// process returns the last process of a name that runs, or nil.
func (w *world) process(name string) *process {
	for _, p := range slices.Backward(w.all) {
		if p.name == name && p.alive.Load() {
			return p
		}
	}
	return nil
}

// logHandler adds what a process logs to the trace.
type logHandler struct{ p *process }

// Enabled implements slog.Handler.
func (logHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

// Handle implements slog.Handler.
func (l logHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	})
	l.p.w.note("%s logs %s%s", l.p.name, r.Message, b.String())
	return nil
}

// WithAttrs implements slog.Handler.
func (l logHandler) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler.
func (l logHandler) WithGroup(string) slog.Handler { return l }

// newWorld makes the databases and the tasks. Nothing runs yet.
func newWorld(t *testing.T, h *history, rosterTemplate, dataTemplate string) *world {
	t.Helper()
	w := &world{
		t: t, h: h, rng: rand.New(rand.NewPCG(h.seed, 2)), calls: map[*call]bool{},
		begun: map[string]int{}, turns: map[string]time.Time{}, paced: map[string][]time.Time{}, selected: map[string]time.Time{}, tries: map[string]int{},
		out: map[string]bool{}, hung: map[string]bool{}, undone: map[string]bool{}, wanted: map[string]bool{},
		forced: map[string]bool{},
		began:  time.Now(),
	}
	clock.Store(0)
	w.recorder = newRecorder(w)
	dir := memoryDir(t)
	w.roster = newFile(filepath.Join(dir, "roster.db"))
	if err := copyFile(rosterTemplate, w.roster.path); err != nil {
		t.Fatal(err)
	}
	for i := range h.data {
		f := newFile(filepath.Join(dir, dataName(i)+".db"))
		if err := copyFile(dataTemplate, f.path); err != nil {
			t.Fatal(err)
		}
		w.data = append(w.data, f)
	}
	for _, spec := range h.tasks {
		t, err := spec.task()
		if err != nil {
			w.t.Fatal(err)
		}
		w.tasks = append(w.tasks, t)
	}
	w.oracle = &process{w: w, name: "oracle", link: newLink(0)}
	w.oracle.link.patient = true
	if err := w.oracle.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	other, err := w.oracle.center.In(otherEnv)
	if err != nil {
		t.Fatal(err)
	}
	w.ops = map[string]*ops.Client{"": ops.New(w.oracle.center), otherEnv: ops.New(other)}
	if err := errors.Join(w.forgetCursors(), w.wantWhatIs()); err != nil {
		t.Fatal(err)
	}
	return w
}

// memoryDir returns a directory in memory, if the system has one: a commit then waits for no disk.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "rota-sim-") //nolint:usetesting // t.TempDir may be on a disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// close ends everything that runs in the bubble.
func (w *world) close() {
	for _, p := range w.all {
		p.link.goOn()
		p.link.set(trouble{})
		if p.alive.Load() {
			w.kill(p)
		}
	}
	for _, p := range w.all {
		<-p.done
	}
	time.Sleep(time.Minute) // commits that arrive late
	if err := w.oracle.center.Close(); err != nil {
		w.t.Error(err)
	}
	for _, f := range w.files() {
		f.mu.Lock()
		for c := range f.conns {
			f.breakLocked(c)
		}
		f.mu.Unlock()
	}
}
