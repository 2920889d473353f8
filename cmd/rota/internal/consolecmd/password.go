package consolecmd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/console"
)

func newConsolePasswordCommand() *cobra.Command {
	var rights string
	cmd := &cobra.Command{
		Use:   "password NAME",
		Short: "Make a line for the passwords of the console",
		Long: `Ask for a password, and print a line for the file of rota console --passwords.

On a terminal the password is asked for twice, and not shown. Otherwise it is
the first line of the standard input. The file holds bcrypt hashes: keep it from
people who could try many passwords.

The rights are look, operate (pause, resume, drain, retry, submit: what another
click undoes) and change (settings, queues, triggers, and dropping items).`,
		Example: `  rota console password ann >> people
  rota console password bob --rights look,operate >> people
  pwgen 20 1 | rota console password ci --rights look >> people`,
		Args: cli.Arguments("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := passwordRights(rights)
			if err != nil {
				return cli.Usage(err)
			}
			password, err := readPassword(cmd)
			if err != nil {
				return err
			}
			line, err := console.PasswordLine(args[0], password, list...)
			if err != nil {
				return cli.Usage(err)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), line)
			return err
		},
	}
	cmd.Flags().StringVar(&rights, "rights", "", "`LIST` of look, operate and change; all if empty")
	return cmd
}

func passwordRights(text string) ([]console.Right, error) {
	if text == "" {
		return nil, nil
	}
	list, err := console.ParseRights(text)
	if err != nil {
		return nil, fmt.Errorf("--rights: %w", err)
	}
	return list, nil
}

// readPassword asks on the terminal, or reads the first line of the input.
func readPassword(cmd *cobra.Command) (string, error) {
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("read the password: %w", err)
		}
		return strings.TrimRight(line, "\r\n"), nil
	}
	first, err := askHidden(cmd, in, "Password: ")
	if err != nil {
		return "", err
	}
	second, err := askHidden(cmd, in, "Again: ")
	if err == nil && first != second {
		err = errors.New("the two passwords differ")
	}
	return first, err
}

func askHidden(cmd *cobra.Command, in *os.File, prompt string) (string, error) {
	cmd.PrintErr(prompt)
	text, err := term.ReadPassword(int(in.Fd()))
	cmd.PrintErrln()
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	return string(text), nil
}
