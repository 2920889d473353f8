package main

import (
	"errors"

	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// The exit codes.
const (
	exitDone   = 0
	exitFailed = 1 // trying again may help
	exitUsage  = 2 // the command line or rota.yaml is wrong: trying again does not help
)

// usageError marks an error in the command line or in rota.yaml.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// usageErrors are the errors that only another command line can avoid.
var usageErrors = []error{ops.ErrOtherTask, runs.ErrBackfillRange, ops.ErrChoice}

func exitCode(err error) int {
	if errors.As(err, new(usageError)) {
		return exitUsage
	}
	for _, sentinel := range usageErrors {
		if errors.Is(err, sentinel) {
			return exitUsage
		}
	}
	return exitFailed
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

func hint(err error) string {
	for _, h := range hints {
		if errors.Is(err, h.err) {
			return h.hint
		}
	}
	return ""
}
