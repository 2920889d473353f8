package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/ops"
)

// completeTimeout bounds how long the shell waits for completions.
const completeTimeout = 2 * time.Second

// Lister returns the values that an argument or a flag can have. args are the
// arguments before it. A value may be followed by a tab and a description.
type Lister func(ctx context.Context, c *ops.Client, args []string) ([]string, error)

// completion has the type that cobra wants.
type completion = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

// complete completes each argument with its lister.
func complete(arguments ...Lister) completion {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(arguments) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completions(cmd, arguments[len(args)], args, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteFlag completes a flag's value.
func CompleteFlag(cmd *cobra.Command, flag string, list Lister) {
	// fails for unknown flags only
	_ = cmd.RegisterFlagCompletionFunc(flag,
		func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			return completions(cmd, list, args, typed), cobra.ShellCompDirectiveNoFileComp
		})
}

// completions returns the values that start with what was typed. It drops
// errors: the shell would print them into the user's command line. It drops
// values with control characters too: escaped, they would name nothing.
func completions(cmd *cobra.Command, list Lister, args []string, typed string) (matches []string) {
	ctx, cancel := context.WithTimeout(context.Background(), completeTimeout)
	defer cancel()
	conn, err := ReadConnection(cmd)
	if err != nil {
		return nil
	}
	c, err := openConnection(ctx, conn)
	if err != nil {
		return nil
	}
	defer c.Close()
	values, err := list(ctx, c, args)
	if err != nil {
		return nil
	}
	for _, v := range values {
		value, description, described := strings.Cut(v, "\t")
		if !strings.HasPrefix(value, typed) || !escape.Safe(value) {
			continue
		}
		if described {
			value += "\t" + escape.Text(description)
		}
		matches = append(matches, value)
	}
	return matches
}
