package workercmd

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/cmd/rota/internal/daemon"
	"github.com/dutyrota/rota/cmd/rota/internal/redact"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/witness"
	"github.com/dutyrota/rota/ops"
)

// defaultWitnessDir is the directory that the unit files of the documentation make.
const defaultWitnessDir = "/run/rota"

// NewWitness returns the command rota witness.
func NewWitness() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "witness",
		Short: "Expire the workers of this host as soon as their processes end",
		Long: `Expire the workers of this host as soon as their processes end, until a signal.

Workers with a witness directory do this for each other: those of the same task
type take over at once. Run this command, once per host, where a task type has a
single worker on the host: it lets the workers of other hosts take over with
their next heartbeats, and not after judge_dead_interval.

A worker counts as ended when nobody holds the lock on its file in the directory
any more. The kernel releases the lock when the process has ended, and all
processes that it has started. The directory must be on tmpfs, ext4, xfs or
btrfs. A container takes part if the directory is a volume of the host, and the
container runs on the host's own kernel. Do not use it where running virtual
machines are cloned, or processes are checkpointed and restored.

It needs the rights of a worker in the database. It serves all environments of
the database, and needs Linux.`,
		Example: `  rota witness --database-file /etc/rota/database-url
  rota witness -c rota.yaml --witness-dir /dev/shm/rota`,
		Args: cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.WithRoster(cmd, func(ctx context.Context, c *ops.Client) error {
				return runWitness(ctx, c, dir, daemon.NewLogger(cmd.ErrOrStderr(), redact.URLs))
			})
		},
	}
	cli.AddConnectionFlags(cmd)
	cmd.Flags().StringVar(&dir, "witness-dir", defaultWitnessDir, "the directory that the workers of this host use")
	return cmd
}

// runWitness expires the servers of ended processes until a signal.
func runWitness(ctx context.Context, c *ops.Client, path string, log *logrus.Logger) error {
	dir, err := witness.Open(path)
	if err != nil {
		return err
	}
	ctx, stop := cli.UntilSignal(ctx)
	defer stop()
	defer daemon.NotifySystemd(ctx.Done(), func() error { return nil }, log)()
	found := make(chan struct{}, 1)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		dir.Watch(ctx, nil, func(err error) {
			if err != nil {
				log.WithError(err).Error("the witness directory cannot be read; trying again")
				return
			}
			select {
			case found <- struct{}{}:
			default:
			}
		})
	}()
	defer func() { <-watched }()
	log.Infof("watching %s", path)
	w := ender{c: c, dir: dir, log: log}
	for again := false; ; {
		var retry <-chan time.Time
		if again {
			retry = time.After(witnessRetry)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-found:
		case <-retry:
		}
		again = !w.expire(ctx)
	}
}

// witnessRetry is the pause after a failure. The other servers expire the server after judge_dead_interval anyway.
const witnessRetry = time.Second

// ender expires the servers of processes that have ended.
type ender struct {
	c      *ops.Client
	dir    *witness.Directory
	log    *logrus.Logger
	failed bool // the last attempt
}

// expire reports whether it has succeeded.
func (e *ender) expire(ctx context.Context) bool {
	ended, err := e.dir.Dead()
	n := 0
	if err == nil {
		n, err = e.c.Roster().ExpireEnded(ctx, ended, cli.AtHost("witness"))
	}
	if n > 0 {
		e.log.Infof("%s expired: the process has ended", human.Count(int64(n), "worker", "workers"))
	}
	if err != nil && !e.failed && ctx.Err() == nil {
		e.log.WithError(err).Error("workers whose processes have ended are not expired; trying again")
	}
	e.failed = err != nil
	return !e.failed
}
