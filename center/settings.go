package center

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/dutyrota/rota/internal/cron"
)

// SLEEP and NOTSLEEP are TBSchedule's two ways of processing.
const (
	// ProcessorSleep selects from a queue when nothing of it is in hand.
	ProcessorSleep = "SLEEP"
	// ProcessorNotSleep selects while other items of the queue are executed. The dealer must be Keyed.
	ProcessorNotSleep = "NOTSLEEP"
)

// The modes of a task type.
const (
	// ModeContinuous works as long as there are items.
	ModeContinuous = "CONTINUOUS"
	// ModeRun works in runs: each sweeps all queues once, until they are drained.
	ModeRun = "RUN"
)

// Settings are a task type's, as code or rota.yaml give them. The zero value of a field means
// its default. They make the row of a task type that is not in the database yet; from then on the
// row is in force, whoever changes it.
type Settings struct {
	// Queues is the number of numbered queues, "0" to Queues-1: an item's queue is
	// mod(id, Queues). Either this or QueueNames must be given.
	Queues int
	// QueueNames are the queues' names where items are divided by something else than a number,
	// a region, say. At most 150 bytes each.
	QueueNames []string

	// Mode is whether the task type works always or in runs. Defaults to CONTINUOUS.
	Mode string
	// ProcessorType is how items are processed. Defaults to SLEEP.
	ProcessorType string
	// HeartbeatInterval is the pause between two heartbeats. Defaults to 2 s.
	HeartbeatInterval time.Duration
	// JudgeDeadInterval is how long a server may be silent before others take its queues; at
	// least five heartbeats. Defaults to 10 s.
	JudgeDeadInterval time.Duration
	// ThreadNumber is how many calls of the dealer one server has under way at once. Defaults to 5.
	ThreadNumber int
	// FetchNumber is how many items one select is asked for. A hint. Defaults to 500.
	FetchNumber int
	// ExecuteNumber is how many items one call of Execute gets at most. Defaults to 1.
	ExecuteNumber int
	// SleepTimeNoData is how long an empty queue is left alone. Defaults to 500 ms.
	SleepTimeNoData time.Duration
	// SleepTimeInterval is the pause between the end of one page of items and the next select.
	// Defaults to none.
	SleepTimeInterval time.Duration
	// TaskParameter is handed to the dealer in each Selection.
	TaskParameter string
	// MaxQueuesPerServer is the most that one server may own; queues beyond all limits wait for
	// more servers. Defaults to no limit.
	MaxQueuesPerServer int
	// DrainTimeout is how long a leaving server waits for what it has in hand. Defaults to 30 s.
	DrainTimeout time.Duration
	// PermitRunStartTime and PermitRunEndTime are when a window of permitted work begins and ends: cron
	// expressions with seconds, as Quartz has them. Without an end, or with "-1", the window of a queue closes
	// with its first empty select. With the prefix "startrun:" a server's own start is a start, too. Default
	// to always.
	PermitRunStartTime string
	PermitRunEndTime   string
	// TimeZone is that of the cron expressions, such as Europe/Berlin. Defaults to UTC.
	TimeZone string
	// RatePerSecond is the most items that the whole task type executes in a second, over a long time; each
	// server takes its share by its queues. Defaults to no limit.
	RatePerSecond float64
	// BatchTimeout ends the context of a call of the dealer that takes longer. Defaults to none.
	BatchTimeout time.Duration
	// StallAfter is after how long a call of the dealer is worth an alert. Defaults to 5 min.
	StallAfter time.Duration
	// ItemMaxAttempts is after how many failures an item is dead, if the dealer is Keyed or Cursored. Defaults
	// to 25.
	ItemMaxAttempts int
	// ItemRetry is the pause of an item after it has failed, or of a queue if the dealer is not Keyed; it doubles
	// with each further failure, with jitter. Defaults to 1 s.
	ItemRetry time.Duration
	// ItemRetryMax is the longest such pause. Defaults to 5 min.
	ItemRetryMax time.Duration
	// Cron is, in mode RUN, when runs begin: a cron expression with seconds, as Quartz has them, in TimeZone. It makes
	// the trigger that has the task type's name. Defaults to none: runs are submitted.
	Cron string
	// Every is, in mode RUN and without Cron, the interval at which runs begin, at least 1 s. Defaults to none.
	Every time.Duration
	// After are, in mode RUN, the task types that this one runs after: each of their runs makes one of this, which
	// waits for them. Defaults to none.
	After []After
	// QueueMaxAttempts is, in mode RUN, how often the sweep of a queue may begin before its failure fails the run.
	// Defaults to 3.
	QueueMaxAttempts int
	// QueueRetry is the pause of a queue of a run after its first failure; it doubles with each further one, up to
	// a day. Defaults to 30 s.
	QueueRetry time.Duration
	// MaxRecoveries is how often in a row a queue of a run is taken over, after crashes, without progress in
	// between; one more fails it. Defaults to 5.
	MaxRecoveries int
	// RunTimeout is how long a run may take from its opening on: then it fails, whatever its queues do. Defaults
	// to 24 h.
	RunTimeout time.Duration
	// ExpireOwnSignInterval is how long an environment may be without servers before its queues are
	// deleted; see Center.ExpireOwnSigns. Defaults to 24 h.
	ExpireOwnSignInterval time.Duration
}

