package rotaotel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/manager/metrics"
	rotaotel "github.com/dutyrota/rota/otel"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/runs"
)

// recorded returns a Tracing and what it has recorded.
func recorded() (*rotaotel.Tracing, *tracetest.SpanRecorder) {
	recorder := tracetest.NewSpanRecorder()
	return rotaotel.New(sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder))), recorder
}

// last returns the span that ended last, with its attributes as text.
func last(t *testing.T, recorder *tracetest.SpanRecorder) (sdk.ReadOnlySpan, map[string]string) {
	t.Helper()
	ended := recorder.Ended()
	if len(ended) == 0 {
		t.Fatal("no span has ended")
	}
	span := ended[len(ended)-1]
	attributes := map[string]string{}
	for _, a := range span.Attributes() {
		attributes[string(a.Key)] = a.Value.String()
	}
	return span, attributes
}

// wantAttributes compares the attributes of a span that a test names, in pairs.
func wantAttributes(t *testing.T, got map[string]string, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if got["rota."+pairs[i]] != pairs[i+1] {
			t.Errorf("rota.%s is %q, want %q", pairs[i], got["rota."+pairs[i]], pairs[i+1])
		}
	}
}

func parent(n int) string { return fmt.Sprintf("00-%032x-%016x-01", n, n) }

func batch(parents ...string) processor.Batch {
	return processor.Batch{
		TaskType: "settle", OwnSign: "BASE", Items: 3, TraceParents: parents,
		Queue: processor.Queue{ID: "7", Epoch: 9, Run: &processor.Run{ID: "r", Key: "k", TraceParent: parent(1)}},
	}
}

func TestExecute(t *testing.T) {
	tracing, recorder := recorded()
	outer, span := sdk.NewTracerProvider().Tracer("").Start(t.Context(), "the program")
	defer span.End()
	c := openCenter(t)
	bound := c.Bind(outer, center.Batch{Server: "a"})
	ctx, end := tracing.Hooks().Execute(bound, batch(parent(2), parent(1), "nonsense", parent(2), parent(3)))
	current := trace.SpanContextFromContext(ctx)
	end(processor.Result{Outcome: processor.OutcomeFailed, Err: errors.New("broken"), Failed: 2, Dead: 1})
	got, attributes := last(t, recorder)
	if got.Name() != "rota execute settle" || got.SpanKind() != trace.SpanKindConsumer || got.Parent().IsValid() || !got.SpanContext().Equal(current) {
		t.Errorf("the span is %q of kind %s with the parent %v, want the current one of Execute, without a parent", got.Name(), got.SpanKind(), got.Parent())
	}
	var links []string
	for _, l := range got.Links() {
		links = append(links, l.SpanContext.TraceID().String()[31:])
	}
	if fmt.Sprint(links) != "[1 2 3]" {
		t.Errorf("the links lead to %v, want the run and each item once", links)
	}
	if got.Status().Code != codes.Error || got.Status().Description != "broken" || len(got.Events()) != 1 {
		t.Errorf("the status is %+v with the events %+v, want the error", got.Status(), got.Events())
	}
	wantAttributes(t, attributes, "server", "a", "task_type", "settle", "own_sign", "BASE", "queue", "7", "epoch", "9", "run", "r", "run_key", "k",
		"items", "3", "items_failed", "2", "items_dead", "1", "outcome", "failed")
}

