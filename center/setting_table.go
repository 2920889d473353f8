package center

import (
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/runs"
)

// Setting is a row of the table of settings. Parsing, validation, comparison, "rota task show" and the table of
// docs/settings.md follow from it: a new setting is a field of Settings, a row here and a column in the schema.
type Setting struct {
	Name    string // in rota.yaml, in messages and in output
	Column  string // in schedule_task_type; empty if the setting is kept in another table
	Default any    // the value that a zero means; nil if a zero means zero
	Help    string // the meaning of the setting, also in docs/settings.md

	field       func(*Settings) any
	least, most float64                 // bounds of a number, of a duration in nanoseconds, and of a text in bytes
	oneOf       []string                // the values of a text
	check       func(text string) error // the rule of a text with many values; nil if it has none
	ruled       bool                    // Validate has a rule for the value, instead of bounds
}

// Field returns a pointer to the setting's field in s: a *string, *bool, *int, *float64, *time.Duration, *[]string or
// *[]After.
func (row Setting) Field(s *Settings) any { return row.field(s) }

// Choices returns the values that the setting can have if they are few, and nil otherwise.
func (row Setting) Choices() []string {
	if _, ok := row.Field(&Settings{}).(*bool); ok {
		return []string{"false", "true"}
	}
	return row.oneOf
}

// SettingTable returns a row for each field of Settings, in the order of display.
func SettingTable() []Setting { return settingTable }

