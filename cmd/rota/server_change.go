package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/plural"
)

const serverHelp = `

SERVER is a uuid; host:pid, which stands for all servers of that process; or a
host, which stands for all servers of that host. The command prints what
happens to each of them.`

// serverChange is one run of a command that changes servers.
type serverChange struct {
	out    output
	dryRun bool

	participle string // such as paused
	effect     func(f serverFuture) string
	do         func(ctx context.Context, c *center.Center, s center.ServerRecord) error
}

// serverFuture is a server that is about to change.
type serverFuture struct {
	center.ServerRecord
	others int // number of other servers that can take its queues
}

// changedServer is a server in the output of -o json and -o csv.
type changedServer struct {
	UUID         string `json:"uuid"`
	TaskType     string `json:"task_type"`
	OwnSign      string `json:"own_sign"`
	Queues       int64  `json:"queues"`        // that it owned
	OtherServers int    `json:"other_servers"` // that can take them
	Result       string `json:"result"`
}

// command completes a command that changes the servers of its argument.
func (sc *serverChange) command(cmd *cobra.Command) *cobra.Command {
	cmd.Long += serverHelp
	cmd.Args = arguments("SERVER")
	cmd.ValidArgsFunction = complete(listServers)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
			return sc.run(ctx, cmd, c, args[0])
		})
	}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &sc.out)
	cmd.Flags().BoolVar(&sc.dryRun, "dry-run", false, "show what would happen to each server and change nothing")
	return cmd
}

// run changes each of the servers, also after an error of another: a server may
// leave meanwhile.
func (sc *serverChange) run(ctx context.Context, cmd *cobra.Command, c *center.Center, name string) error {
	servers, err := c.Servers().Matching(ctx, name)
	if err != nil {
		return err
	}
	futures, err := futuresOf(ctx, c, servers)
	if err != nil {
		return err
	}
	var changed []changedServer
	var errs []error
	for _, f := range futures {
		if !sc.dryRun {
			if err := sc.do(ctx, c, f.ServerRecord); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		changed = append(changed, sc.changed(f))
	}
	if len(changed) > 0 {
		errs = append(errs, sc.out.write(cmd.OutOrStdout(), result{records: changed, text: func(screen) string { return changedText(changed) }}))
	}
	return errors.Join(errs...)
}

// futuresOf counts for each server the others of its task type that can take
// its queues. The servers that change with it cannot.
func futuresOf(ctx context.Context, c *center.Center, servers []center.ServerRecord) ([]serverFuture, error) {
	all, err := c.Servers().List(ctx, center.ServerFilter{})
	if err != nil {
		return nil, err
	}
	var futures []serverFuture
	for _, s := range servers {
		f := serverFuture{ServerRecord: s}
		for _, other := range all {
			changes := slices.ContainsFunc(servers, func(s center.ServerRecord) bool { return s.UUID == other.UUID })
			if other.TaskType == s.TaskType && other.Eligible() && !changes {
				f.others++
			}
		}
		futures = append(futures, f)
	}
	return futures, nil
}

func (sc *serverChange) changed(f serverFuture) changedServer {
	what := sc.participle
	if sc.dryRun {
		what = "would be " + what
	}
	return changedServer{f.UUID, f.TaskType, f.OwnSign, f.Queues, f.others, what + "; " + sc.effect(f)}
}

func changedText(changed []changedServer) string {
	var lines []string
	for _, s := range changed {
		lines = append(lines, escape.Text(fmt.Sprintf("%s (%s): %s", s.UUID, s.TaskType, s.Result)))
	}
	return strings.Join(lines, "\n")
}

// handOver says where the queues go that a server hands over in order. alone says what happens while no other server
// can take them.
func handOver(f serverFuture, alone string) string {
	switch {
	case f.Queues == 0:
		return "it owns no queues, and gets none until it is resumed"
	case f.others == 0:
		return fmt.Sprintf("no other server can take its %s now: %s", plural.Of(f.Queues, "queue", "queues"), alone)
	}
	return fmt.Sprintf("its %s to %s as it finishes what it has in flight",
		plural.Of(f.Queues, "queue goes", "queues go"), plural.Of(f.others, "other server", "other servers"))
}