// WithDefaults returns the settings with each zero field replaced by its default.
func (s Settings) WithDefaults() Settings {
	if s.Mode == "" {
		s.Mode = ModeContinuous
	}
	if s.ProcessorType == "" {
		s.ProcessorType = ProcessorSleep
	}
	if s.TimeZone == "" {
		s.TimeZone = "UTC"
	}
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&s.HeartbeatInterval, 2 * time.Second},
		{&s.JudgeDeadInterval, 10 * time.Second},
		{&s.SleepTimeNoData, 500 * time.Millisecond},
		{&s.DrainTimeout, 30 * time.Second},
		{&s.StallAfter, 5 * time.Minute},
		{&s.ItemRetry, time.Second},
		{&s.ItemRetryMax, 5 * time.Minute},
		{&s.QueueRetry, 30 * time.Second},
		{&s.RunTimeout, 24 * time.Hour},
		{&s.ExpireOwnSignInterval, 24 * time.Hour},
	} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	for _, f := range []struct {
		field *int
		value int
	}{{&s.ThreadNumber, 5}, {&s.FetchNumber, 500}, {&s.ExecuteNumber, 1}, {&s.ItemMaxAttempts, 25}, {&s.QueueMaxAttempts, 3}, {&s.MaxRecoveries, 5}} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	return s
}

