package metrics

import (
	"math"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/manager"
)

// taskMetric is a metric that is read from the status of a task type when the metrics are collected.
type taskMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(manager.Status) float64
	label string // the value of the metric's own label; empty: it has none
}

func gauge(name, help string, value func(manager.Status) float64) taskMetric {
	return taskMetric{
		prometheus.NewDesc(name, help, []string{"task_type", "own_sign"}, nil), prometheus.GaugeValue, value, "",
	}
}

func counter(name, help string, value func(manager.Status) float64) taskMetric {
	m := gauge(name, help, value)
	m.kind = prometheus.CounterValue
	return m
}

var items = prometheus.NewDesc("rota_items_total", "Items by result: done, failed, skipped (not started), dead.",
	[]string{"task_type", "own_sign", "result"}, nil)

func itemsOf(result string, value func(manager.Status) float64) taskMetric {
	return taskMetric{items, prometheus.CounterValue, value, result}
}

var taskMetrics = []taskMetric{
	gauge("rota_queues_owned", "Queues that this process owns.",
		func(s manager.Status) float64 { return float64(s.Queues) }),
	gauge("rota_queues_draining", "Owned queues that are draining.",
		func(s manager.Status) float64 { return float64(s.Draining) }),
	gauge("rota_server_lease_valid", "1 if the lease of the worker is valid, so that it may work its queues.",
		func(s manager.Status) float64 { return boolean(s.LeaseValid) }),
	gauge("rota_heartbeat_age_seconds", "Time since the last successful heartbeat began.",
		func(s manager.Status) float64 { return s.HeartbeatAge.Seconds() }),
	gauge("rota_items_in_flight", "Items that are fetched and not finished.",
		func(s manager.Status) float64 { return float64(s.Work.InFlight) }),
	gauge("rota_calls_in_flight", "Calls of Execute in flight.",
		func(s manager.Status) float64 { return float64(s.InFlight) }),
	gauge("rota_max_in_flight", "Calls of Execute that this process may have in flight, its share of max_in_flight; "+
		"+Inf without a limit.", maxInFlight),
	gauge("rota_queue_backlog_items", "Items that the owned queues have left, as last counted; "+
		"queues that have not been counted yet are taken for as full as the others; NaN if fewer than half are counted, "+
		"or the dealer does not count.", backlogItems),
	gauge("rota_queue_backlog_counted", "Owned queues whose backlog was counted since this process got them.",
		func(s manager.Status) float64 { return float64(s.Backlog.Counted) }),
	gauge("rota_queue_backlog_age_seconds", "Age of the oldest of these counts; NaN if there is none.",
		func(s manager.Status) float64 { return age(s.Backlog.Since, math.NaN()) }),
	gauge("rota_queue_oldest_item_seconds", "Age of the oldest item that is left in the owned queues; "+
		"0 if there is none, NaN if the dealer does not tell.", backlogAge),
	gauge("rota_queue_backlog_failures", "Counts of the backlog that have failed in a row; "+
		"the last figures stay meanwhile.", func(s manager.Status) float64 { return float64(s.Backlog.Failures) }),
	gauge("rota_items_parked",
		"Items of the last selects of the owned queues that have failed, or wait for one of their order key that has.",
		func(s manager.Status) float64 { return float64(s.Work.Parked) }),
	gauge("rota_held_keys", "Order keys with items that wait for one of their key that has failed or is executed.",
		func(s manager.Status) float64 { return float64(s.Work.HeldKeys) }),
	gauge("rota_outage", "1 while the circuit breaker is open because items fail and nothing succeeds.",
		func(s manager.Status) float64 { return boolean(!s.Work.OutageSince.IsZero()) }),
	gauge("rota_oldest_call_age_seconds", "How long the oldest call of the dealer that still runs has been running; "+
		"0 if none runs.", func(s manager.Status) float64 { return age(s.Work.OldestCallSince, 0) }),
	gauge("rota_failing_seconds", "How long the calls of the dealer have done nothing but fail; 0 if they do not.",
		failing),
	gauge("rota_queues_failing", "Owned queues whose calls have all failed for ten minutes.",
		func(s manager.Status) float64 { return float64(s.FailingQueues) }),
	counter("rota_selects_total", "Selects that have ended.",
		func(s manager.Status) float64 { return float64(s.Work.FetchCount) }),
	gauge("rota_hints_heard", "1 if hints of other processes reach this one.",
		func(s manager.Status) float64 { return boolean(s.Hears) }),
	counter("rota_peeks_total", "Statements that have asked which of the idle queues have work (Peeker).",
		func(s manager.Status) float64 { return float64(s.Work.PeekCount) }),
	counter("rota_items_fetched_total", "Items that selects returned.",
		func(s manager.Status) float64 { return float64(s.Work.FetchItemCount) }),
	itemsOf("done", func(s manager.Status) float64 { return float64(s.Work.SuccessCount) }),
	itemsOf("failed", func(s manager.Status) float64 { return float64(s.Work.FailureCount) }),
	itemsOf("skipped", func(s manager.Status) float64 { return float64(s.Work.SkipCount) }),
	itemsOf("dead", func(s manager.Status) float64 { return float64(s.Work.DeadCount) }),
}

