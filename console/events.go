package console

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/ops"
)

// eventsPage is the page of events.
type eventsPage struct {
	Task, Kind, Queue, Server string
	Tasks                     []ops.TaskRecord
	Kinds                     []string
	Rows                      []ops.EventRecord // the newest first
	Pages                     paging
}

// eventsOf returns the latest events that a filter selects, the oldest first.
func (v *viewer) eventsOf(ctx context.Context, f ops.EventFilter, limit int) []ops.EventRecord {
	return newestFirst(latest[ops.EventRecord]{
		key:      strings.Join([]string{"events", f.QueueID, f.Server, f.Kind, number(limit)}, "\x00"),
		taskType: f.TaskType, limit: limit, taskTypeOf: func(e ops.EventRecord) string { return e.TaskType },
		compare: func(a, b ops.EventRecord) int { return cmp.Compare(b.EventID, a.EventID) },
		query: func(ctx context.Context, taskType string) ([]ops.EventRecord, error) {
			f := f // the query may run beside that of another task type
			f.TaskType = taskType
			list, err := v.client.Events().List(ctx, f, limit)
			return newestFirst(list), err
		},
	}.load(ctx, v)) // which turns them round again
}

// showEvents returns the page of events.
func showEvents(ctx context.Context, v *viewer, query url.Values) content {
	p := eventsPage{
		Task: query.Get("task"), Kind: strings.ToUpper(query.Get("kind")), Queue: query.Get("queue"),
		Server: query.Get("worker"), Kinds: ops.EventKinds(), Pages: pageOf(query), Tasks: v.tasks(ctx),
	}
	list := v.eventsOf(ctx, ops.EventFilter{TaskType: p.Task, Kind: p.Kind, QueueID: p.Queue, Server: p.Server},
		p.Pages.limit())
	if !v.knows("events") {
		return content{Title: "Events"}
	}
	p.Rows = cutPage(&p.Pages, newestFirst(list), len(list) == p.Pages.limit())
	return content{"Events", p, list}
}

func newestFirst(list []ops.EventRecord) []ops.EventRecord {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}

// eventMark returns the kind of an event as a mark. An alert has the colour of its condition.
func eventMark(e ops.EventRecord) mark {
	m := mark{"wait", strings.ToLower(strings.ReplaceAll(e.Kind, "_", " "))}
	switch e.Kind {
	case ops.EventAlert:
		m.Kind = markOfStatus[condition.Problem]
		if e.Alert != nil {
			m.Kind = markOfStatus[condition.KindOf(*e.Alert).Status]
		}
	case ops.EventExpired, ops.EventUnassigned, ops.EventForced:
		m.Kind = "bad"
	case ops.EventTakenOver:
		m.Kind = "warn"
	case ops.EventRequested, ops.EventReleased, ops.EventGranted, ops.EventDraining, ops.EventRepartition,
		ops.EventRemoving:
		m.Kind = "busy"
	case ops.EventPaused:
		m.Kind = "off"
	}
	return m
}

// changesOwner reports whether an event gives a queue another owner.
func changesOwner(e ops.EventRecord) bool {
	return slices.Contains([]string{
		ops.EventGranted, ops.EventReleased, ops.EventTakenOver, ops.EventForced,
		ops.EventUnassigned,
	}, e.Kind)
}
