// Package rotaotel makes OpenTelemetry spans of what Rota does. It uses the API alone: the program chooses an SDK.
//
//	tracing := rotaotel.New(nil)
//	c, err := center.Open(ctx, database, center.Options{OnRunEnd: tracing.RunEnded})
//	...
//	m, mx, err := metrics.NewManager(c, manager.Config{
//		Hooks: []processor.Hooks{tracing.Hooks()}, Observers: []manager.Observer{tracing},
//	}, tasks...)
//
// There are five kinds of spans, each with the task type in its name:
//
//   - rota select: a call of Select. The statements of an instrumented driver are its children.
//   - rota execute: a call of Execute, with what became of its items. Its context is that of Execute.
//   - rota hand-over: from the request that the owner sees, over the drain, to the release.
//   - rota plan: one planning under the lock row, with the number of queues that it moves by reason.
//   - rota run: from the opening of a run to its end. The process that ends the run makes the span, with the times of
//     its row.
//
// # Traces
//
// A service that submits a run gives TraceParent(ctx) to runs.Submission, and the span of the run becomes a child of
// its span. A service that inserts a row keeps TraceParent(ctx) in a column, and the dealer returns it
// (processor.Traced). The span of a batch has a link to the submission of its run, and to the trace of each of its
// items, at most 128. It is no child of them: a batch has items of many traces, and a run of a million rows would be
// one trace without end. So each batch is sampled by itself. Of the trace context only the traceparent is kept, without
// the tracestate.
//
// # Metrics
//
// The metrics of package manager/metrics are Prometheus metrics. The SDK reads them through
// go.opentelemetry.io/contrib/bridges/prometheus, histograms with their buckets:
//
//	registry.MustRegister(mx)
//	producer := bridge.NewMetricProducer(bridge.WithGatherer(registry))
//	metric.NewPeriodicReader(exporter, metric.WithProducer(producer))
//
// Observable instruments of the API were the alternative. They have no histograms, and would be a second list of
// metrics.
//
// # The module
//
// The package is a module of its own, so that programs without OpenTelemetry do not need its modules. Between releases
// a replace in its go.mod makes it use the Rota beside it; docs/releasing.md says what the tagged go.mod requires.
package rotaotel
