package processor

import "context"

type runKey struct{}

// WithRun returns a context that carries a run, for RunOf. Package manager calls it for the contexts of Execute; a test
// of a dealer may call it too.
func WithRun(ctx context.Context, r *Run) context.Context { return context.WithValue(ctx, runKey{}, r) }

// RunOf returns the run whose items Execute works on; false if the task type is of mode CONTINUOUS, or ctx is no context
// of Execute. Select finds the run in Selection.Queue. The caller must not change the run.
func RunOf(ctx context.Context) (*Run, bool) {
	r, ok := ctx.Value(runKey{}).(*Run)
	return r, ok
}
