package console

import (
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

	AsOf    time.Time // when the oldest part of what was read was read
	Failing time.Time // since when the database does not answer; zero if it does

	readAt map[string]time.Time // when the results of queries were read, by their keys
}

// load returns the result of a query of the environment of the viewer. key names the query with its parameters. If
// the query fails, load returns the result of its last success, with the failure noted in the viewer.
func load[T any](ctx context.Context, v *viewer, key string, query func(context.Context) (T, error)) (T, error) {
	p := v.cache.get(ctx, request{v.partKey(key), v.life(), readLimit, func(ctx context.Context) (any, error) {
		return query(ctx)
	}}, patience)
	v.note(key, p)
	value, ok := p.value.(T)
	if !ok {
		return value, p.err
	}
	return value, nil
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

// note keeps the age of a part of the page, that of the oldest part, and since when the database does not answer.
func (v *viewer) note(key string, p part) {
	if v.readAt == nil {
		v.readAt = map[string]time.Time{}
	}
	v.readAt[key] = p.at
	if p.value != nil && (v.AsOf.IsZero() || p.at.Before(v.AsOf)) {
		v.AsOf = p.at
	}
	if p.err != nil && (v.Failing.IsZero() || p.failing.Before(v.Failing)) {
		v.Failing = p.failing
	}
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
	tasks, err := v.tasks(ctx)
	return err == nil && len(tasks) > 0
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
func (v *viewer) tasks(ctx context.Context) ([]ops.TaskRecord, error) {
	list, err := load(ctx, v, "tasks", func(ctx context.Context) ([]ops.TaskRecord, error) {
		return v.client.Tasks().List(ctx, "")
	})
	return visible(v, list, func(t ops.TaskRecord) string { return t.TaskType }), err
}

// taskNamed returns a task type.
func (v *viewer) taskNamed(ctx context.Context, name string) (ops.TaskRecord, error) {
	tasks, err := v.tasks(ctx)
	if err != nil {
		return ops.TaskRecord{}, err
	}
	for _, t := range tasks {
		if t.TaskType == name {
			return t, nil
		}
	}
	return ops.TaskRecord{}, fmt.Errorf("%w task type %q: no worker has registered it in %s", errUnknown, name,
		v.client.OwnSign())
}

// allServers returns the servers of all task types. The samples of their rates follow from them.
func (v *viewer) allServers(ctx context.Context) ([]ops.ServerRecord, error) {
	list, err := load(ctx, v, "servers", func(ctx context.Context) ([]ops.ServerRecord, error) {
		servers, err := v.client.Servers().List(ctx, ops.ServerFilter{})
		if err == nil {
			v.samples.add(servers)
		}
		return servers, err
	})
	return visible(v, list, func(s ops.ServerRecord) string { return s.TaskType }), err
}

// serversOf returns the servers of a task type.
func (v *viewer) serversOf(ctx context.Context, taskType string) ([]ops.ServerRecord, error) {
	servers, err := v.allServers(ctx)
	return slices.DeleteFunc(slices.Clone(servers), func(s ops.ServerRecord) bool { return s.TaskType != taskType }), err
}

func queuesKey(taskType string) string { return "queues\x00" + taskType }

// queuesOf returns the queues of a task type.
func (v *viewer) queuesOf(ctx context.Context, taskType string) ([]ops.QueueRecord, error) {
	return load(ctx, v, queuesKey(taskType), func(ctx context.Context) ([]ops.QueueRecord, error) {
		return v.client.Queues().List(ctx, ops.QueueFilter{TaskType: taskType})
	})
}

// allTriggers returns all triggers.
func (v *viewer) allTriggers(ctx context.Context) ([]runs.TriggerRecord, error) {
	list, err := load(ctx, v, "triggers", func(ctx context.Context) ([]runs.TriggerRecord, error) {
		return v.client.Triggers().List(ctx, runs.TriggerFilter{})
	})
	return visible(v, list, func(t runs.TriggerRecord) string { return t.Target }), err
}

// ownSigns returns the environments of the database.
func (v *viewer) ownSigns(ctx context.Context) ([]string, error) {
	main := viewer{console: v.main}
	return load(ctx, &main, "own signs", func(ctx context.Context) ([]string, error) {
		return v.main.client.OwnSigns(ctx)
	})
}

// nav is what the top of each page shows.
type nav struct {
	Signs                       []string // the environments
	Servers, OpenRuns, Triggers int
	DeadItems                   int64
}

// nav returns what the top of each page shows, of the task types that the actor may look at.
func (v *viewer) nav(ctx context.Context) (n nav, err error) {
	tasks, err := v.tasks(ctx)
	if err != nil {
		return n, err
	}
	servers, err := v.allServers(ctx)
	if err != nil {
		return n, err
	}
	triggers, err := v.allTriggers(ctx)
	if err != nil {
		return n, err
	}
	if n.Signs, err = v.ownSigns(ctx); err != nil {
		return n, err
	}
	if !slices.Contains(n.Signs, v.main.client.OwnSign()) { // no worker has come yet
		n.Signs = append([]string{v.main.client.OwnSign()}, n.Signs...)
	}
	for _, t := range tasks {
		n.DeadItems += t.DeadItems
		n.OpenRuns += count(t.RunID != nil)
	}
	n.Servers, n.Triggers = len(servers), len(triggers)
	return n, nil
}
