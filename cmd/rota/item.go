package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

func newItemCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "item",
		Short: "See the items that have failed; retry or drop them",
	})
	cmd.AddCommand(newItemListCommand(),
		newItemChangeCommand("retry", "Try failed items again at once; dead ones live again", "to be tried again", (*center.Center).RetryItems),
		newItemChangeCommand("drop", "Forget that items have failed: they are mended, or removed, by hand", "forgotten", (*center.Center).DropItems))
	return cmd
}

func newItemListCommand() *cobra.Command {
	var o output
	var f center.ItemFilter
	state := choice{of: []string{center.ItemRetry, center.ItemDead}}
	limit := 100
	cmd := &cobra.Command{
		Use:   "list [TASK]",
		Short: "List failed items, the latest last",
		Example: `  rota item list settle
  rota item list --state DEAD --limit 1000 -o csv`,
		Args:              arguments("[TASK]"),
		ValidArgsFunction: complete(taskNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := positive("limit", limit); err != nil {
				return err
			}
			return show(cmd, o, func(ctx context.Context, c *center.Center) (reply, error) {
				f.TaskType, f.State = first(args), state.value
				if err := mustExist(ctx, c, f.TaskType); err != nil {
					return reply{}, err
				}
				items, err := c.Items(ctx, f, limit)
				return reply{items, func(s screen) string { return render(s, items, itemFields) }}, err
			})
		},
	}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &o, true)
	addChoice(cmd, &state, "state", "", "only those in this state")
	cmd.Flags().StringVar(&f.QueueID, "queue", "", "only those of this queue")
	completeFlag(cmd, "queue", queueIDs)
	cmd.Flags().IntVar(&limit, "limit", limit, "how many at the most")
	return cmd
}

type item = center.ItemRecord

var itemFields = []field[item]{
	{title: "TASK", text: func(i item) string { return i.TaskType }, spare: 2},
	{title: "QUEUE", text: func(i item) string { return i.QueueID }},
	{title: "ITEM", text: func(i item) string { return line(i.ItemKey) }},
	{title: "STATE", text: func(i item) string { return i.State }, color: byMeaning[item]},
	{title: "TRIES", text: func(i item) string { return number(i.Attempts) }, right: true},
	{title: "FIRST FAILED", text: func(i item) string { return when(i.FirstFailedAt) }, spare: 3},
	{title: "NEXT", text: nextAttempt, spare: 1},
	{title: "LAST ERROR", text: func(i item) string { return line(i.LastError) }, free: true},
}

func nextAttempt(i item) string {
	if i.NextAttemptAt == nil || i.State == center.ItemDead {
		return "-"
	}
	return when(*i.NextAttemptAt)
}

// changeItems is RetryItems or DropItems.
type changeItems func(c *center.Center, ctx context.Context, taskType, actor string, keys ...string) (int, error)

func newItemChangeCommand(verb, short, done string, change changeItems) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:               verb + " TASK ITEM... | TASK --all",
		Short:             short,
		Example:           fmt.Sprintf("  rota item %[1]s settle 4711 4712\n  rota item %[1]s settle --all", verb),
		Args:              arguments("TASK", "[ITEM...]"),
		ValidArgsFunction: complete(taskNames, itemKeys),
		RunE: func(cmd *cobra.Command, args []string) error {
			keys := args[1:]
			if all == (len(keys) > 0) {
				return usageError{fmt.Errorf("%s wants the keys of items, or --all (see %[1]s --help)", cmd.CommandPath())}
			}
			return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
				if err := mustExist(ctx, c, args[0]); err != nil {
					return err
				}
				if verb == "drop" {
					if err := confirm(cmd, dropText(args[0], keys)); err != nil {
						return err
					}
				}
				n, err := change(c, ctx, args[0], actor(), keys...)
				if err != nil {
					return err
				}
				return changedItems(cmd, args[0]+"$"+c.OwnSign(), n, len(keys), done)
			})
		},
	}
	addRosterFlags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "all that have failed")
	if verb == "drop" {
		addYes(cmd)
	}
	return cmd
}

// changedItems tells what was done, and when keys were given that have no row.
func changedItems(cmd *cobra.Command, task string, n, wanted int, done string) error {
	if n < wanted {
		return fmt.Errorf("%s: %d of %s not failed; %s %s", task, wanted-n, plural(wanted, "item has", "items have"), plural(n, "is", "are"), done)
	}
	cmd.Printf("%s: %s %s\n", task, plural(n, "item is", "items are"), done)
	return nil
}

func dropText(task string, keys []string) string {
	if len(keys) == 0 {
		return "delete the records of all failed items of " + task
	}
	return fmt.Sprintf("delete the records of %s of %s", plural(len(keys), "failed item", "failed items"), task)
}
