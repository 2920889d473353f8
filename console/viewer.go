package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// viewer reads the roster for one request: what its actor may look at, through the cache that all viewers share.
type viewer struct {
	*console
	Actor Actor

	until    time.Time // until when it waits for the database; zero: not at all
	complete bool      // without all parts there is no answer
	parts    map[string]part

	Err error // why there is no answer, after which no query runs
}

// patient returns the viewer of an answer that is of no use without all its parts: of records, and of a change.
func (v *viewer) patient() *viewer {
	w := *v
	w.until, w.complete, w.parts = time.Now().Add(longPatience), true, nil
	return &w
}

// load returns the result of a query of the environment of the viewer. key names the query with its parameters, and
// begins with the name of the part of the page. While the database does not answer, load returns the result of the last
// success. Without one it returns no value, and the part is not known.
func load[T any](ctx context.Context, v *viewer, key string, query func(context.Context) (T, error)) (value T) {
	if v.Err != nil {
		return value
	}
	p := v.cache.get(ctx, request{v.partKey(key), v.life(), readLimit, func(ctx context.Context) (any, error) {
		return query(ctx)
	}}, time.Until(v.until))
	v.note(key, p)
	if p.err != nil && statusOf(p.err, http.StatusServiceUnavailable) != http.StatusServiceUnavailable {
		v.Err = p.err // the database has answered: there is no such thing
		return value
	}
	value, known := p.value.(T)
	if !known && v.complete {
		v.Err = cmp.Or(p.err, errChecking)
	}
	return value
}

// loadRows returns the rows that load returns, of the task types that the actor may look at.
func loadRows[T any](ctx context.Context, v *viewer, key string, taskTypeOf func(T) string,
	query func(context.Context) ([]T, error),
) []T {
	return visible(v, load(ctx, v, key, query), taskTypeOf)
}

// latest says how to load the latest rows of a list, the newest first.
type latest[T any] struct {
	key        string // names the query, without the task type
	taskType   string // of the rows; empty for all
	limit      int
	taskTypeOf func(T) string
	compare    func(a, b T) int // puts the newer row first
	query      func(ctx context.Context, taskType string) ([]T, error)
}

// load returns the rows that the actor may see. If the latest rows of all task types have some that it may not see, it
// asks for those of each task type that it may look at: otherwise newer rows of others could hide all of them.
func (l latest[T]) load(ctx context.Context, v *viewer) []T {
	of := func(taskType string) []T {
		return load(ctx, v, l.key+"\x00"+taskType, func(ctx context.Context) ([]T, error) { return l.query(ctx, taskType) })
	}
	all := of(l.taskType)
	rows := visible(v, all, l.taskTypeOf)
	if l.taskType != "" || len(all) < l.limit || len(rows) == len(all) {
		return rows
	}
	rows = slices.DeleteFunc(slices.Clone(rows), func(row T) bool { return l.taskTypeOf(row) != "" })
	for _, t := range v.tasks(ctx) {
		rows = append(rows, of(t.TaskType)...)
	}
	slices.SortStableFunc(rows, l.compare)
	return rows[:min(l.limit, len(rows))]
}

// partKey returns the key of a query in the cache, which all environments share.
func (v *viewer) partKey(key string) string { return v.client.OwnSign() + "\x00" + key }

// life returns how long results serve all viewers.
func (v *viewer) life() time.Duration {
	queues := int64(0)
	for _, t := range v.knownTasks() {
		queues += t.QueueTotal
	}
	if queues > manyQueues {
		return longLife
	}
	return shortLife
}

// knownTasks returns the task types that were read last, without running a query.
func (v *viewer) knownTasks() []ops.TaskRecord {
	p, _ := v.cache.find(v.partKey("tasks"))
	tasks, _ := p.value.([]ops.TaskRecord)
	return tasks
}

// visible returns the rows of the task types that the actor may look at. Rows of no task type need the right to look
// at all.
func visible[T any](v *viewer, rows []T, taskTypeOf func(T) string) []T {
	known := map[string]bool{}
	hidden := func(row T) bool {
		taskType := taskTypeOf(row)
		may, asked := known[taskType]
		if !asked {
			may = v.Actor.may(Look, taskType)
			known[taskType] = may
		}
		return !may
	}
	if !slices.ContainsFunc(rows, hidden) {
		return rows
	}
	return slices.DeleteFunc(slices.Clone(rows), hidden)
}

