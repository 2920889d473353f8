package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
)

// addRosterFlags adds the flags of commands that work on a roster.
func addRosterFlags(cmd *cobra.Command) {
	addConnectionFlags(cmd)
	cmd.Flags().String("own-sign", "", "environment, where several share a database (ROTA_OWN_SIGN)")
}

// withRoster opens the roster for one command. It never makes the tables.
func withRoster(cmd *cobra.Command, f func(ctx context.Context, c *center.Center) error) (err error) {
	c, err := openRoster(cmd.Context(), cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return f(cmd.Context(), c)
}

func openRoster(ctx context.Context, cmd *cobra.Command) (*center.Center, error) {
	conn, err := loadConnection(cmd)
	if err != nil {
		return nil, err
	}
	if _, err := center.DialectOf(anydb.URL(conn.Database)); err != nil {
		return nil, usageError{err}
	}
	return center.Open(ctx, anydb.URL(conn.Database), center.Options{OwnSign: conn.OwnSign, Schema: center.SchemaRequire})
}

// actor says in events who did it: user@host.
func actor() string {
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "?"
	}
	return name + "@" + host
}

// addYes adds --yes to a command that deletes something.
func addYes(cmd *cobra.Command) {
	cmd.Flags().BoolP("yes", "y", false, "do not ask")
}

// errNotDone is an answer other than yes.
var errNotDone = errors.New("nothing was done")

// confirm asks before something is deleted, unless --yes was given. Without a terminal nobody can answer.
func confirm(cmd *cobra.Command, what string) error {
	if yes, err := cmd.Flags().GetBool("yes"); err != nil || yes {
		return err
	}
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !isTerminal(in) {
		return usageError{fmt.Errorf("this will %s: say --yes (there is no terminal to ask on)", what)}
	}
	ask(cmd.ErrOrStderr(), fmt.Sprintf("This will %s. Go on? [y/N] ", what))
	said, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		ask(cmd.ErrOrStderr(), "\n") // Ctrl-D leaves the cursor behind the question
	}
	if said = strings.ToLower(strings.TrimSpace(said)); err != nil || said != "y" && said != "yes" {
		return errNotDone
	}
	return nil
}

// ask breaks lines between words.
func ask(out io.Writer, question string) {
	if width := screenOf(out).width; len(question) > width && width > 0 {
		question = text.WrapSoft(question, width)
	}
	fmt.Fprint(out, question) //nolint:errcheck // no answer is an answer
}

// arguments checks their number: the names of those that must be there, in [] those that may. The last may end
// in "..." for several.
func arguments(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		least, most := 0, len(names)
		for _, name := range names {
			if !strings.HasPrefix(name, "[") {
				least++
			}
			if strings.HasSuffix(strings.Trim(name, "[]"), "...") {
				most = len(args)
			}
		}
		if len(args) < least {
			return usageError{fmt.Errorf("%s wants %s (see %[1]s --help)", cmd.CommandPath(), strings.Join(names[len(args):], " "))}
		}
		if len(args) > most {
			return usageError{fmt.Errorf("%s takes no argument %q (see %[1]s --help)", cmd.CommandPath(), args[most])}
		}
		return nil
	}
}

// first is the first argument, if there is one.
func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// mustExist refuses the name of a task type that is not there. No name is all of them.
func mustExist(ctx context.Context, c *center.Center, task string) error {
	if task == "" {
		return nil
	}
	names, err := c.TaskNames(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(names, task) {
		return fmt.Errorf("%s: %w", task, center.ErrUnknownTask)
	}
	return nil
}

// resolveServer finds the server that somebody means: its uuid, or a beginning that no other has.
func resolveServer(ctx context.Context, c *center.Center, name string) (center.ServerRecord, error) {
	servers, err := c.Servers(ctx, center.ServerFilter{})
	if err != nil {
		return center.ServerRecord{}, err
	}
	var found []center.ServerRecord
	for _, s := range servers {
		if s.UUID == name {
			return s, nil
		}
		if strings.HasPrefix(s.UUID, name+":") {
			found = append(found, s)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return center.ServerRecord{}, fmt.Errorf("there is no server %s in own_sign %s (see rota server list)", name, c.OwnSign())
	}
	var names []string
	for _, s := range found {
		names = append(names, s.UUID+" ("+s.TaskType+")")
	}
	return center.ServerRecord{}, usageError{fmt.Errorf("server %s may be %s", name, alternatives(names))}
}
