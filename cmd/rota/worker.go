package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	_ "time/tzdata" // permit windows have time zones, and a small image has none

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/cmd/rota/internal/sqldealer"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/manager/metrics"
)

func newWorkerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run the tasks of a rota.yaml",
		Long: `Run the tasks of a rota.yaml until a signal comes. Start it as often and on as
many hosts as you like: the workers share the queues.

The first SIGTERM or SIGINT drains: what is in hand is finished, the queues are
handed over, exit 0. A second one leaves at once with exit 1.

A value comes from the flag, else from the environment (ROTA_DATABASE,
ROTA_OWN_SIGN, ROTA_HTTP, ROTA_SCHEMA), else from the file.`,
		Example: `  rota worker -c rota.yaml
  ROTA_DATABASE=postgres://app@db/shop?sslmode=verify-full rota worker
  rota worker --own-sign TEST --http 127.0.0.1:9090`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w, err := newWorker(cmd)
			if err != nil {
				return usageError{err}
			}
			return w.run(cmd.Context())
		},
	}
	addConnectionFlags(cmd)
	flags := cmd.Flags()
	flags.String("own-sign", "", "environment, where several share a database (ROTA_OWN_SIGN)")
	flags.String("http", "", "host:port to serve /livez, /readyz and /metrics on; none if empty (ROTA_HTTP)")
	flags.String("schema", "", "what to do about missing tables: auto, create or require (ROTA_SCHEMA)")
	return cmd
}

// worker is what the user wrote, found to be right.
type worker struct {
	file    *config.File
	dealers []*sqldealer.Dealer // one for each task of the file
	log     *logrus.Logger
}

// newWorker reads and checks everything before anything is touched.
func newWorker(cmd *cobra.Command) (*worker, error) {
	path := configPath(cmd)
	file, err := config.Load(path, cmd.Flags())
	if err != nil {
		return nil, err
	}
	dialect, err := center.DialectOf(anydb.URL(file.Database))
	if err != nil {
		return nil, err
	}
	w := &worker{file: file, log: newLogger(cmd.ErrOrStderr())}
	var errs []error
	for _, task := range file.Tasks {
		dealer, err := sqldealer.New(task, dialect)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", path, err))
		}
		w.dealers = append(w.dealers, dealer)
	}
	return w, errors.Join(errs...)
}

func (w *worker) run(ctx context.Context) (err error) {
	ctx, release := drainOnSignal(ctx, w.log)
	defer release()
	c, err := center.Open(ctx, anydb.URL(w.file.Database), center.Options{OwnSign: w.file.OwnSign, Schema: w.file.Schema, Logger: w.log})
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // told to leave before it had begun
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	mx := metrics.New()
	m, err := manager.New(c, manager.Config{Logger: w.log, Observer: mx, Hooks: mx.Hooks()}, w.tasks(c)...)
	if err != nil {
		return err
	}
	if w.file.HTTP != "" {
		mx.Watch(m, c)
		stop, err := serveProbes(ctx, w.file.HTTP, ready(m, c), handlerOf(mx), w.log)
		if err != nil {
			return err
		}
		defer stop()
	}
	return m.Run(ctx)
}

// ready: every task trusts itself, the schema is the program's, and the
// database takes writes.
func ready(m *manager.Manager, c *center.Center) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := m.Ready(); err != nil {
			return err
		}
		return c.CheckWrite(ctx)
	}
}

func handlerOf(mx *metrics.Metrics) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(mx, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry})
}

func (w *worker) tasks(c *center.Center) []manager.Task {
	var tasks []manager.Task
	for i, task := range w.file.Tasks {
		tasks = append(tasks, manager.Serve(task.Name, w.dealers[i].Use(c.DB()), task.Settings))
	}
	return tasks
}
