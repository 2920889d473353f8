package cli

import (
	"errors"
	"fmt"
	"io"

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

// Report writes an error to stderr, one line per error, and returns the exit code.
func Report(err error, stderr io.Writer) int {
	lines := escape.Errors(err)
	lines[len(lines)-1] += hint(err)
	for _, line := range lines {
		fmt.Fprintf(stderr, "rota: %s\n", redact.URLs(line)) //nolint:errcheck // stderr is the last channel
	}
	return exitCode(err)
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
