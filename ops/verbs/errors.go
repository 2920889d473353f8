package verbs

import (
	"errors"
	"fmt"
)

var (
	// ErrMissing means that a call lacks the value of an argument.
	ErrMissing = errors.New("is missing")
	// ErrChoice means that a call names items and means all of them, or does neither.
	ErrChoice = errors.New("give either the keys of failed items or all of them")
	// ErrUnknownItem means that no failed item of the task type has the key in this environment.
	ErrUnknownItem = errors.New("there is no such failed item")
	// ErrUnknownQueue means that the task type has no queue of that name in this environment.
	ErrUnknownQueue = errors.New("there is no queue of that name")
)

// given returns an error if a value is empty.
func given(what, value string) error {
	if value == "" {
		return missing(what)
	}
	return nil
}

func missing(what string) error { return fmt.Errorf("%s %w", what, ErrMissing) }