// openCenter opens a roster in memory.
func openCenter(t *testing.T) *center.Center {
	t.Helper()
	c, err := center.Open(t.Context(), sqlite.URL("sqlite::memory:"), center.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// A batch that is cancelled has not failed.
func TestExecuteCancelled(t *testing.T) {
	tracing, recorder := recorded()
	_, end := tracing.Hooks().Execute(t.Context(), batch())
	end(processor.Result{Outcome: processor.OutcomeCancelled, Err: context.Canceled})
	if got, _ := last(t, recorder); got.Status().Code != codes.Unset || len(got.Events()) != 1 {
		t.Errorf("the status is %+v, and the events %+v, want an event alone", got.Status(), got.Events())
	}
}

func TestLinksAreBounded(t *testing.T) {
	tracing, recorder := recorded()
	var parents []string
	for n := range 300 {
		parents = append(parents, parent(n+1))
	}
	_, end := tracing.Hooks().Execute(t.Context(), batch(parents...))
	end(processor.Result{Outcome: processor.OutcomeDone})
	if got, _ := last(t, recorder); len(got.Links()) != 128 || got.DroppedLinks() > 0 {
		t.Errorf("%d links and %d dropped, want 128 and none", len(got.Links()), got.DroppedLinks())
	}
}

func TestSelect(t *testing.T) {
	tracing, recorder := recorded()
	outer, span := sdk.NewTracerProvider().Tracer("").Start(t.Context(), "the program")
	defer span.End()
	ctx, end := tracing.Hooks().Select(outer, processor.Selection{TaskType: "settle", OwnSign: "BASE", Server: "a", Queue: processor.Queue{ID: "7", Epoch: 9}})
	current := trace.SpanContextFromContext(ctx)
	end(5, errors.New("no table"))
	got, attributes := last(t, recorder)
	if got.Name() != "rota select settle" || got.Parent().IsValid() || !got.SpanContext().Equal(current) || got.Status().Description != "no table" {
		t.Errorf("the span is %q with the parent %v and the status %+v", got.Name(), got.Parent(), got.Status())
	}
	wantAttributes(t, attributes, "server", "a", "queue", "7", "epoch", "9", "items", "5")
}

func TestHandOver(t *testing.T) {
	tracing, recorder := recorded()
	at := time.Unix(1_000, 0)
	m := manager.Move{
		TaskType: "settle", OwnSign: "BASE", Server: "a", Queue: "7", Epoch: 9, Kind: manager.MoveReleased, To: "b",
		Requested: at, Draining: at.Add(time.Second), Drained: at.Add(3 * time.Second), Released: at.Add(4 * time.Second),
	}
	tracing.Moved(m)
	got, attributes := last(t, recorder)
	if got.Name() != "rota hand-over settle" || !got.StartTime().Equal(at) || !got.EndTime().Equal(m.Released) {
		t.Errorf("the span is %q from %s to %s", got.Name(), got.StartTime(), got.EndTime())
	}
	if e := got.Events(); len(e) != 2 || e[0].Name != "draining" || !e[0].Time.Equal(m.Draining) || e[1].Name != "drained" || !e[1].Time.Equal(m.Drained) {
		t.Errorf("the events are %+v", e)
	}
	wantAttributes(t, attributes, "server", "a", "queue", "7", "epoch", "9", "to", "b")
	m.Kind = manager.MoveLost
	if tracing.Moved(m); len(recorder.Ended()) != 1 {
		t.Error("a lost queue made a span, and it was not handed over")
	}
}

func TestPlan(t *testing.T) {
	tracing, recorder := recorded()
	at := time.Unix(1_000, 0)
	tracing.Planned(manager.Plan{
		TaskType: "settle", OwnSign: "BASE", Server: "a", Began: at, Ended: at.Add(time.Second), Err: errors.New("no row"),
		Moves: map[string]int{"balance": 3, "owner": 2}, Expired: []time.Duration{time.Minute}, Skipped: 4,
	})
	got, attributes := last(t, recorder)
	if got.Name() != "rota plan settle" || got.EndTime().Sub(got.StartTime()) != time.Second || got.Status().Description != "no row" {
		t.Errorf("the span is %q from %s to %s, %+v", got.Name(), got.StartTime(), got.EndTime(), got.Status())
	}
	wantAttributes(t, attributes, "server", "a", "moves", "5", "moves.balance", "3", "moves.owner", "2", "expired_servers", "1", "skipped_queues", "4")
}

func TestRunEnded(t *testing.T) {
	tracing, recorder := recorded()
	at := time.Unix(1_000, 0)
	r := runs.Run{
		ID: "r", Key: "k", TaskType: "settle", OwnSign: "BASE", State: runs.Failed, Message: "queue 3 failed", Trigger: "nightly",
		TraceParent: parent(5), ItemsDone: 8, ItemsFailed: 1, StartedAt: at, FinishedAt: at.Add(time.Hour),
	}
	tracing.RunEnded(r)
	got, attributes := last(t, recorder)
	if got.Name() != "rota run settle" || got.EndTime().Sub(got.StartTime()) != time.Hour || got.Status().Description != "queue 3 failed" ||
		rotaotel.TraceParent(trace.ContextWithRemoteSpanContext(t.Context(), got.Parent())) != parent(5) {
		t.Errorf("the span is %q from %s to %s, child of %v, %+v", got.Name(), got.StartTime(), got.EndTime(), got.Parent(), got.Status())
	}
	wantAttributes(t, attributes, "run", "r", "run_key", "k", "run_state", "FAILED", "trigger", "nightly", "items", "8", "items_failed", "1")
	r.StartedAt, r.State, r.TraceParent = time.Time{}, runs.Cancelled, ""
	tracing.RunEnded(r)
	if got, _ = last(t, recorder); !got.StartTime().Equal(r.FinishedAt) || got.Status().Code != codes.Unset || got.Parent().IsValid() {
		t.Errorf("a run that was cancelled before it was opened: the span begins at %s, %+v", got.StartTime(), got.Status())
	}
}

// The official bridge reads the metrics of a manager, with the same values, and histograms with their buckets.
func TestMetrics(t *testing.T) {
	c := openCenter(t)
	tracing, recorder := recorded()
	m, mx, err := metrics.NewManager(c, manager.Config{Hooks: []processor.Hooks{tracing.Hooks()}, Observers: []manager.Observer{tracing}},
		manager.Serve("settle", idle{}, manager.Settings{Queues: 3}))
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(mx)
	reader := sdkmetric.NewManualReader(sdkmetric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(registry))))
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	defer func() { _ = provider.Shutdown(context.WithoutCancel(t.Context())) }()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- m.Run(ctx) }()
	<-joined(m)
	has := func(name string, attribute attribute.KeyValue) bool {
		return slices.ContainsFunc(recorder.Ended(), func(s sdk.ReadOnlySpan) bool {
			return s.Name() == name && slices.Contains(s.Attributes(), attribute)
		})
	}
	settle := attribute.String("rota.task_type", "settle")
	for m.Status()[0].Queues < 3 || !has("rota select settle", settle) {
		time.Sleep(10 * time.Millisecond)
	}
	if server := attribute.String("rota.server", m.Status()[0].Server); !has("rota select settle", server) {
		t.Errorf("no span of a select has the attribute %v", server)
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Error(err)
	}
	found := map[string]metricdata.Aggregation{}
	for _, s := range all.ScopeMetrics {
		for _, one := range s.Metrics {
			found[one.Name] = one.Data
		}
	}
	if g, ok := found["rota_queues_owned"].(metricdata.Gauge[float64]); !ok || len(g.DataPoints) != 1 || g.DataPoints[0].Value != 3 ||
		!g.DataPoints[0].Attributes.HasValue(attribute.Key("task_type")) {
		t.Errorf("rota_queues_owned is %+v, want 3 for the task type", found["rota_queues_owned"])
	}
	if h, ok := found["rota_heartbeat_duration_seconds"].(metricdata.Histogram[float64]); !ok || h.DataPoints[0].Count == 0 || len(h.DataPoints[0].Bounds) != 10 {
		t.Errorf("rota_heartbeat_duration_seconds is %+v, want a histogram with 10 bounds", found["rota_heartbeat_duration_seconds"])
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !has("rota plan settle", settle) {
		t.Error("the metrics have displaced the observer of the program")
	}
}

// idle is a dealer that has nothing to do.
type idle struct{}

func (idle) Select(context.Context, processor.Selection) ([]int, error) { return nil, nil }
func (idle) Execute(context.Context, []int) error                       { return nil }

// BenchmarkExecute measures the span of a batch, with two links, if it is sampled and if it is not.
func BenchmarkExecute(b *testing.B) {
	for name, sampler := range map[string]sdk.Sampler{"unsampled": sdk.NeverSample(), "sampled": sdk.AlwaysSample()} {
		b.Run(name, func(b *testing.B) {
			hooks := rotaotel.New(sdk.NewTracerProvider(sdk.WithSampler(sampler))).Hooks()
			b.ReportAllocs()
			for b.Loop() {
				_, end := hooks.Execute(b.Context(), batch(parent(2)))
				end(processor.Result{Outcome: processor.OutcomeDone})
			}
		})
	}
}