// Validate reports everything that is wrong with the settings, defaults applied, each error
// naming the setting, its value and the rule.
func (s Settings) Validate() error {
	s = s.WithDefaults()
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	errs = append(errs, s.validateQueues(), s.validateRuns())
	if s.ProcessorType != ProcessorSleep && s.ProcessorType != ProcessorNotSleep {
		bad("processor_type (%q) must be SLEEP or NOTSLEEP", s.ProcessorType)
	}
	if s.RatePerSecond < 0 || s.RatePerSecond > maxRate || math.IsNaN(s.RatePerSecond) {
		bad("rate_per_second (%g) must be between 0 and %g", s.RatePerSecond, maxRate)
	}
	if s.HeartbeatInterval < 100*time.Millisecond {
		bad("heartbeat_interval (%s) must be at least 100ms", s.HeartbeatInterval)
	}
	if s.JudgeDeadInterval < 5*s.HeartbeatInterval {
		bad("judge_dead_interval (%s) must be at least 5 x heartbeat_interval (%s)", s.JudgeDeadInterval, s.HeartbeatInterval)
	}
	for _, f := range []struct {
		name            string
		value, from, to int
	}{
		{"thread_number", s.ThreadNumber, 1, 10_000},
		{"fetch_number", s.FetchNumber, 1, 1_000_000},
		{"execute_number", s.ExecuteNumber, 1, 1_000_000},
		{"max_queues_per_server", s.MaxQueuesPerServer, 0, 1_000_000},
		{"item_max_attempts", s.ItemMaxAttempts, 1, 1_000_000},
		{"queue_max_attempts", s.QueueMaxAttempts, 1, 1_000_000},
		{"max_recoveries", s.MaxRecoveries, 1, 1_000_000},
	} {
		if f.value < f.from || f.value > f.to {
			bad("%s (%d) must be between %d and %d", f.name, f.value, f.from, f.to)
		}
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{
		{"sleep_time_nodata", s.SleepTimeNoData},
		{"sleep_time_interval", s.SleepTimeInterval},
		{"drain_timeout", s.DrainTimeout},
		{"batch_timeout", s.BatchTimeout},
		{"stall_after", s.StallAfter},
		{"item_retry", s.ItemRetry},
		{"queue_retry", s.QueueRetry},
	} {
		if f.value < 0 {
			bad("%s (%s) must not be negative", f.name, f.value)
		}
	}
	if _, err := cron.ParseWindow(s.PermitRunStartTime, s.PermitRunEndTime, s.TimeZone); err != nil {
		errs = append(errs, err)
	}
	if s.ExpireOwnSignInterval < s.JudgeDeadInterval {
		bad("expire_own_sign_interval (%s) must be at least judge_dead_interval (%s)", s.ExpireOwnSignInterval, s.JudgeDeadInterval)
	}
	if s.ItemRetryMax < s.ItemRetry {
		bad("item_retry_max (%s) must be at least item_retry (%s)", s.ItemRetryMax, s.ItemRetry)
	}
	return errors.Join(errs...)
}

// maxRate is more than any database bears.
const maxRate = 1e9

// maxQueues keeps a typing error from filling the database.
const maxQueues = 100_000

func (s Settings) validateQueues() error {
	switch {
	case s.Queues != 0 && len(s.QueueNames) > 0:
		return errors.New("queues must be a number or a list of names, not both")
	case len(s.QueueNames) == 0 && s.Queues < 1, s.Queues > maxQueues:
		return fmt.Errorf("queues (%d) must be between 1 and %d", s.Queues, maxQueues)
	}
	seen := map[string]bool{}
	for _, name := range s.QueueNames {
		if err := validName("queue", name, 150); err != nil {
			return err
		}
		if seen[name] {
			return fmt.Errorf("queue %q is named twice", name)
		}
		seen[name] = true
	}
	return nil
}

// maxRunTimeout is more than anybody waits for.
const maxRunTimeout = 10 * 8760 * time.Hour

func (s Settings) validateRuns() error {
	switch {
	case s.Mode != ModeContinuous && s.Mode != ModeRun:
		return fmt.Errorf("mode (%q) must be CONTINUOUS or RUN", s.Mode)
	case s.Mode == ModeRun && s.PermitRunStartTime != "":
		return fmt.Errorf("permit_run_start_time (%q) must not be set where mode is RUN: a trigger says when a run begins", s.PermitRunStartTime)
	case s.RunTimeout < time.Second || s.RunTimeout > maxRunTimeout:
		return fmt.Errorf("run_timeout (%s) must be between 1s and %s", s.RunTimeout, maxRunTimeout)
	}
	return s.validateSchedule()
}

// queueRows returns the queues in the order of their index.
func (s Settings) queueRows() []queueRow {
	if len(s.QueueNames) == 0 {
		return numberedQueues(0, s.Queues)
	}
	queues := make([]queueRow, len(s.QueueNames))
	for i, name := range s.QueueNames {
		queues[i] = queueRow{id: name, index: i}
	}
	return queues
}

// Difference is a setting that was given another value than the row's.
type Difference struct {
	Name  string // the setting's name in rota.yaml
	Given string
	Row   string
}

// DiffersFrom lists the settings that s gives explicitly and that are otherwise in the row.
func (s Settings) DiffersFrom(row Settings) []Difference {
	var diffs []Difference
	given, stored := reflect.ValueOf(s), reflect.ValueOf(row)
	for i := range given.NumField() {
		mine, theirs := given.Field(i), stored.Field(i)
		if mine.IsZero() || reflect.DeepEqual(mine.Interface(), theirs.Interface()) {
			continue
		}
		d := Difference{Name: settingName(given.Type().Field(i).Name), Given: textOf(mine.Interface()), Row: textOf(theirs.Interface())}
		if d.Given != d.Row {
			diffs = append(diffs, d)
		}
	}
	return diffs
}

// settingName turns SleepTimeNoData into sleep_time_nodata, as the columns are spelled.
func settingName(field string) string {
	var b strings.Builder
	for i, r := range strings.ReplaceAll(field, "NoData", "Nodata") {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

var nameRule = regexp.MustCompile(`^[^\s\x00-\x1f\x7f]+( [^\s\x00-\x1f\x7f]+)*$`)

// validName keeps out what no operator could read in a SELECT or type into a command.
func validName(what, name string, most int) error {
	switch {
	case name == "":
		return fmt.Errorf("%s must not be empty", what)
	case len(name) > most:
		return fmt.Errorf("%s (%q) must have at most %d bytes, not %d", what, name, most, len(name))
	case !nameRule.MatchString(name):
		return fmt.Errorf("%s (%q) must be printable, without white space around it", what, name)
	}
	return nil
}
