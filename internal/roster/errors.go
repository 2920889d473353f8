package roster

import "errors"

// Callers distinguish these errors with errors.Is.
var (
	// ErrFenced means that a queue has another owner or epoch by now, or is gone.
	ErrFenced = errors.New("fenced: the queue has another owner or epoch by now")

	// ErrGone means that the row of the server is gone: the server has left, or was expired. Its uuid is never used again.
	ErrGone = errors.New("the server's row is gone")

	// errNodeLags means that the node that a heartbeat reached has not applied what this process wrote on another node.
	errNodeLags = errors.New("the node of the cluster lags behind this process")

	// ErrChanged means that another operator or worker has changed the row since the caller compared it.
	ErrChanged = errors.New("it has changed meanwhile: begin again")

	// ErrUnknownTask means that the task type has no row.
	ErrUnknownTask = errors.New("unknown task type")
)
