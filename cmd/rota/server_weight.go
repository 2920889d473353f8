package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/plural"
)

func newServerWeightCommand() *cobra.Command {
	var weight int
	sc := &serverChange{
		effect: func(f serverFuture) string { return weightEffect(f, weight) },
		do: func(ctx context.Context, c *center.Center, s center.ServerRecord) error {
			return c.Servers().SetWeight(ctx, s.UUID, weight, actor())
		},
	}
	cmd := sc.command(&cobra.Command{
		Use:   "weight SERVER WEIGHT",
		Short: "Give a server more or fewer queues than others",
		Long: `Give a server more or fewer queues than others. The servers of a task type own
queues in proportion to their weights, within one queue. A server of weight 0
owns only queues that no other server may own, or has room for. If all have
weight 0, they count alike.

The weight holds until the server leaves. Its process then joins with the
weight of its settings, which is 1 if they say nothing (rota worker --weight).
rota plan TASK --weight SERVER=WEIGHT shows which queues would move.`,
		Example: "  rota server weight web1 3                 all servers of a host\n  rota server weight web1:4711 0",
	})
	cmd.Args = arguments("SERVER", "WEIGHT")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if weight, err = parseWeight(args[1]); err != nil {
			return usageError{err}
		}
		sc.participle = fmt.Sprintf("given weight %d", weight)
		return run(cmd, args)
	}
	return cmd
}

func parseWeight(text string) (int, error) {
	weight, err := strconv.Atoi(text)
	if err != nil || center.CheckWeight(weight) != nil {
		return 0, fmt.Errorf("weight (%s) must be a whole number from 0 to %d", text, center.MaxWeight)
	}
	return weight, nil
}

func weightEffect(f serverFuture, weight int) string {
	switch {
	case int64(weight) == f.Weight:
		return "it had that before"
	case weight > 0:
		return fmt.Sprintf("it had weight %d and owns %s", f.Weight, plural.Of(f.Queues, "queue", "queues"))
	case f.Queues == 0:
		return "it owns no queues, and gets only those that no other server may own"
	}
	return handOver(f, "it keeps them")
}
