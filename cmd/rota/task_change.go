package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

// taskChange shows differences of settings and writes them: "rota task apply" and "rota task set".
type taskChange struct {
	cmd    *cobra.Command
	out    output
	dryRun bool
}

// addFlags adds the flags of a change.
func (a *taskChange) addFlags(cmd *cobra.Command) {
	a.cmd = cmd
	cmd.Flags().BoolVar(&a.dryRun, "dry-run", false, "show the differences and write nothing")
	addOutputFlags(cmd, &a.out)
	addYes(cmd)
}

// apply shows the differences, asks for confirmation of losses, and writes.
func (a *taskChange) apply(ctx context.Context, c *center.Center, diffs []center.SettingsDiff) error {
	if a.out.isTable() {
		text := diffsText(screenOf(a.cmd.OutOrStdout()), diffs, c.OwnSign(), a.dryRun)
		if _, err := fmt.Fprintln(a.cmd.OutOrStdout(), text); err != nil {
			return err
		}
	}
	if !a.dryRun {
		if err := a.write(ctx, c, diffs); err != nil {
			return err
		}
	}
	if a.out.isTable() {
		return nil
	}
	return a.out.write(a.cmd.OutOrStdout(), result{records: changeRecords(diffs, c.OwnSign(), !a.dryRun)})
}

func (a *taskChange) write(ctx context.Context, c *center.Center, diffs []center.SettingsDiff) error {
	if losses := lossTexts(diffs); len(losses) > 0 {
		if err := confirm(a.cmd, strings.Join(losses, ", and ")); err != nil {
			return err
		}
	}
	for _, d := range diffs {
		if err := c.Tasks().Apply(ctx, d, actor()); err != nil {
			return err
		}
	}
	return nil
}
