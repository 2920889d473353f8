// Package workercmd is the commands that run beside the work: rota worker, which is also the group of the commands
// about workers, and rota witness.
package workercmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/cmd/rota/internal/daemon"
	"github.com/dutyrota/rota/cmd/rota/internal/environ"
	"github.com/dutyrota/rota/cmd/rota/internal/redact"
	"github.com/dutyrota/rota/cmd/rota/internal/verbcmd"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/manager/metrics"
	"github.com/dutyrota/rota/ops/doctor"
)

// New returns the command rota worker. Its subcommands, the given ones among them, are about workers that run already;
// the flags of a worker are not theirs.
func New(commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run the tasks of a rota.yaml; list, pause or drain workers",
		Long: `Run the tasks of a rota.yaml until a signal. Start any number of workers on any
number of hosts: they share the queues. The commands below list the workers that
run, and pause, drain or resume them. There WORKER is a process, host:pid; or a
host, for all its workers; or a uuid, which a worker has for each task type.

On the first SIGTERM or SIGINT the worker finishes what it has in flight, hands
its queues over, and exits 0. It exits 1 if the database does not take that: the
others take over then. On a second signal it stops at once and exits 1.
Under systemd, a unit of Type=notify has started when all tasks have joined.

A value comes from the flag, else from the file of -c, else from the variable
that the flag's help names, else from rota.yaml in this directory.

A worker that cannot reach its database waits for it, at its start as later.
With --exit-on-unreachable it exits 1 if that happens at its start. It exits at
once in any case if the database refuses its password or name, or TLS fails.

With --witness-dir the other workers of the host take over at once when this one
is killed, and after a restart the new process does so itself. Without it they
wait for judge_dead_interval. All workers of a host take the same directory.

With --name and --return-within a worker that stops in order keeps its queues
for the next worker of its name: no queue moves in a restart. Until it is back,
or the time is over, nobody works them.`,
		Example: `  rota worker -c rota.yaml
  ROTA_DATABASE=postgres://app@db/shop?sslmode=verify-full rota worker
  rota worker --own-sign TEST --http 127.0.0.1:9090`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Unknown(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			w, err := newWorker(cmd)
			if err != nil {
				return cli.Usage(err)
			}
			return w.secrets.Error(w.run(cmd.Context()))
		},
	}
	cli.AddConnectionFlags(cmd)
	config.AddFlags(cmd.Flags())
	cmd.AddCommand(append(commands, newConform())...)
	verbcmd.AddVerbs(cmd, "worker")
	return cmd
}

// worker is a validated rota.yaml with its dealers.
type worker struct {
	path     string // of the file
	file     *config.File
	dealers  []placed                            // of the tasks whose items SQL selects
	programs []runner                            // of the tasks that have one
	serve    []func(*center.Center) manager.Task // one per task of the file
	secrets  *redact.Redactor
	log      *logrus.Logger
	front    *front
}

// newWorker reads and validates the file before the worker connects to anything. The error has all mistakes of the
// file, those of statements too, as far as the others leave a task readable.
func newWorker(cmd *cobra.Command) (*worker, error) {
	path := cli.ConfigPath(cmd)
	file, mistakes := config.Load(path, cmd.Flags())
	if file == nil {
		return nil, mistakes
	}
	secrets := secretsOf(file)
	if slices.ContainsFunc(file.Tasks, func(t config.Task) bool { return len(t.Program.Command) > 0 }) {
		if err := environ.Hide(secrets.Text); err != nil {
			return nil, err
		}
	}
	cli.ShowConnection(cmd, file.Connection)
	kinds, err := cli.Kinds(file.Connection)
	switch {
	case file.Database == "": // one of the mistakes says so
		return nil, mistakes
	case err != nil:
		return nil, errors.Join(mistakes, err)
	}
	w := &worker{path: path, file: file, secrets: secrets}
	w.log = daemon.NewLogger(cmd.ErrOrStderr(), w.secrets.Text)
	errs := []error{mistakes}
	for _, task := range file.Tasks {
		if task.Unread {
			continue
		}
		p, err := w.addProgram(task)
		for _, err := range []error{w.addDealer(task, kinds, p), err} {
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", path, err))
			}
		}
	}
	return w, errors.Join(errs...)
}

// secretsOf returns what knows the secrets of a file. The secrets of services are added when they are read.
func secretsOf(file *config.File) *redact.Redactor {
	r := &redact.Redactor{}
	r.Add(os.Getenv("PGPASSWORD")) // lib/pq takes it where a URL has no password
	r.AddDatabase(file.Database)
	for _, d := range file.Data {
		r.AddDatabase(d.URL)
	}
	names := make([]string, len(file.Tasks))
	for i, t := range file.Tasks {
		names[i] = t.Name
	}
	for _, t := range file.Tasks {
		r.AddService(t.Program.HTTP.URL, names...)
	}
	return r
}

