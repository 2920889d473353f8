package ops

import "errors"

// ErrUnknownServer means that no registered server has the name in this environment.
var ErrUnknownServer = errors.New("unknown worker")
