package ops

import "errors"

var (
	// ErrMissing means that a call lacks the value of an argument.
	ErrMissing = errors.New("is missing")
	// ErrUnknownQueue means that the task type has no queue of that name in this environment.
	ErrUnknownQueue = errors.New("there is no queue of that name")
)
