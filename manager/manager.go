package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/processor"
)

// Settings are the settings of a task type. See center.Settings for the defaults.
type Settings = center.Settings

// Task is a task type and its dealer. Serve returns one.
type Task struct {
	name         string
	settings     Settings
	stated       []string // the names of the settings that Apply writes
	newProcessor func(engine.Env, engine.Settings) (*engine.Processor, error)
	backlogger   processor.Backlogger // nil if the dealer is none
}

// Serve returns a Task that makes this process serve a task type with a dealer. The first worker to start writes the
// settings; after that the database wins, and Apply changes it. The task states the fields of the settings that are not
// zero.
func Serve[T any](taskType string, d processor.TaskDealer[T], s Settings) Task {
	backlogger, _ := d.(processor.Backlogger)
	return Task{taskType, s, s.Stated(), func(e engine.Env, ps engine.Settings) (*engine.Processor, error) {
		return engine.New(d, e, ps)
	}, backlogger}
}

// TaskType returns the name of the task type.
func (t Task) TaskType() string { return t.name }

// Settings returns the settings that Serve got, without defaults.
func (t Task) Settings() Settings { return t.settings }

// texts returns the settings that the task states, as text.
func (t Task) texts() map[string]string { return t.settings.Texts(t.stated) }

// Stating returns the task with exactly these settings stated, by their names in rota.yaml: a field that is zero then
// means its default, and not that it is left out.
func (t Task) Stating(names ...string) Task {
	t.stated = names
	return t
}

// Config holds the settings of the process. The zero value is ready to use.
type Config struct {
	// Logger receives joins, moves, expired leases and failures, and nothing per item at Info. docs/logging.md lists the
	// names of the fields. Each line gets the context in which it was logged: that of Run, or of a call of a dealer.
	// Defaults to no output.
	Logger *slog.Logger

	// Redact returns a text without the secrets of this process, such as the token in the URL of a service. It is called
	// with the text of each error of a dealer and of each alert, before that is logged or written to the roster, by
	// several goroutines at once. Logger gets texts of databases, too, and needs a handler of its own against secrets in
	// them. Defaults to the text itself.
	Redact func(text string) string

	// Grace is how long the manager waits for a call of a dealer after it has cancelled the call's context. Defaults to
	// 5 s.
	Grace time.Duration

	// Observers receive heartbeats, moves and sweeps, for metrics. Defaults to none.
	Observers []Observer

	// Hooks wrap the calls of the dealers, for spans and metrics: the first of them outside of the others. Defaults to
	// none.
	Hooks []processor.Hooks

	// Alerter receives what an operator should know. The manager also logs alerts and records them in schedule_event.
	// Defaults to none.
	Alerter Alerter

	// Retention is how long the database keeps events, the history of servers, and runs that have ended. A key or a
	// slot whose run was deleted gets a run again, if a program submits it or a backfill reaches it. Where processes
	// have different retentions, the shortest one counts, in all environments. Defaults to 7 days.
	Retention time.Duration

	// ItemRetention is how long the database keeps the record of an item that is dead, or that is due and that no worker
	// selects any more. An item that is still selected then is executed again, as if it had never failed. Defaults to 30
	// days.
	ItemRetention time.Duration

	// Weight says how much this process gets, from 0 to ops.MaxWeight: the processes of a task type own queues in
	// proportion to their weights, within one queue, and share max_in_flight in the same proportion. A process of weight 0
	// stands by: it owns only queues that no other process may own or has room for. If all have 0, they count alike. An
	// operator can change it while the process runs (verbs.WeighServers). Defaults to 1; new(3) is a pointer to 3.
	Weight *int

	// Labels say what this process has: its zone, its disk. The settings Require and Spread refer to them. They stay for
	// the life of the process. See ops.CheckLabels. Defaults to none.
	Labels map[string]string

	// Name is a name that the next process after a restart has too, and no other process at the same time: that of the pod
	// in a StatefulSet, or of the host. ReturnWithin needs it. Defaults to none.
	Name string

	// ReturnWithin makes Run, when its context is done, keep the queues for a process of the same Name. No process works
	// them for at most this long; then other processes get them. So a process that is restarted gets its queues back, and
	// no queue moves. It is for restarts that take seconds. At most ops.MaxReturn; it needs Name. Defaults to 0: other
	// processes get the queues at once.
	ReturnWithin time.Duration

	// WitnessDir is the directory in which the processes of this host prove to each other that they run: each holds a lock
	// there, which the kernel releases when the process ends. The others then take over its queues at once, and not after
	// judge_dead_interval; after a restart the new process does so itself. All processes of the host need the same
	// directory, on tmpfs, ext4, xfs or btrfs, such as /run/rota. It is made if it is missing. Processes that a dealer
	// starts hold the lock, too. If the directory cannot be used, Run goes on without it and raises AlertWitness. Only
	// Linux has it. Do not set it where running processes or virtual machines are cloned, or checkpointed and restored.
	// Defaults to none.
	WitnessDir string

	// ApplySettings makes Run apply what the tasks state, as Apply does, when it starts. The last start wins: two
	// programs that state different settings, and an operator, take them from each other. So it is for one program on one
	// machine; a deployment calls Apply once instead. If running workers of other programs could not work by the settings,
	// Run logs why and works by those of the database. Defaults to false.
	ApplySettings bool

	// NoHints spares the connection on which Run listens for the hints of other processes, one for the whole process:
	// those of Center.Wake, and those that queues move, which Run then does not send either. Defaults to false. Only
	// PostgreSQL has such a connection, and it is closed behind a pooler that passes no notifications.
	NoHints bool
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Redact == nil {
		c.Redact = func(text string) string { return text }
	}
	if c.Grace == 0 {
		c.Grace = 5 * time.Second
	}
	if c.Retention == 0 {
		c.Retention = 7 * 24 * time.Hour
	}
	if c.ItemRetention == 0 {
		c.ItemRetention = 30 * 24 * time.Hour
	}
	return c
}

