package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/redact"
	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/verbs"
	"github.com/dutyrota/rota/runs"
)

// The exit codes.
const (
	ExitFailed = 1 // trying again may help
	ExitUsage  = 2 // the command line or rota.yaml is wrong: trying again does not help
)

// UsageError marks an error in the command line or in rota.yaml.
type UsageError struct{ error }

// Usage returns err as a UsageError.
func Usage(err error) error { return UsageError{err} }

func (e UsageError) Unwrap() error { return e.error }

// usageErrors are the errors that only another command line can avoid.
var usageErrors = []error{ops.ErrOtherTask, runs.ErrBackfillRange, verbs.ErrChoice}

// Report writes the error of a command to stderr, one line per error, and returns the exit code. Command lines in it
// are for the environment of the command. The command may be nil.
func Report(cmd *cobra.Command, err error, stderr io.Writer) int {
	lines, ownSign := escape.Errors(err), ownSignOf(cmd)
	lines[len(lines)-1] += hint(err)
	for _, line := range lines {
		if line = redact.URLs(line); !strings.HasSuffix(line, "--help)") {
			line = ops.CommandLines(ownSign, line)
		}
		fmt.Fprintf(stderr, "rota: %s\n", line) //nolint:errcheck // stderr is the last channel
	}
	return exitCode(err)
}

// ownSignOf returns the environment that a command works in; empty if it has none, or its connection cannot be read.
func ownSignOf(cmd *cobra.Command) string {
	if cmd == nil || cmd.Flags().Lookup("own-sign") == nil || cmd.Flags().Lookup("config") == nil {
		return ""
	}
	c, err := ReadConnection(cmd)
	if err != nil {
		return ""
	}
	return c.OwnSign
}

func exitCode(err error) int {
	if errors.As(err, new(UsageError)) {
		return ExitUsage
	}
	for _, sentinel := range usageErrors {
		if errors.Is(err, sentinel) {
			return ExitUsage
		}
	}
	return ExitFailed
}

// hints names for an error the command that shows what the user can write
// instead.
var hints = []struct {
	err  error
	hint string
}{
	{verbs.ErrUnknownItem, " (see rota item list)"},
	{ops.ErrUnknownServer, " (see rota worker list)"},
	{runs.ErrNoRunOrTask, " (see rota run list)"},
	{runs.ErrNoRunYet, " (see rota run submit)"},
	{runs.ErrUnknownBackfill, " (see rota run backfill list)"},
}

func hint(err error) string {
	for _, h := range hints {
		if errors.Is(err, h.err) {
			return h.hint
		}
	}
	return ""
}