var settingTable = []Setting{
	{
		Name: "queues", Help: "a number, for `mod(id, total) = index`; or names",
		field: func(s *Settings) any { return &s.Queues }, ruled: true,
	},
	{
		Name: "queues", Help: "the names of the queues",
		field: func(s *Settings) any { return &s.QueueNames },
	},
	{
		Name: "execute_number", Column: "execute_number", Default: 1, Help: "items per call of Execute",
		field: func(s *Settings) any { return &s.ExecuteNumber }, least: 1, most: 1_000_000,
	},
	{
		Name: "fetch_number", Column: "fetch_number", Default: 500,
		Help:  "most items that a select is asked for besides failed ones; fewer if they take over a second",
		field: func(s *Settings) any { return &s.FetchNumber }, least: 1, most: 1_000_000,
	},
	{
		Name: "thread_number", Column: "thread_number", Default: 5, Help: "calls of the dealer in flight at once, per worker",
		field: func(s *Settings) any { return &s.ThreadNumber }, least: 1, most: 10_000,
	},
	{
		Name: "sleep_time_nodata", Column: "sleep_time_nodata_ms", Default: 500 * time.Millisecond,
		Help:  "pause of a queue after an empty select",
		field: func(s *Settings) any { return &s.SleepTimeNoData },
	},
	{
		Name: "sleep_time_interval", Column: "sleep_time_interval_ms",
		Help:  "pause between the end of a page and the next select",
		field: func(s *Settings) any { return &s.SleepTimeInterval },
	},
	{
		Name: "processor_type", Column: "processor_type", Default: ProcessorSleep,
		Help: "SLEEP selects when nothing of the queue is in flight; `NOTSLEEP` selects while other items are executed " +
			"(needs a key)",
		field: func(s *Settings) any { return &s.ProcessorType }, oneOf: []string{ProcessorSleep, ProcessorNotSleep},
	},
	{
		Name: "rate_per_second", Column: "rate_per_second",
		Help:  "most items of the whole task type in a second; each worker takes its share",
		field: func(s *Settings) any { return &s.RatePerSecond }, most: 1e9, // more than any database can do
	},
	{
		Name: "max_in_flight", Column: "max_in_flight",
		Help:  "most calls of Execute of the whole task type in flight at once; each worker takes its share",
		field: func(s *Settings) any { return &s.MaxInFlight }, most: 1_000_000,
	},
	{
		Name: "queue_rate_per_second", Column: "queue_rate_per_second",
		Help:  "most items of each queue in a second",
		field: func(s *Settings) any { return &s.QueueRatePerSecond }, most: 1e9,
	},
	{
		Name: "queue_max_in_flight", Column: "queue_max_in_flight",
		Help:  "most calls of Execute of each queue in flight at once",
		field: func(s *Settings) any { return &s.QueueMaxInFlight }, most: 1_000_000,
	},
	{
		Name: "batch_timeout", Column: "batch_timeout_ms", Help: "ends the context of a call that takes longer",
		field: func(s *Settings) any { return &s.BatchTimeout },
	},
	{
		Name: "stall_after", Column: "stall_after_ms", Default: 5 * time.Minute,
		Help:  "a call that takes longer raises an alert",
		field: func(s *Settings) any { return &s.StallAfter },
	},
	{
		Name: "item_max_attempts", Column: "item_max_attempts", Default: 25,
		Help:  "failures after which an item is dead (needs a key)",
		field: func(s *Settings) any { return &s.ItemMaxAttempts }, least: 1, most: 1_000_000,
	},
	{
		Name: "count_in_outage", Column: "count_in_outage",
		Help:  "`true` counts failures even while everything fails: poison dies sooner, and so do healthy items in an outage",
		field: func(s *Settings) any { return &s.CountInOutage },
	},
	{
		Name: "on_dead", Column: "on_dead", Default: OnDeadHold,
		Help:  "HOLD keeps the items behind a dead one that have its order key waiting; `PASS` lets them go on",
		field: func(s *Settings) any { return &s.OnDead }, oneOf: []string{OnDeadHold, OnDeadPass},
	},
	{
		Name: "item_retry", Column: "item_retry_ms", Default: time.Second,
		Help:  "pause of an item after its first failure; of its queue, if items have no key",
		field: func(s *Settings) any { return &s.ItemRetry },
	},
	{
		Name: "item_retry_factor", Column: "item_retry_factor", Default: 2.0,
		Help:  "by which the pause grows with each further failure",
		field: func(s *Settings) any { return &s.ItemRetryFactor }, least: 1, most: 100,
	},
	{
		Name: "item_retry_jitter", Column: "item_retry_jitter", Default: 0.5,
		Help:  "part of a pause by which it is longer or shorter at random",
		field: func(s *Settings) any { return &s.ItemRetryJitter }, most: 1,
	},
	{
		Name: "item_retry_max", Column: "item_retry_max_ms", Default: 6 * time.Hour,
		Help:  "the longest such pause; 25 attempts then take 2.3 days on average. A queue pauses for 1m at most",
		field: func(s *Settings) any { return &s.ItemRetryMax }, ruled: true,
	},
	{
		Name: "failing_after", Column: "failing_after", Default: 5,
		Help: "failed calls in a row, of more than one item, after which a task type is FAILING if nothing has " +
			"succeeded for half a minute; slow calls count more. After ten minutes in a single queue it is " +
			"QUEUE_FAILING",
		field: func(s *Settings) any { return &s.FailingAfter }, least: 1, most: 1_000_000,
	},
	{
		Name: "permit_run_start_time", Column: "permit_run_start_time",
		Help:  "when a window of permitted work begins: cron with seconds; `startrun:` before it: also when a worker starts",
		field: func(s *Settings) any { return &s.PermitRunStartTime }, most: runs.MaxExpression,
	},
	{
		Name: "permit_run_end_time", Column: "permit_run_end_time",
		Help:  "when the window ends: cron with seconds; without it, the first empty select ends the window",
		field: func(s *Settings) any { return &s.PermitRunEndTime }, most: runs.MaxExpression,
	},
	{
		Name: "time_zone", Column: "time_zone", Default: "UTC",
		Help:  "the time zone of the cron expressions, such as Europe/Berlin",
		field: func(s *Settings) any { return &s.TimeZone }, most: runs.MaxTimeZone,
	},
	{
		Name: "mode", Column: "mode", Default: ModeContinuous, Help: "`RUN`: works in runs; each sweeps all queues once",
		field: func(s *Settings) any { return &s.Mode }, oneOf: []string{ModeContinuous, ModeRun},
	},
	{
		Name: "cron", Help: "in mode RUN, when runs begin: cron with seconds in `time_zone`",
		field: func(s *Settings) any { return &s.Cron }, most: runs.MaxExpression,
	},
	{
		Name: "every", Help: "in mode RUN, instead of `cron`: the interval at which runs begin",
		field: func(s *Settings) any { return &s.Every }, ruled: true,
	},
	{
		Name: "after",
		Help: "in mode RUN, the upstream task types: `[extract]`; or `[extract: FINISHED]`, which also runs after a " +
			"failure. One run when the runs of all have ended for the same slot or key; with `after_any` instead, one for " +
			"each",
		field: func(s *Settings) any { return &s.After },
	},
	{
		Name: "queue_max_attempts", Column: "queue_max_attempts", Default: 3,
		Help:  "in mode RUN, sweeps of a queue until it fails",
		field: func(s *Settings) any { return &s.QueueMaxAttempts }, least: 1, most: 1_000_000,
	},
	{
		Name: "queue_retry", Column: "queue_retry_ms", Default: 30 * time.Second,
		Help:  "in mode RUN, the pause between two sweeps of a queue; doubles",
		field: func(s *Settings) any { return &s.QueueRetry },
	},
	{
		Name: "sweep_max_repeats", Column: "sweep_max_repeats", Default: 3,
		Help: "in mode RUN, selects in a row that return only items that the sweep has executed already, until it fails; " +
			"at least the steps of an item",
		field: func(s *Settings) any { return &s.SweepMaxRepeats }, least: 1, most: 1_000_000,
	},
	{
		Name: "max_recoveries", Column: "max_recoveries", Default: 5,
		Help: "take-overs of a queue in a row without progress, until its items run one by one; " +
			"in mode RUN the last one does so, and the next fails the queue if no item is found",
		field: func(s *Settings) any { return &s.MaxRecoveries }, least: 1, most: 1_000_000,
	},
	{
		Name: "run_timeout", Column: "run_timeout_ms", Default: 24 * time.Hour, Help: "in mode RUN, how long a run may take",
		field: func(s *Settings) any { return &s.RunTimeout }, least: float64(time.Second),
		most: float64(10 * 8760 * time.Hour),
	},
	{
		Name: "run_start_timeout", Column: "run_start_timeout_ms",
		Help:  "in mode RUN, how long a run may wait until it starts; then it fails",
		field: func(s *Settings) any { return &s.RunStartTimeout },
	},
	{
		Name: "coalesce", Column: "coalesce_runs",
		Help: "in mode RUN with `after`: `true` skips a run whose upstreams have succeeded while an earlier run of the " +
			"same trigger has not started",
		field: func(s *Settings) any { return &s.Coalesce },
	},
	{
		Name: "task_parameter", Column: "task_parameter", Help: "handed to each Select",
		field: func(s *Settings) any { return &s.TaskParameter },
	},
	{
		Name: "database", Column: "data_database",
		Help: "data database with the items of the queues, instead of the roster's: `orders`; `shard{{queue}}`; or " +
			"`0-3=a,4-7=b`",
		field: func(s *Settings) any { return &s.Database },
	},
	{
		Name: "max_queues_per_server", Column: "max_queues_per_server", Help: "most queues of one worker",
		field: func(s *Settings) any { return &s.MaxQueuesPerServer }, most: 1_000_000,
	},
	{
		Name: "max_servers", Column: "max_servers", Help: "most workers that own queues; the others stand by",
		field: func(s *Settings) any { return &s.MaxServers }, most: 1_000_000,
	},
	{
		Name: "max_servers_per_host", Column: "max_servers_per_host", Help: "most workers of one host that own queues",
		field: func(s *Settings) any { return &s.MaxServersPerHost }, most: 1_000_000,
	},
	{
		Name: "require", Column: "require_labels",
		Help:  "labels that a worker must have to own queues, such as `disk=ssd|nvme,zone=b`; `host=web1|web2` names hosts",
		field: func(s *Settings) any { return &s.Require }, check: checkSelector,
	},
	{
		Name: "prefer", Column: "prefer_labels",
		Help:  "labels that a worker should have: the others own queues only while no worker has these, or has room",
		field: func(s *Settings) any { return &s.Prefer }, check: checkSelector,
	},
	{
		Name: "spread", Column: "spread_label",
		Help:  "label whose values share the queues by the weights of their workers, such as `zone`",
		field: func(s *Settings) any { return &s.Spread }, check: plan.CheckLabelKey,
	},
	{
		Name: "balance", Column: "balance", Default: BalanceQueues,
		Help: "QUEUES gives the workers equal numbers of queues; `LOAD` equal loads, as they measure them beside the " +
			"backlog",
		field: func(s *Settings) any { return &s.Balance }, oneOf: []string{BalanceQueues, BalanceLoad},
	},
	{
		Name: "load_moves_per_hour", Column: "load_moves_per_hour", Default: 60,
		Help: "with `balance: LOAD`, how many queues an hour may move only to even the load: with 60, 60 may move " +
			"at once, and then one a minute",
		field: func(s *Settings) any { return &s.LoadMovesPerHour }, least: 1, most: 1_000_000,
	},
	{
		Name: "splittable", Column: "splittable",
		Help: "`true` lets numbered queues be split and merged one by one: each select must divide by the total of its " +
			"own queue",
		field: func(s *Settings) any { return &s.Splittable },
	},
	{
		Name: "hinted", Column: "hinted",
		Help: "`true` says that each program that adds items sends a hint for them: a worker that hears hints polls an " +
			"empty queue once in 30 s",
		field: func(s *Settings) any { return &s.Hinted },
	},
	{
		Name: "drain_timeout", Column: "drain_timeout_ms", Default: 30 * time.Second,
		Help:  "how long a leaving worker waits for its calls in flight; then it cancels them",
		field: func(s *Settings) any { return &s.DrainTimeout },
	},
	{
		Name: "heartbeat_interval", Column: "heartbeat_interval_ms", Default: 2 * time.Second,
		Help:  "pause between two heartbeats",
		field: func(s *Settings) any { return &s.HeartbeatInterval }, least: float64(100 * time.Millisecond),
	},
	{
		Name: "judge_dead_interval", Column: "judge_dead_interval_ms", Default: 10 * time.Second,
		Help:  "a worker that is silent for longer loses its queues to others; at least 5 heartbeats",
		field: func(s *Settings) any { return &s.JudgeDeadInterval }, ruled: true,
	},
	{
		Name: "expire_own_sign_interval", Column: "expire_own_sign_interval_ms", Default: 24 * time.Hour,
		Help:  "an environment without workers is forgotten after it",
		field: func(s *Settings) any { return &s.ExpireOwnSignInterval }, ruled: true,
	},
}

func checkSelector(text string) error {
	_, err := plan.ParseSelector(text)
	return err
}

// Value returns the value of the setting's column in schedule_task_type: an int, int64, bool, float64 or string.
func (row Setting) Value(s Settings) any {
	switch v := row.Field(&s).(type) {
	case *time.Duration:
		return v.Milliseconds()
	case *int:
		return *v
	case *bool:
		return *v
	case *string:
		return *v
	case *float64:
		return *v
	}
	panic(fmt.Sprintf("setting %s: column %s holds no list", row.Name, row.Column))
}
