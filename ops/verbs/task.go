package verbs

import (
	"context"
	"errors"
	"fmt"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/ops"
)

// PauseTask stops the work of a task type in this environment.
type PauseTask struct {
	TaskType string `arg:"TASK" of:"task" json:"-"`
}

var pauseTask = verb[PauseTask](Verb{
	Name: "task pause", Right: RightOperate,
	Short: "Pause a task type in this environment",
	Effect: "Its workers finish what they have in flight and select nothing more, until somebody resumes it. They keep " +
		"their queues. Runs stay open, and their deadlines do not change.",
	Example: "  rota task pause settle\n  rota task pause settle --own-sign TEST",
})

// Prepare implements Operation.
func (a PauseTask) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	return pauseChange(ctx, c, a.TaskType, true, pauseTask,
		Object{Past: "paused", Effect: "every worker finishes what it has in flight"})
}

// ResumeTask lets the servers of a task type go on.
type ResumeTask struct {
	TaskType string `arg:"TASK" of:"task" json:"-"`
}

var resumeTask = verb[ResumeTask](Verb{
	Name: "task resume", Right: RightOperate,
	Short:   "Resume a paused task type in this environment",
	Effect:  "Its workers go on with their queues.",
	Example: "  rota task resume settle\n  rota task resume settle --own-sign TEST",
})

// Prepare implements Operation.
func (a ResumeTask) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	return pauseChange(ctx, c, a.TaskType, false, resumeTask,
		Object{Past: "resumed"})
}

// pauseChange returns the change that begins or ends the pause of a task type.
func pauseChange(ctx context.Context, c *ops.Client, name string, paused bool, v *Verb, o Object) (*Change, error) {
	t, err := readTask(ctx, c, name)
	if err != nil {
		return nil, err
	}
	o.Name = inEnvironment(c, t.TaskType)
	o.do = done(func(ctx context.Context, actor string) error {
		return c.Roster().Operator(actor).Pause(ctx, t.TaskType, paused)
	})
	change := &Change{
		Title: v.Button() + " " + t.TaskType, TaskTypes: []string{t.TaskType}, Says: []string{v.Effect}, Objects: []Object{o},
	}
	if paused && t.Paused {
		change.Warnings = []string{t.TaskType + " is paused already."}
	}
	return change, nil
}

// WakeTask makes the workers of a task type look at once for items in queues that were empty.
type WakeTask struct {
	TaskType string   `arg:"TASK" of:"task" json:"-"`
	Keys     []string `arg:"[QUEUE...]" form:"key" json:"-" help:"queues, or numbers that belong to them; none is all queues"`
}

var wakeTask = verb[WakeTask](Verb{
	Name: "task wake", Right: RightOperate,
	Short: "Make workers look at once into queues that were empty",
	Effect: "Workers that hear hints select queues at once that were empty: on PostgreSQL all that listen, on other " +
		"databases those of a hinted task type. Nothing else is selected earlier.",
	Help: `QUEUE is the name of a queue. Where queues are numbers, it is any whole number
whose remainder is the number of the queue, such as the id of a row.`,
	Example: "  rota task wake settle\n  rota task wake settle 3 4711",
})

// Prepare implements Operation.
func (a WakeTask) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	t, err := readTask(ctx, c, a.TaskType)
	if err != nil {
		return nil, err
	}
	change := &Change{
		Title: "Wake " + t.TaskType, TaskTypes: []string{t.TaskType}, Says: []string{wakeTask.Effect},
		Objects: []Object{{Name: inEnvironment(c, t.TaskType), Past: "woken"}},
	}
	if !c.Notifies() {
		switch s, err := c.Tasks().Settings(ctx, t.TaskType); {
		case err != nil:
			return nil, err
		case !s.Hinted:
			change.Warnings = []string{
				"On this database workers hear hints only of a hinted task type: they look each sleep_time_nodata.",
			}
			return change, nil
		}
	}
	change.Objects[0].do = done(func(ctx context.Context, _ string) error { return c.Wake(ctx, t.TaskType, a.Keys...) })
	return change, nil
}

// DeleteTask deletes a task type in all environments.
type DeleteTask struct {
	TaskType string `arg:"TASK" of:"task" json:"-"`
}

var deleteTask = verb[DeleteTask](Verb{
	Name: "task delete", Right: RightChange,
	NoPage: "it deletes in all environments what nobody can bring back, and the processes must have ended before",
	Short:  "Delete a task type that no live worker serves",
	Effect: "Its settings, queues, failed items and triggers are deleted in all environments (own_sign), and its open " +
		"runs are cancelled. Events and runs stay until their retention ends.",
	Help: `The command refuses while a live worker serves the task type, or another task
type runs after it. Your own tables are not touched. Failed items are deleted
first, in steps. After an interrupt the command can be repeated.`,
	Example: "  rota task delete settle\n  rota task delete settle --yes",
})

// Prepare implements Operation.
func (a DeleteTask) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	t, err := readTask(ctx, c, a.TaskType)
	if err != nil {
		return nil, err
	}
	if err := c.Tasks().CheckDelete(ctx, t.TaskType); err != nil {
		return nil, err
	}
	databases, err := databasesOf(ctx, c, t.TaskType)
	if err != nil {
		return nil, err
	}
	says := []string{deleteTask.Effect}
	if len(databases) > 0 {
		says = append(says, "Its items and its rows of rota_fence stay in "+listDatabases(databases)+".")
	}
	change := &Change{
		Title: "Delete " + t.TaskType, TaskTypes: []string{t.TaskType},
		Says: says,
		Loses: fmt.Sprintf("delete task type %s in all environments, with its settings, queues, failed items and triggers",
			t.TaskType),
	}
	change.Objects = []Object{{Name: t.TaskType, Past: "deleted", do: done(func(ctx context.Context, actor string) error {
		report := func(items int) {
			change.step(Done{Object: t.TaskType, Text: human.Count(items, "failed item", "failed items") + " deleted so far"})
		}
		return c.Tasks().WithProgress(report).Delete(ctx, t.TaskType, actor)
	})}}
	return change, nil
}

// databasesOf returns the names of the data databases of a task type. It returns none if the settings are gone, or name
// none for a queue: the doctor reports that.
func databasesOf(ctx context.Context, c *ops.Client, taskType string) ([]string, error) {
	s, err := c.Tasks().Settings(ctx, taskType)
	if err != nil && !errors.Is(err, center.ErrUnknownTask) {
		return nil, err
	}
	names, _ := s.Databases()
	return names, nil
}

// listDatabases names data databases in a sentence.
func listDatabases(names []string) string {
	if len(names) == 1 {
		return "the data database " + names[0]
	}
	return "the data databases " + human.First(names, 5)
}

// readTask returns the task type with a name, or ErrUnknownTask.
func readTask(ctx context.Context, c *ops.Client, name string) (ops.TaskRecord, error) {
	if name == "" {
		return ops.TaskRecord{}, missing("the task type")
	}
	list, err := c.Tasks().List(ctx, name)
	if err != nil {
		return ops.TaskRecord{}, fmt.Errorf("find %w", err)
	}
	return list[0], nil
}
