package rotaotel

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/runs"
)

// scope names this package in the spans.
const scope = "github.com/dutyrota/rota/otel"

// The attributes of the spans.
const (
	taskTypeKey = attribute.Key("rota.task_type")
	ownSignKey  = attribute.Key("rota.own_sign")
	serverKey   = attribute.Key("rota.server")
	queueKey    = attribute.Key("rota.queue") // of one queue, with its epoch
	epochKey    = attribute.Key("rota.epoch")
	toKey       = attribute.Key("rota.to")
	runKey      = attribute.Key("rota.run")
	runKeyKey   = attribute.Key("rota.run_key")
	stateKey    = attribute.Key("rota.run_state")
	triggerKey  = attribute.Key("rota.trigger")
	itemsKey    = attribute.Key("rota.items")
	failedKey   = attribute.Key("rota.items_failed")
	deadKey     = attribute.Key("rota.items_dead")
	outcomeKey  = attribute.Key("rota.outcome")
	movesKey    = attribute.Key("rota.moves") // of a plan; with the name of a rule, its moves by that rule
	expiredKey  = attribute.Key("rota.expired_servers")
	skippedKey  = attribute.Key("rota.skipped_queues")
)

// Tracing makes spans. It is a manager.Observer. All methods may be called concurrently.
type Tracing struct{ tracer trace.Tracer }

var _ manager.Observer = (*Tracing)(nil)

// New returns a Tracing whose spans go to a provider. Nil is the global one of the package otel.
func New(provider trace.TracerProvider) *Tracing {
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	return &Tracing{provider.Tracer(scope)}
}

// TraceParent returns the trace context of ctx as runs.Submission.TraceParent has it, and as a column of a row may have
// it for processor.Traced; empty if ctx has no span.
func TraceParent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier.Get("traceparent")
}

// remote returns the span that a trace context names. It is invalid if the text is none.
func remote(traceParent string) trace.SpanContext {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": traceParent})
	return trace.SpanContextFromContext(ctx)
}

// Hooks returns hooks that make a span of each select and each batch. Each is the root of a trace of its own, because a
// batch may have items of many traces; the context of the call carries it. Without spans of selects, which are many
// while there is nothing to do, set Select of the hooks to nil.
func (t *Tracing) Hooks() processor.Hooks {
	return processor.Hooks{Select: t.selects, Execute: t.execute}
}

func (t *Tracing) selects(ctx context.Context, s processor.Selection) (context.Context, func(int, error)) {
	ctx, span := t.tracer.Start(ctx, "rota select "+s.TaskType, trace.WithNewRoot(), trace.WithAttributes(
		append(append(ofTask(s.TaskType, s.OwnSign), serverKey.String(s.Server)), ofQueue(s.Queue)...)...))
	if !span.IsRecording() {
		return ctx, func(int, error) { span.End() }
	}
	return ctx, func(items int, err error) {
		span.SetAttributes(itemsKey.Int(items))
		fail(span, err)
		span.End()
	}
}

func (t *Tracing) execute(ctx context.Context, b processor.Batch) (context.Context, func(processor.Result)) {
	attributes := append(ofTask(b.TaskType, b.OwnSign), itemsKey.Int(b.Items))
	if bound, ok := center.BatchFrom(ctx); ok {
		attributes = append(attributes, serverKey.String(bound.Server))
	}
	ctx, span := t.tracer.Start(ctx, "rota execute "+b.TaskType, trace.WithNewRoot(),
		trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(append(attributes, ofQueue(b.Queue)...)...),
		trace.WithLinks(linksOf(b)...))
	if !span.IsRecording() {
		return ctx, func(processor.Result) { span.End() }
	}
	return ctx, func(r processor.Result) {
		span.SetAttributes(outcomeKey.String(string(r.Outcome)), failedKey.Int(r.Failed), deadKey.Int(r.Dead))
		if r.Outcome == processor.OutcomeCancelled { // the items have not failed
			span.RecordError(r.Err)
		} else {
			fail(span, r.Err)
		}
		span.End()
	}
}

// maxLinks is the number of links that the SDK keeps by default.
const maxLinks = 128

// linksOf returns links to the submission of the run and to the traces of the items, each once.
func linksOf(b processor.Batch) (links []trace.Link) {
	parents := b.TraceParents
	if run := b.Queue.Run; run != nil && run.TraceParent != "" {
		parents = append([]string{run.TraceParent}, parents...)
	}
	seen := make(map[string]bool, min(len(parents), maxLinks))
	for _, parent := range parents {
		if seen[parent] {
			continue
		}
		if seen[parent] = true; len(links) == maxLinks {
			break
		}
		if to := remote(parent); to.IsValid() {
			links = append(links, trace.Link{SpanContext: to})
		}
	}
	return links
}

