package console

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/center"
)

// queuePage is the page of a queue.
type queuePage struct {
	Task   string
	Queue  center.QueueRecord
	Owner  *Owner
	Next   *Owner
	Mark   Mark
	Before string // the ids of the queues beside it
	After  string
	Span   string
	Bands  []band
	Events []EventRow
	Items  []center.ItemRecord
}

// spans are the times that a strip of owners can show.
var spans = []struct {
	Name string
	Span time.Duration
}{{"1 hour", time.Hour}, {"24 hours", 24 * time.Hour}, {"5 days", 5 * 24 * time.Hour}}

// maxEvents is how many events of a queue its page reads.
const maxEvents = 500

// queue makes the page of a queue.
func (v *view) queue(ctx context.Context) error {
	t, err := v.taskNamed(ctx, v.param("task"))
	if err != nil {
		return err
	}
	queues, err := v.queuesOf(ctx, t.TaskType)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(queues, func(q center.QueueRecord) bool { return q.QueueID == v.param("queue") })
	if i < 0 {
		return fmt.Errorf("%w queue %q of %s", errUnknown, v.param("queue"), t.TaskType)
	}
	servers, err := v.serversOf(ctx, t.TaskType)
	if err != nil {
		return err
	}
	q, named := queues[i], nameOwners(servers, queues)
	p := queuePage{Task: t.TaskType, Queue: q, Owner: named.Of(q.CurServer), Next: named.Of(q.ReqServer), Mark: conditionOf(q), Span: v.param("span")}
	if i > 0 {
		p.Before = queues[i-1].QueueID
	}
	if i+1 < len(queues) {
		p.After = queues[i+1].QueueID
	}
	events, err := v.eventsOf(ctx, center.EventFilter{TaskType: t.TaskType, QueueID: q.QueueID}, maxEvents)
	if err != nil {
		return err
	}
	p.Events = eventRows(events)
	p.bands(events, queues[i], named)
	p.Items, err = v.itemsOf(ctx, center.ItemFilter{TaskType: t.TaskType, QueueID: q.QueueID}, 20)
	v.Title, v.Data, v.Records = fmt.Sprintf("%s, queue %s", t.TaskType, q.QueueID), p, events
	return err
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
	Title    string
}

// Middle returns the middle of the band.
func (b band) Middle() float64 { return b.X + b.Width/2 }

// bands fills the strip of owners from the events, in which the last owner before the span's beginning is, too.
func (p *queuePage) bands(events []center.EventRecord, q center.QueueRecord, named owners) {
	span := spans[0].Span
	for _, s := range spans {
		if s.Name == p.Span {
			span = s.Span
		}
	}
	if len(events) == 0 {
		return
	}
	end := time.Now().UTC()
	if newest := events[len(events)-1].EventTime; newest.After(end) { // the clocks differ
		end = newest
	}
	begin, owner := end.Add(-span), (*string)(nil)
	at := begin
	add := func(to time.Time) {
		if !to.After(begin) || !to.After(at) {
			return
		}
		b := band{X: percent(at.Sub(begin), span), Width: percent(to.Sub(at), span)}
		if owner != nil && *owner != "" {
			b.Owner = shortName(*owner)
			b.Class = named.Of(owner).Class()
			b.Title = b.Owner
		}
		p.Bands = append(p.Bands, b)
		at = to
	}
	for _, e := range events {
		if !changesOwner(e) {
			continue
		}
		add(e.EventTime)
		owner = e.ToServer
		at = maxTime(begin, e.EventTime)
	}
	if q.CurServer != nil {
		owner = q.CurServer
	}
	add(end)
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func percent(part, whole time.Duration) float64 { return 100 * float64(part) / float64(whole) }
