package console

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// queuePage is the page of a queue.
type queuePage struct {
	Task       string
	Splittable bool // the task type
	Queue      ops.QueueRecord
	Owner      *owner
	Next       *owner
	Mark       mark
	Since      *time.Time
	Left       backlog
	Before     string // the ids of the queues beside it
	After      string
	Span       string
	Bands      []band
	Events     []ops.EventRecord // the newest first
	Items      []ops.ItemRecord
	Runs       []queueRunRow
}

// queueRunRow is what the queue did in a run.
type queueRunRow struct {
	runs.QueueRun
	Name string
}

// shownRuns is how many of the latest runs the page of a queue looks at.
const shownRuns = 20

// spans are the times that a strip of owners can show.
var spans = []struct {
	Name string
	Span time.Duration
}{{"1 hour", time.Hour}, {"24 hours", 24 * time.Hour}, {"5 days", 5 * 24 * time.Hour}}

// maxQueueItems is how many failed items of a queue its page shows.
const maxQueueItems = 20

// Named reports whether the queue has a name: only such queues are removed one by one.
func (p queuePage) Named() bool { return hasName(p.Queue) && !p.Queue.Removing }

// Sized reports whether the queue can be split and merged.
func (p queuePage) Sized() bool { return p.Splittable && p.Queue.QueueTotal != nil }

// ManyItems reports whether the queue may have more failed items than the page shows.
func (p queuePage) ManyItems() bool { return len(p.Items) == maxQueueItems }

// maxEvents is how many events of a queue its page reads.
const maxEvents = 500

// showQueue returns the page of a queue.
func showQueue(ctx context.Context, v *viewer, query url.Values) content {
	t := v.taskNamed(ctx, query.Get("task"))
	queues, servers := v.queuesOf(ctx, t.TaskType), v.serversOf(ctx, t.TaskType)
	if v.Err != nil || !v.knows("tasks", "queues") {
		return content{Title: fmt.Sprintf("%s, queue %s", t.TaskType, query.Get("queue"))}
	}
	i := slices.IndexFunc(queues, func(q ops.QueueRecord) bool { return q.QueueID == query.Get("queue") })
	if i < 0 {
		v.Err = cmp.Or(v.Err, fmt.Errorf("%w queue %q of %s", errUnknown, query.Get("queue"), t.TaskType))
		return content{}
	}
	q, named, read := queues[i], nameOwners(servers, queues), v.readAt("queues")
	p := queuePage{
		Task: t.TaskType, Splittable: t.Splittable, Queue: q, Owner: named.Of(q.CurServer), Next: named.Of(q.ReqServer),
		Mark: conditionOf(q), Since: ownedSince(q, read), Left: backlogOfQueue(q, read), Span: query.Get("span"),
	}
	if i > 0 {
		p.Before = queues[i-1].QueueID
	}
	if i+1 < len(queues) {
		p.After = queues[i+1].QueueID
	}
	events := v.eventsOf(ctx, ops.EventFilter{TaskType: t.TaskType, QueueID: q.QueueID}, maxEvents)
	p.Events = newestFirst(events)
	p.bands(events, queues[i], named)
	if t.Mode == center.ModeRun {
		p.Runs = v.runsOfQueue(ctx, t.TaskType, q.QueueID)
	}
	p.Items = v.itemsOf(ctx, ops.ItemFilter{TaskType: t.TaskType, QueueID: q.QueueID}, maxQueueItems)
	return content{fmt.Sprintf("%s, queue %s", t.TaskType, q.QueueID), p, events}
}

// runsOfQueue returns what a queue did in the latest runs, the newest first.
func (v *viewer) runsOfQueue(ctx context.Context, taskType, queueID string) (rows []queueRunRow) {
	latest := v.latestRuns(ctx, runs.Filter{TaskType: taskType})
	list := load(ctx, v, strings.Join([]string{"queue runs", taskType, queueID}, "\x00"),
		func(ctx context.Context) ([]runs.QueueRun, error) {
			return v.client.Runs().OfQueue(ctx, taskType, queueID, shownRuns)
		})
	for _, q := range list {
		row := queueRunRow{q, q.RunID}
		if i := slices.IndexFunc(latest, func(r runs.Record) bool { return r.ID == q.RunID }); i >= 0 {
			row.Name = nameOfRun(latest[i].Run)
		}
		rows = append(rows, row)
	}
	return rows
}

// SpanLinks returns the spans that the strip of owners can show.
func (p queuePage) SpanLinks() []string {
	names := make([]string, len(spans))
	for i, s := range spans {
		names[i] = s.Name
	}
	return names
}

// band is the time in which a server owned the queue, in percent of the strip's width.
type band struct {
	X, Width float64
	Owner    string // empty: nobody
	Class    string
}

// Middle returns the middle of the band.
func (b band) Middle() float64 { return b.X + b.Width/2 }

// bands fills the strip of owners from the events, in which the last owner before the span's beginning is, too.
func (p *queuePage) bands(events []ops.EventRecord, q ops.QueueRecord, named owners) {
	span := spans[0].Span
	for _, s := range spans {
		if s.Name == p.Span {
			span = s.Span
		}
	}
	if len(events) == 0 {
		return
	}
	// The end moves in steps, so that the page does not change with each read. The clocks may differ.
	end := time.Now().UTC().Truncate(span / 600)
	if newest := events[len(events)-1].EventTime; newest.After(end) {
		end = newest
	}
	s := ownerStrip{begin: end.Add(-span), span: span, named: named}
	for _, e := range events {
		if changesOwner(e) {
			s.change(e.EventTime, e.ToServer)
		}
	}
	s.change(end, q.CurServer)
	p.Bands = s.bands
}

// ownerStrip makes the bands of a queue.
type ownerStrip struct {
	begin time.Time
	span  time.Duration
	named owners

	known bool      // the owner since at is known
	owner *string   // nil: nobody
	at    time.Time // when it became the owner
	bands []band
}

// change ends the band of an owner and begins that of the next.
func (s *ownerStrip) change(at time.Time, next *string) {
	from := s.at
	if from.Before(s.begin) {
		from = s.begin
	}
	if s.known && at.After(from) {
		b := band{X: percent(from.Sub(s.begin), s.span), Width: percent(at.Sub(from), s.span)}
		if s.owner != nil {
			b.Owner, b.Class = shortName(*s.owner), cmp.Or(s.named.Of(s.owner).Class(), "o8")
		}
		s.bands = append(s.bands, b)
	}
	s.known, s.owner, s.at = true, next, at
}

func percent(part, whole time.Duration) float64 { return 100 * float64(part) / float64(whole) }
