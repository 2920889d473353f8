package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/plural"
	"github.com/dutyrota/rota/internal/records"
)

// itemChange is Retry or Drop of the failed items.
type itemChange func(items *center.Items, ctx context.Context, taskType, actor string, keys ...string) (int, error)

func newItemRetryCommand() *cobra.Command {
	return itemCommand(&cobra.Command{
		Use:   "retry TASK ITEM... | TASK --all",
		Short: "Retry failed items at once, dead items included",
		Example: `  rota item retry settle 4711 4712
  rota item retry settle --all`,
	}, (*center.Items).Retry, "scheduled for a retry", false)
}

func newItemDropCommand() *cobra.Command {
	return itemCommand(&cobra.Command{
		Use:   "drop TASK ITEM... | TASK --all",
		Short: "Delete the records of failed items",
		Long: `Delete the records of failed items, after the items were repaired or removed by
hand. An item whose row still matches select is executed again as if it had
never failed.`,
		Example: `  rota item drop settle 4711 4712
  rota item drop settle --all --yes`,
	}, (*center.Items).Drop, "dropped", true)
}

func itemCommand(cmd *cobra.Command, change itemChange, done string, ask bool) *cobra.Command {
	var all bool
	var o output
	cmd.Args = arguments("TASK", "[ITEM...]")
	cmd.ValidArgsFunction = complete(listTasks, listItems)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		keys := args[1:]
		if all == (len(keys) > 0) {
			return usageError{fmt.Errorf("%s: give either the keys of items or --all (see %s --help)", subcommand(cmd), cmd.CommandPath())}
		}
		return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
			if err := requireTask(ctx, c, args[0]); err != nil {
				return err
			}
			if ask {
				found, err := requireItems(ctx, c, args[0], keys)
				if err != nil {
					return err
				}
				if err := confirm(cmd, dropText(args[0], found)); err != nil {
					return err
				}
			}
			task := args[0] + "$" + c.OwnSign()
			items := c.Items().WithProgress(itemProgress(cmd, task, done))
			n, err := change(items, ctx, args[0], actor(), keys...)
			if err != nil {
				return err
			}
			return reportItems(cmd, o, task, n, len(keys), done)
		})
	}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &o)
	cmd.Flags().BoolVar(&all, "all", false, "all failed items")
	if ask {
		addYes(cmd)
	}
	return cmd
}

// requireItems returns the keys that are those of failed items, and an error if none of the keys is, before the command asks
// whether to delete them.
func requireItems(ctx context.Context, c *center.Center, taskType string, keys []string) (found []string, err error) {
	for _, key := range keys {
		list, err := c.Items().List(ctx, center.ItemFilter{TaskType: taskType, Key: key}, 1)
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			found = append(found, key)
		}
	}
	if len(keys) > 0 && len(found) == 0 {
		return nil, fmt.Errorf("%s$%s: there is no such failed item: %s (see rota item list %s)", taskType, c.OwnSign(), strings.Join(keys, ", "), taskType)
	}
	return found, nil
}

// itemProgress returns a function that writes to stderr how many items of a long operation are done.
func itemProgress(cmd *cobra.Command, task, done string) func(items int) {
	return func(items int) {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s %s so far\n", task, plural.Of(items, "item", "items"), done) //nolint:errcheck // stderr is the last channel
	}
}

// reportItems returns an error if some of the wanted keys have no record.
func reportItems(cmd *cobra.Command, o output, task string, n, wanted int, done string) error {
	if n < wanted {
		return fmt.Errorf("%s: %d of %s not found among the failed items; %d %s", task, wanted-n, plural.Of(wanted, "item", "items"), n, done)
	}
	return o.done(cmd, task, plural.Of(n, "item", "items")+" "+done, records.M("items", n))
}

func dropText(task string, keys []string) string {
	if len(keys) == 0 {
		return "delete the records of all failed items of " + task
	}
	return fmt.Sprintf("delete the records of %s of %s", plural.Of(len(keys), "failed item", "failed items"), task)
}
