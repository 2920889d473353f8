package cli

import (
	"errors"

	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// The exit codes.
const (
	ExitDone   = 0
	ExitFailed = 1 // trying again may help
	ExitUsage  = 2 // the command line or rota.yaml is wrong: trying again does not help
)

// UsageError marks an error in the command line or in rota.yaml.
type UsageError struct{ error }

// Usage returns err as a UsageError.
func Usage(err error) error { return UsageError{err} }

func (e UsageError) Unwrap() error { return e.error }

// usageErrors are the errors that only another command line can avoid.
var usageErrors = []error{ops.ErrOtherTask, runs.ErrBackfillRange, ops.ErrChoice}

func ExitCode(err error) int {
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
	{ops.ErrUnknownItem, " (see rota item list)"},
	{ops.ErrUnknownServer, " (see rota server list)"},
	{runs.ErrNoRunOrTask, " (see rota run list)"},
	{runs.ErrNoRunYet, " (see rota run submit)"},
	{runs.ErrUnknownBackfill, " (see rota run backfill list)"},
}

func Hint(err error) string {
	for _, h := range hints {
		if errors.Is(err, h.err) {
			return h.hint
		}
	}
	return ""
}