// reservation keeps the queues of a server that leaves for the next process of this name (P13).
func (c Config) reservation() roster.Reservation {
	return roster.Reservation{Name: c.Name, Within: c.ReturnWithin}
}

func (c Config) validate() error {
	if c.Grace < 0 {
		return fmt.Errorf("grace (%s) must not be negative", c.Grace)
	}
	if c.Retention < 0 {
		return fmt.Errorf("retention (%s) must not be negative", c.Retention)
	}
	if c.ItemRetention < 0 {
		return fmt.Errorf("item_retention (%s) must not be negative", c.ItemRetention)
	}
	if err := ops.CheckLabels(c.Labels); err != nil {
		return err
	}
	if err := roster.CheckReturn(c.Name, c.ReturnWithin); err != nil {
		return err
	}
	if c.Weight != nil {
		return roster.CheckWeight(*c.Weight)
	}
	return nil
}

// Manager runs the servers of this process: one for each task type.
type Manager struct {
	c           *center.Center
	cfg         Config
	process     string // its id, in the rows of all its servers
	heartbeater *heartbeater
	witness     *witnessing
	alone       chan struct{} // the processors share it: Env.Alone
	peeking     chan struct{} // likewise Env.Peeking
	auditing    chan struct{} // held during an audit
	hearing     *hearing
	servers     []*server
	ran         atomic.Bool // Run was called
}

