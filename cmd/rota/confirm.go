package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/dutyrota/rota/internal/escape"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
)

// errNotConfirmed is returned for an answer other than yes.
var errNotConfirmed = errors.New("not confirmed; nothing was changed")

// addYes adds --yes to a command that deletes something.
func addYes(cmd *cobra.Command) {
	cmd.Flags().BoolP("yes", "y", false, "do not ask for confirmation")
}

// confirm asks for confirmation on the terminal, unless --yes was given.
// Without a terminal it refuses. action says what the command is about to do,
// such as "delete the trigger nightly".
func confirm(cmd *cobra.Command, action string) error {
	if yes, err := cmd.Flags().GetBool("yes"); err != nil || yes {
		return err
	}
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !isTerminal(in) {
		return usageError{fmt.Errorf("%s: not confirmed: add --yes, as there is no terminal to ask on", action)}
	}
	if !askYes(in, cmd.ErrOrStderr(), fmt.Sprintf("About to %s. Continue? [y/N] ", action)) {
		return fmt.Errorf("%s: %w", action, errNotConfirmed)
	}
	return nil
}

func askYes(in io.Reader, out io.Writer, question string) bool {
	question = escape.Text(question)
	if width := screenOf(out).width; len(question) > width && width > 0 {
		question = text.WrapSoft(question, width)
	}
	fmt.Fprint(out, question) //nolint:errcheck // an unanswered question is a no
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		fmt.Fprintln(out) //nolint:errcheck // Ctrl-D leaves the cursor behind the question
		return false
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