// Moved implements manager.Observer. It makes a span of a queue that was handed over, from the moment at which the
// owner saw the request, with events when it began to drain and was drained.
func (t *Tracing) Moved(m manager.Move) {
	if m.Kind != manager.MoveReleased {
		return
	}
	begin := m.Released
	for _, at := range []time.Time{m.Drained, m.Draining, m.Requested} {
		if !at.IsZero() {
			begin = at
		}
	}
	_, span := t.tracer.Start(context.Background(), "rota hand-over "+m.TaskType, trace.WithTimestamp(begin),
		trace.WithAttributes(append(ofTask(m.TaskType, m.OwnSign), serverKey.String(m.Server), queueKey.String(m.Queue),
			epochKey.Int64(m.Epoch), toKey.String(m.To))...))
	if !m.Draining.IsZero() {
		span.AddEvent("draining", trace.WithTimestamp(m.Draining))
	}
	if !m.Drained.IsZero() {
		span.AddEvent("drained", trace.WithTimestamp(m.Drained))
	}
	span.End(trace.WithTimestamp(m.Released))
}

// Planned implements manager.Observer. It makes a span of each plan.
func (t *Tracing) Planned(p manager.Plan) {
	_, span := t.tracer.Start(context.Background(), "rota plan "+p.TaskType, trace.WithTimestamp(p.Began),
		trace.WithAttributes(append(ofTask(p.TaskType, p.OwnSign), serverKey.String(p.Server))...))
	moves := 0
	for rule, n := range p.Moves {
		moves += n
		span.SetAttributes(attribute.Int(string(movesKey)+"."+rule, n))
	}
	span.SetAttributes(movesKey.Int(moves), expiredKey.Int(len(p.Expired)), skippedKey.Int(p.Skipped))
	fail(span, p.Err)
	span.End(trace.WithTimestamp(p.Ended))
}

// Heartbeat implements manager.Observer. It makes no span.
func (*Tracing) Heartbeat(time.Duration, error) {}

// Statistics implements manager.Observer. It makes no span.
func (*Tracing) Statistics(time.Duration, error) {}

// Swept implements manager.Observer. It makes no span.
func (*Tracing) Swept(manager.Sweep) {}

// RunEnded makes a span of a run, for center.Options.OnRunEnd. It is a child of the span that submitted the run, and
// takes its times from the database's clock: from the moment at which the run was opened first, also after a rerun, to
// its end. A run that was never opened takes no time.
func (t *Tracing) RunEnded(r runs.Run) {
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), remote(r.TraceParent))
	begin := r.FinishedAt
	if !r.StartedAt.IsZero() {
		begin = r.StartedAt
	}
	_, span := t.tracer.Start(ctx, "rota run "+r.TaskType, trace.WithTimestamp(begin),
		trace.WithAttributes(append(ofTask(r.TaskType, r.OwnSign), runKey.String(r.ID), runKeyKey.String(r.Key),
			stateKey.String(r.State), itemsKey.Int64(r.ItemsDone), failedKey.Int64(r.ItemsFailed))...))
	if r.Trigger != "" {
		span.SetAttributes(triggerKey.String(r.Trigger))
	}
	if r.State == runs.Failed || r.State == runs.DependentFailed {
		fail(span, errors.New(cmp.Or(r.Message, r.State)), trace.WithTimestamp(r.FinishedAt))
	}
	span.End(trace.WithTimestamp(r.FinishedAt))
}

func ofTask(taskType, ownSign string) []attribute.KeyValue {
	return []attribute.KeyValue{taskTypeKey.String(taskType), ownSignKey.String(ownSign)}
}

// ofQueue returns the attributes of a queue and its run.
func ofQueue(q processor.Queue) []attribute.KeyValue {
	list := []attribute.KeyValue{queueKey.String(q.ID), epochKey.Int64(q.Epoch)}
	if q.Run != nil {
		list = append(list, runKey.String(q.Run.ID), runKeyKey.String(q.Run.Key))
	}
	return list
}

// fail records an error and makes it the status of the span.
func fail(span trace.Span, err error, at ...trace.EventOption) {
	if err != nil {
		span.RecordError(err, at...)
		span.SetStatus(codes.Error, err.Error())
	}
}
