package manager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/processor"
)

// Settings are a task type's. See center.Settings for the defaults.
type Settings = center.Settings

// Task is a task type and its dealer, as Serve makes it.
type Task struct {
	name         string
	settings     Settings
	newProcessor func(processor.Env, processor.Settings) (*processor.Processor, error)
}

// Serve says that this process deals with a task type. The settings make the task type's row if
// there is none; else the row is in force.
func Serve[T any](taskType string, d processor.TaskDealer[T], s Settings) Task {
	return Task{taskType, s, func(e processor.Env, ps processor.Settings) (*processor.Processor, error) {
		return processor.New(d, e, ps)
	}}
}

// Config holds the settings of the process. The zero value is ready to use.
type Config struct {
	// Logger gets joins, moves, losses of trust and failures, and nothing per item at Info.
	// Defaults to silence.
	Logger logrus.FieldLogger

	// Grace is how long a call of a dealer may go on after its context was cancelled, before the
	// manager goes on without it. Defaults to 5 s.
	Grace time.Duration

	// Observer is told of heartbeats and moves, for metrics. Defaults to nobody.
	Observer Observer

	// Hooks wrap the calls of the dealers, for spans and metrics. Defaults to none.
	Hooks processor.Hooks

	// Alerter is told what an operator should know. Defaults to nobody: alerts are logged and recorded in
	// schedule_event in any case.
	Alerter Alerter

	// Retention is how long events and the rows of servers that are gone are kept. Defaults to 7 days.
	Retention time.Duration
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		silent := logrus.New()
		silent.SetOutput(io.Discard)
		c.Logger = silent
	}
	if c.Grace == 0 {
		c.Grace = 5 * time.Second
	}
	if c.Retention == 0 {
		c.Retention = 7 * 24 * time.Hour
	}
	return c
}

// Manager lives the life of this process's servers: one for each task type.
type Manager struct {
	c       *center.Center
	cfg     Config
	heart   *heart
	servers []*server
}

// New returns a Manager that is not running yet. It fails, without asking the database, when there
// is no task, two have one name, or a setting breaks its rule.
func New(c *center.Center, cfg Config, tasks ...Task) (*Manager, error) {
	cfg = cfg.withDefaults()
	if cfg.Grace < 0 {
		return nil, fmt.Errorf("grace (%s) must not be negative", cfg.Grace)
	}
	if cfg.Retention < 0 {
		return nil, fmt.Errorf("retention (%s) must not be negative", cfg.Retention)
	}
	if err := validate(tasks); err != nil {
		return nil, err
	}
	m := &Manager{c: c, cfg: cfg, heart: newHeart(c, cfg)}
	for _, t := range tasks {
		m.servers = append(m.servers, newServer(m, t))
	}
	return m, nil
}

func validate(tasks []Task) error {
	if len(tasks) == 0 {
		return errors.New("no task: a manager needs something to do")
	}
	settings := map[string]Settings{}
	for _, t := range tasks {
		if _, there := settings[t.name]; there {
			return fmt.Errorf("task %s is there twice: a process serves a task type once", t.name)
		}
		settings[t.name] = t.settings
		if err := t.settings.Validate(); err != nil {
			return fmt.Errorf("task %s: %w", t.name, err)
		}
	}
	return center.CheckAfter(settings)
}

// Run serves all tasks until ctx is done; then it drains, hands everything over and returns nil. It
// returns an error when a task cannot be defined or joined for a reason that will not pass, or when
// a dealer did not let go in time; the other tasks are then handed over first. What a dealer does
// that ignores its context for longer than the grace goes on behind Run's back. Run may be called
// once.
func (m *Manager) Run(ctx context.Context) error {
	serving, ctx := errgroup.WithContext(ctx)
	beating, stop := context.WithCancel(context.WithoutCancel(ctx)) // heartbeats go on while draining
	heart := make(chan struct{})
	go func() {
		defer close(heart)
		m.heart.run(beating)
	}()
	for _, s := range m.servers {
		serving.Go(func() error { return s.run(ctx) })
	}
	err := serving.Wait()
	stop()
	<-heart
	return err
}

// Ready returns nil when every task has joined and trusts itself, and else an error that names one
// that does not. It asks no database.
func (m *Manager) Ready() error {
	for _, s := range m.servers {
		if state := s.state(); state != stateServing {
			return fmt.Errorf("task %s is %s", s.task.name, state)
		}
	}
	return nil
}

// hostIP returns an address that tells operators which host this is, or nothing.
func hostIP() string {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
			return ip.IP.String()
		}
	}
	return ""
}

func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

// libraryVersion is the version of this module in the program that runs.
func libraryVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == "github.com/dutyrota/rota" {
			return m.Version
		}
	}
	return ""
}