// New returns a Manager that is not running yet. It asks no database. It returns an error if there is no task, if two
// tasks have the same name, or if a setting breaks its rule.
func New(c *center.Center, cfg Config, tasks ...Task) (*Manager, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if err := validate(tasks); err != nil {
		return nil, err
	}
	m := &Manager{
		c: c, cfg: cfg, process: newUUID(hostName()), heartbeater: newHeartbeater(c, cfg),
		witness: &witnessing{path: cfg.WitnessDir, log: cfg.Logger}, alone: make(chan struct{}, 1),
		hearing: &hearing{log: cfg.Logger}, peeking: make(chan struct{}, peeksAtOnce), auditing: make(chan struct{}, 1),
	}
	for _, t := range tasks {
		m.servers = append(m.servers, newServer(m, t))
	}
	return m, nil
}

// peeksAtOnce is how many peeks of a process run at the same time. The audits of its task types run one after the
// other. Otherwise a hundred task types, whose peeks and audits are due at the same time, would open a hundred
// connections, and on a busy machine their heartbeats would wait behind all of them.
const peeksAtOnce = 4

func validate(tasks []Task) error {
	if len(tasks) == 0 {
		return errors.New("no task: a manager needs at least one")
	}
	settings := map[string]Settings{}
	for _, t := range tasks {
		if _, there := settings[t.name]; there {
			return fmt.Errorf("task %s was given twice: a process serves a task type once", t.name)
		}
		settings[t.name] = t.settings
		if err := roster.ValidTaskType(t.name); err != nil {
			return err
		}
		if err := t.settings.Validate(); err != nil {
			return fmt.Errorf("task %s: %w", t.name, err)
		}
	}
	return center.CheckAfter(settings)
}

// Run serves all tasks until ctx is done. Then it drains, hands everything over and returns nil. Run may be called
// once: another call returns an error at once and does nothing. To serve the tasks again, make another Manager.
//
// Run returns an error if defining or joining a task fails with an error that is not transient, if a dealer can work
// neither by the settings in the database nor by what its task states, or if it does not return in time. Run
// hands the other tasks over first. A task that cannot work by the settings in the database alone waits until they are
// changed, with the condition REFUSED; the others go on. A dealer that ignores its context for longer than the grace
// goes on after Run has returned. If the database does not take the hand-over, because it is away or swallows what it
// is sent, Run returns a *NotLeftError within drain_timeout, the grace and the time of a lease.
func (m *Manager) Run(ctx context.Context) error {
	if m.ran.Swap(true) {
		return errors.New("run a manager: Run was called before, and may be called once")
	}
	serving, ctx := errgroup.WithContext(ctx)
	if err := m.witness.open(); err != nil {
		m.witness.fail(ctx, m.servers, err)
	}
	beating, stop := context.WithCancel(context.WithoutCancel(ctx)) // heartbeats go on while the servers drain
	var beside sync.WaitGroup
	beside.Go(func() { m.heartbeater.run(beating) })
	beside.Go(func() { m.heartbeater.statistics.run(beating) })
	beside.Go(func() { m.witness.watch(beating, m.servers) })
	beside.Go(func() { m.listen(beating) })
	for _, s := range m.servers {
		serving.Go(func() error { return s.run(ctx) })
	}
	err := serving.Wait()
	stop()
	beside.Wait()
	if err == nil {
		m.witness.release()
	}
	return m.joinNotLeft(err)
}

// Ready returns nil if every task has joined and its lease is valid, so that the process can do its work. Otherwise it
// returns an error that names a task and its state, or center.ErrUnreachable with the cause if the lease has expired
// because no heartbeat reaches the database. It asks no database. What the dealers call does not count: while a
// third party is down, a restart or another process would not help, and a service can still answer. Status has that in
// Failing, and Config.Alerter gets FAILING.
func (m *Manager) Ready() error {
	for _, s := range m.servers {
		state, cause := s.state.Load().(string), m.heartbeater.failure.Load()
		switch {
		case state == stateFenced && cause != nil:
			return fmt.Errorf("task %s works nothing, because its lease has expired: %w: %w", s.taskType,
				center.ErrUnreachable, *cause)
		case state != stateServing:
			return fmt.Errorf("task %s is %s", s.taskType, state)
		}
	}
	return nil
}
