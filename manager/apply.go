package manager

import (
	"context"
	"os"
	"path/filepath"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/verbs"
)

// Apply writes to the database what the tasks state, as "rota task apply" does for a rota.yaml: each field of their
// Settings that is not zero. What they do not state stays as it is. It makes the task types that are missing. A
// deployment calls it once, beside its migrations, because a start of a worker does not change settings that the
// database has.
//
// Apply returns what was different and what was done, as text for people. It compares all tasks before it writes the
// first one. It asks nothing before it removes queues or the trigger of cron and every: ApplyDryRun says that before.
// Workers adopt the settings with their next heartbeats, and another number of queues when all have finished what they
// have in flight; Apply does not wait for that. It returns ErrChanged of package ops if an operator changed the same
// settings meanwhile, and an error that names the worker if a running one could not work by the settings. The other
// tasks are written nevertheless.
func Apply(ctx context.Context, c *center.Center, tasks ...Task) (string, error) {
	change, err := prepareApply(ctx, c, tasks)
	if err != nil {
		return "", err
	}
	done, err := change.Do(ctx, filepath.Base(os.Args[0])+"@"+hostName())
	return change.Text(done), err
}

// ApplyDryRun returns what Apply would do, as text for people. It writes nothing.
func ApplyDryRun(ctx context.Context, c *center.Center, tasks ...Task) (string, error) {
	change, err := prepareApply(ctx, c, tasks)
	if err != nil {
		return "", err
	}
	return change.Text(nil), nil
}

func prepareApply(ctx context.Context, c *center.Center, tasks []Task) (*verbs.Change, error) {
	if err := validate(tasks); err != nil {
		return nil, err
	}
	var a verbs.ApplyTasks
	for _, t := range tasks {
		a.Tasks = append(a.Tasks, ops.TaskSettings{Name: t.name, Settings: t.settings, Given: t.stated})
	}
	return a.Prepare(ctx, ops.New(c))
}