// conditions has the metric of each kind of conditions about which servers raise alerts.
var conditions = func() map[string]*prometheus.Desc {
	const help = "Conditions that the process sees and that last, by kind, with the status of the kind: PROBLEM or NOTE."
	list := map[string]*prometheus.Desc{}
	for _, k := range condition.Kinds() {
		if k.Alert != condition.Silent {
			list[k.Name] = prometheus.NewDesc("rota_conditions", help, []string{"task_type", "own_sign", "kind"},
				prometheus.Labels{"status": k.Status})
		}
	}
	return list
}()

// collectConditions counts what the process sees, of the task types that it serves also where that is nothing. A
// condition may be about another one, such as UNSERVED.
func collectConditions(m *manager.Manager, ownSign string, out chan<- prometheus.Metric) {
	counts := map[[2]string]int{} // by task type and kind
	for _, s := range m.Status() {
		for kind := range conditions {
			counts[[2]string{s.TaskType, kind}] = 0
		}
	}
	for _, c := range m.Conditions() {
		counts[[2]string{c.TaskType, c.Kind}]++
	}
	for of, n := range counts {
		if desc := conditions[of[1]]; desc != nil { // a program may have kinds of its own
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), of[0], ownSign, of[1])
		}
	}
}

// runMetrics are the metrics of task types of mode RUN.
var runMetrics = []taskMetric{
	gauge("rota_sweeps_running", "Queues that this process sweeps.",
		func(s manager.Status) float64 { return float64(s.Sweeps) }),
	gauge("rota_run_open", "1 if a run of the task type is RUNNING.",
		func(s manager.Status) float64 { return boolean(s.Runs.Open != "") }),
	gauge("rota_run_age_seconds", "Time since the RUNNING run was opened; 0 if there is none.", runAge),
	gauge("rota_run_last_success_timestamp_seconds", "The slot of the newest successful run that is kept; "+
		"0 if there is none.", func(s manager.Status) float64 { return unix(s.Runs.LastSuccess) }),
	gauge("rota_trigger_next_fire_timestamp_seconds", "When the next trigger of the task type is due; 0 if there is none.",
		func(s manager.Status) float64 { return unix(s.Runs.NextFire) }),
}

func runAge(s manager.Status) float64 {
	if s.Runs.Open == "" {
		return 0
	}
	return max(0, s.Runs.Now.Sub(s.Runs.Opened)).Seconds()
}

func unix(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMicro()) / 1e6
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func maxInFlight(s manager.Status) float64 {
	if s.MaxInFlight < 0 {
		return math.Inf(1)
	}
	return float64(s.MaxInFlight)
}

func failing(s manager.Status) float64 {
	if s.Failing == nil {
		return 0
	}
	return age(s.Failing.Since, 0)
}

// age returns the seconds since a moment, or another number if it is zero.
func age(since time.Time, none float64) float64 {
	if since.IsZero() {
		return none
	}
	return time.Since(since).Seconds()
}

func collectTasks(m *manager.Manager, out chan<- prometheus.Metric) {
	for _, s := range m.Status() {
		list := taskMetrics
		if s.InRuns {
			list = slices.Concat(taskMetrics, runMetrics)
		}
		for _, g := range list {
			labels := []string{s.TaskType, s.OwnSign}
			if g.label != "" {
				labels = append(labels, g.label)
			}
			out <- prometheus.MustNewConstMetric(g.desc, g.kind, g.value(s), labels...)
		}
	}
}

var (
	transactions = prometheus.NewDesc("rota_database_transactions_total", "Transactions and statements, "+
		"each counted once however often it was tried.", nil, nil)
	attempts = prometheus.NewDesc("rota_database_attempts_total", "Attempts at transactions and statements.", nil,
		nil)
	runsEnded = prometheus.NewDesc("rota_runs_total", "Runs that this process has ended, by their last state.",
		[]string{"task_type", "own_sign", "state"}, nil)
	databaseErrors = prometheus.NewDesc("rota_database_errors_total", "Attempts that failed, by class of error.",
		[]string{"class"}, nil)
)

func collectDatabase(c *center.Center, out chan<- prometheus.Metric) {
	s := c.Stats()
	out <- prometheus.MustNewConstMetric(transactions, prometheus.CounterValue, float64(s.Done))
	out <- prometheus.MustNewConstMetric(attempts, prometheus.CounterValue, float64(s.Tries))
	for kind, n := range s.Errors {
		out <- prometheus.MustNewConstMetric(databaseErrors, prometheus.CounterValue, float64(n), kind)
	}
	for end, n := range s.Runs {
		out <- prometheus.MustNewConstMetric(runsEnded, prometheus.CounterValue, float64(n), end.TaskType, c.OwnSign(),
			end.State)
	}
}

func backlogItems(s manager.Status) float64 {
	if n, known := s.Backlog.Estimate(); known {
		return float64(n)
	}
	return math.NaN()
}

func backlogAge(s manager.Status) float64 {
	if s.Backlog.Known && s.Backlog.Items == 0 {
		return 0
	}
	return age(s.Backlog.Oldest, math.NaN())
}