// mayEnter reports whether the actor may see a page about a task type, or one about all of them, which has the rows
// that the actor may see.
func (v *viewer) mayEnter(ctx context.Context, taskType string) bool {
	if v.Actor.may(Look, taskType) {
		return true
	}
	if taskType != "" {
		return false
	}
	return len(v.tasks(ctx)) > 0
}

// hide replaces an error that says what there is, for an actor who may not look at all of it.
func (v *viewer) hide(err error) error {
	if errors.Is(err, errElsewhere) {
		return err
	}
	if errors.Is(err, errNotAllowed) || statusOf(err, 0) == http.StatusNotFound && !v.Actor.may(Look, "") {
		return errNotAllowed
	}
	return err
}

// tasks returns all task types.
func (v *viewer) tasks(ctx context.Context) []ops.TaskRecord {
	return loadRows(ctx, v, "tasks", func(t ops.TaskRecord) string { return t.TaskType },
		func(ctx context.Context) ([]ops.TaskRecord, error) { return v.client.Tasks().List(ctx, "") })
}

// taskNamed returns a task type, if the task types are known.
func (v *viewer) taskNamed(ctx context.Context, name string) ops.TaskRecord {
	tasks := v.tasks(ctx)
	if i := slices.IndexFunc(tasks, func(t ops.TaskRecord) bool { return t.TaskType == name }); i >= 0 {
		return tasks[i]
	}
	if !v.knows("tasks") {
		return ops.TaskRecord{TaskType: name}
	}
	v.Err = cmp.Or(v.Err, fmt.Errorf("%w task type %q: no worker has registered it in %s", errUnknown, name,
		v.client.OwnSign()))
	return ops.TaskRecord{}
}

// allServers returns the servers of all task types. The samples of their rates follow from them.
func (v *viewer) allServers(ctx context.Context) []ops.ServerRecord {
	return loadRows(ctx, v, "servers", func(s ops.ServerRecord) string { return s.TaskType },
		func(ctx context.Context) ([]ops.ServerRecord, error) {
			servers, err := v.client.Servers().List(ctx, ops.ServerFilter{})
			if err == nil {
				v.samples.add(servers)
			}
			return servers, err
		})
}

// serversOf returns the servers of a task type.
func (v *viewer) serversOf(ctx context.Context, taskType string) []ops.ServerRecord {
	return slices.DeleteFunc(slices.Clone(v.allServers(ctx)),
		func(s ops.ServerRecord) bool { return s.TaskType != taskType })
}

// queuesOf returns the queues of a task type.
func (v *viewer) queuesOf(ctx context.Context, taskType string) []ops.QueueRecord {
	return load(ctx, v, "queues\x00"+taskType, func(ctx context.Context) ([]ops.QueueRecord, error) {
		return v.client.Queues().List(ctx, ops.QueueFilter{TaskType: taskType})
	})
}

// allTriggers returns all triggers.
func (v *viewer) allTriggers(ctx context.Context) []runs.TriggerRecord {
	return loadRows(ctx, v, "triggers", func(t runs.TriggerRecord) string { return t.Target },
		func(ctx context.Context) ([]runs.TriggerRecord, error) {
			return v.client.Triggers().List(ctx, runs.TriggerFilter{})
		})
}

// ownSigns returns the environments of the database.
func (v *viewer) ownSigns(ctx context.Context) []string {
	main := *v
	main.console, main.parts = v.main, nil
	signs := load(ctx, &main, "own signs", v.main.client.OwnSigns)
	if p, asked := main.parts["own signs"]; asked {
		v.note("own signs", p)
	}
	v.Err = main.Err
	return signs
}

// nav is what the top of each page shows.
type nav struct {
	Signs                          []string // the environments
	Workers, RunningRuns, Triggers int      // a worker is a process, of all its task types
	DeadItems                      int64
}

// nav returns what the top of each page shows, of the task types that the actor may look at. It is empty until these
// are known.
func (v *viewer) nav(ctx context.Context) (n nav) {
	for _, t := range v.tasks(ctx) {
		n.DeadItems += t.DeadItems
		n.RunningRuns += count(t.RunID != nil)
	}
	if !v.knows("tasks") && !v.Actor.may(Look, "") {
		return nav{}
	}
	processes := map[string]bool{}
	for _, s := range v.allServers(ctx) {
		processes[shortName(s.UUID)] = true
	}
	n.Workers, n.Triggers, n.Signs = len(processes), len(v.allTriggers(ctx)), v.ownSigns(ctx)
	if !slices.Contains(n.Signs, v.main.client.OwnSign()) { // no worker has come yet
		n.Signs = append([]string{v.main.client.OwnSign()}, n.Signs...)
	}
	return n
}
