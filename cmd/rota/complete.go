package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

// candidates are what a shell may complete an argument to.
type candidates func(ctx context.Context, c *center.Center, args []string) ([]string, error)

// completion is what cobra calls.
type completion = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

// completeTimeout is how long somebody waits for a Tab.
const completeTimeout = 2 * time.Second

// complete asks the roster for each argument in its turn; the last is for all further ones. It never complains:
// a shell is no place for that.
func complete(arguments ...candidates) completion {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(arguments) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return fitting(cmd, arguments[len(args)], args, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// fitting asks the roster for the candidates that begin with what was typed.
func fitting(cmd *cobra.Command, of candidates, args []string, typed string) (found []string) {
	ctx, cancel := context.WithTimeout(context.Background(), completeTimeout)
	defer cancel()
	c, err := openRoster(ctx, cmd)
	if err != nil {
		return nil
	}
	defer c.Close()
	list, err := of(ctx, c, args)
	if err != nil {
		return nil
	}
	for _, entry := range list {
		if strings.HasPrefix(entry, typed) {
			found = append(found, entry)
		}
	}
	return found
}

func taskNames(ctx context.Context, c *center.Center, _ []string) ([]string, error) {
	return c.TaskNames(ctx)
}

// serverUUIDs are told with what they are: a shell shows it beside them.
func serverUUIDs(ctx context.Context, c *center.Center, _ []string) (list []string, err error) {
	servers, err := c.Servers(ctx, center.ServerFilter{})
	for _, s := range servers {
		list = append(list, s.UUID+"\t"+s.TaskType+", "+strings.ToLower(stateOf(s)))
	}
	return list, err
}

// queueIDs are those of the task type in the first argument.
func queueIDs(ctx context.Context, c *center.Center, args []string) (list []string, err error) {
	queues, err := c.Queues(ctx, center.QueueFilter{TaskType: first(args)})
	for _, q := range queues {
		list = append(list, q.QueueID)
	}
	return list, err
}

func itemKeys(ctx context.Context, c *center.Center, args []string) (list []string, err error) {
	items, err := c.Items(ctx, center.ItemFilter{TaskType: first(args)}, 1_000)
	for _, i := range items {
		list = append(list, i.ItemKey)
	}
	return list, err
}

// hostNames are those of the servers.
func hostNames(ctx context.Context, c *center.Center, args []string) (list []string, err error) {
	servers, err := c.Servers(ctx, center.ServerFilter{TaskType: first(args)})
	for _, s := range servers {
		if !slices.Contains(list, s.HostName) {
			list = append(list, s.HostName)
		}
	}
	return list, err
}

// completeFlag completes a flag's value, perhaps by the arguments that are there.
func completeFlag(cmd *cobra.Command, flag string, of candidates) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) { // fails for unknown flags only
		return fitting(cmd, of, args, typed), cobra.ShellCompDirectiveNoFileComp
	})
}