func (w *worker) run(ctx context.Context) (err error) {
	ctx, stop := daemon.WhileRead(ctx, os.Stderr) // a Ctrl-C may end the reader of the log first
	defer stop()
	ctx, release := daemon.DrainOnSignal(ctx, w.log)
	defer release()
	w.front, err = listenAt(ctx, w.file.HTTP, w.file.Probes, w.log)
	if err != nil {
		return err
	}
	defer w.front.serve(ctx)()
	defer w.closePrograms()
	c, tasks, err := w.open(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // a signal came before the start
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	process := w.file.Process
	process.Logger, process.Redact = daemon.LibraryLogger(w.log), w.secrets.Text
	m, mx, err := metrics.NewManager(c, process, tasks...)
	if err != nil {
		return err
	}
	pages, err := w.console(c)
	if err != nil {
		return err
	}
	p := probes{
		ready: ready(m, c), seen: func() string { return seen(m.Conditions()) }, metrics: w.metrics(c, mx),
		scale: console.ScaleHandler(c), console: pages,
	}
	w.front.show(p)
	w.front.say(p)
	defer daemon.NotifySystemd(ctx.Done(), m.Ready, w.log)()
	watching, stopWatch := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		w.watchScans(watching, c)
	}()
	defer func() {
		stopWatch()
		<-watched
	}()
	return m.Run(ctx)
}

// dealerConns is the default bound of the connections of dealers. The dealers of a worker hold one connection each, and
// so never wait for one another. Without a bound, a hundred task types would open five hundred connections when all get
// items at once, more than a server takes.
const dealerConns = 32

// open opens the roster, and returns the tasks, whose statements the databases know. They are checked before the tables
// of the roster are made, so that a file that is refused leaves nothing behind. While open waits for the database,
// /livez answers, because a restart would not bring the database back.
func (w *worker) open(ctx context.Context) (c *center.Center, tasks []manager.Task, err error) {
	o := w.file.Options
	o.BeforeTables = func(ctx context.Context, c *center.Center) (err error) {
		if tasks, err = w.use(c); err != nil {
			return err
		}
		return cmp.Or(w.checkStatements(ctx, c), ctx.Err())
	}
	o.DealerConns = cmp.Or(o.DealerConns, dealerConns)
	o.Logger, o.FailUnreachable = daemon.LibraryLogger(w.log), true
	c, err = center.Open(ctx, anydb.URL(w.file.Database), o)
	if !errors.Is(err, center.ErrUnreachable) || w.file.ExitOnUnreachable {
		return c, tasks, err
	}
	away := err
	p := probes{waiting: true, ready: func(context.Context) error {
		return notReady{center.ErrUnreachable.Error(), away}
	}}
	w.front.show(p)
	w.front.say(p)
	o.FailUnreachable = false
	c, err = center.Open(ctx, anydb.URL(w.file.Database), o)
	return c, tasks, err
}

// console returns the pages of the console, or nil if the file does not want them.
func (w *worker) console(c *center.Center) (http.Handler, error) {
	if !w.file.Console {
		return nil, nil
	}
	return console.Handler(c, console.Options{Logger: daemon.LibraryLogger(w.log)})
}

// ready returns an error unless each task has a valid lease and the database accepts writes.
func ready(m *manager.Manager, c *center.Center) func(context.Context) error {
	return func(ctx context.Context) error {
		err, what := m.Ready(), "a task type is not served"
		if err == nil {
			err, what = c.CheckWrite(ctx), "the database accepts no writes"
		}
		switch {
		case errors.Is(err, center.ErrUnreachable):
			return notReady{center.ErrUnreachable.Error(), err}
		case err != nil:
			return notReady{what, err}
		}
		return nil
	}
}

// seen names the kinds of the conditions that the process sees, the problems first. They make no worker unready, and
// the answer, which anybody may read, names no task type.
func seen(list []condition.Condition) string {
	var kinds []string
	for _, t := range (doctor.Judgement{Findings: list}).Tallies() {
		if !slices.Contains(kinds, t.Kind) {
			kinds = append(kinds, t.Kind)
		}
	}
	return strings.Join(kinds, ", ")
}

// metrics serves those of the manager, the process, and the pools of connections for dealers.
func (w *worker) metrics(c *center.Center, mx *metrics.Metrics) http.Handler {
	sources := []prometheus.Collector{
		mx, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewDBStatsCollector(c.DB(), "roster"),
	}
	for _, d := range w.file.Data {
		sources = append(sources, collectors.NewDBStatsCollector(c.Data(d.Name).DB(), d.Name))
	}
	return metricsHandler(w.log, sources...)
}

// use adds the data databases to the center, and returns the tasks, whose dealers have their databases.
func (w *worker) use(c *center.Center) ([]manager.Task, error) {
	if err := cli.AddData(c, w.file.Connection); err != nil {
		return nil, err
	}
	tasks := make([]manager.Task, len(w.serve))
	for i, serve := range w.serve {
		tasks[i] = serve(c)
	}
	return tasks, nil
}
