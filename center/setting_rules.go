package center

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/cron"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/slots"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/runs"
)

// Validate applies the defaults and returns all errors of the settings, one on each line. Each names the setting, its
// value and the rule.
func (s Settings) Validate() error {
	s = s.WithDefaults()
	if err := s.validateTexts(); err != nil {
		return err // the other errors would repeat the texts
	}
	errs := []error{s.validateQueues(), s.validateMode(), s.validateDatabase()}
	for _, row := range settingTable {
		errs = append(errs, row.validate(s))
	}
	if _, err := cron.ParseWindow(s.PermitRunStartTime, s.PermitRunEndTime, s.TimeZone); err != nil {
		errs = append(errs, err)
	}
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if s.JudgeDeadInterval < 5*s.HeartbeatInterval {
		bad("judge_dead_interval (%s) must be at least 5 x heartbeat_interval (%s)", s.JudgeDeadInterval, s.HeartbeatInterval)
	}
	if s.ExpireOwnSignInterval < s.JudgeDeadInterval {
		bad("expire_own_sign_interval (%s) must be at least judge_dead_interval (%s)", s.ExpireOwnSignInterval,
			s.JudgeDeadInterval)
	}
	if s.ItemRetryMax < s.ItemRetry {
		bad("item_retry_max (%s) must be at least item_retry (%s)", s.ItemRetryMax, s.ItemRetry)
	}
	return errors.Join(errs...)
}

// validateTexts checks that the texts fit into their columns (X12).
func (s Settings) validateTexts() error {
	var errs []error
	for _, row := range settingTable {
		if text, isText := row.Field(&s).(*string); isText {
			errs = append(errs, sqldb.CheckText(row.Name, *text, cmp.Or(int(row.most), sqldb.MaxText)))
		}
	}
	return errors.Join(errs...)
}

// validate checks one setting against its row.
func (row Setting) validate(s Settings) error {
	var value any
	ok, rule := true, fmt.Sprintf("be between %g and %g", row.least, row.most)
	switch v := row.Field(&s).(type) {
	case *string:
		if row.check != nil {
			if err := row.check(*v); err != nil {
				return fmt.Errorf("%s (%.60q) %w", row.Name, *v, err)
			}
		}
		value = fmt.Sprintf("%.60q", *v)
		ok, rule = row.oneOf == nil || slices.Contains(row.oneOf, *v), "be "+strings.Join(row.oneOf, " or ")
	case *int:
		value, rule = *v, fmt.Sprintf("be between %d and %d", int(row.least), int(row.most))
		ok = row.ruled || float64(*v) >= row.least && float64(*v) <= row.most
	case *float64:
		value = *v
		ok = *v >= row.least && *v <= row.most && !math.IsNaN(*v)
	case *time.Duration:
		value = *v
		ok, rule = row.inBounds(*v)
	}
	if ok {
		return nil
	}
	return fmt.Errorf("%s (%v) must %s", row.Name, value, rule)
}

// inBounds reports whether a duration is within the bounds of the row, and returns the rule. Its column has whole
// milliseconds: 1.5ms would become 1ms, and 0.5ms the default.
func (row Setting) inBounds(d time.Duration) (ok bool, rule string) {
	switch least, most := time.Duration(row.least), time.Duration(row.most); {
	case d > sqldb.MaxDuration:
		return false, fmt.Sprintf("be at most %s", sqldb.MaxDuration)
	case row.Column != "" && d%time.Millisecond != 0:
		return false, "be in whole milliseconds"
	case row.ruled:
		return true, ""
	case most > 0:
		return d >= least && d <= most, fmt.Sprintf("be between %s and %s", least, most)
	case least > 0:
		return d >= least, fmt.Sprintf("be at least %s", least)
	}
	return d >= 0, "not be negative"
}

// CheckStated returns an error if the named setting is 0 where a 0 means its default, although somebody has written
// the 0: in rota.yaml, or in "rota task set". In code such a field is merely left out.
func (s Settings) CheckStated(name string) error {
	for _, row := range settingTable {
		field := reflect.ValueOf(row.Field(&s)).Elem()
		if row.Name != name || row.Default == nil || !field.IsZero() || field.Kind() == reflect.String {
			continue
		}
		return fmt.Errorf("%s (%v) must be more than 0: leave it empty for the default, %v", name, field, row.Default)
	}
	return nil
}

func (s Settings) validateQueues() error {
	switch {
	case s.Queues != 0 && len(s.QueueNames) > 0:
		return errors.New("queues must be a number or a list of names, not both")
	case len(s.QueueNames) == 0 && s.Queues < 1, s.Queues > roster.MaxQueues:
		return fmt.Errorf("queues (%d) must be between 1 and %d", s.Queues, roster.MaxQueues)
	}
	seen := map[string]bool{}
	for _, name := range s.QueueNames {
		if err := roster.ValidName("queue", name, 150); err != nil {
			return err
		}
		if seen[name] {
			return fmt.Errorf("queue %q is named twice", name)
		}
		seen[name] = true
	}
	return nil
}

// validateMode checks the settings that only one mode has.
func (s Settings) validateMode() error {
	if s.Mode == ModeRun {
		if s.PermitRunStartTime != "" {
			return fmt.Errorf("permit_run_start_time (%q) must not be set where mode is RUN: a trigger says when a run begins",
				s.PermitRunStartTime)
		}
		return s.validateSchedule()
	}
	if s.Mode != ModeContinuous {
		return nil // the row says which modes there are, and no rule about a mode helps before
	}
	for _, row := range settingTable {
		if !row.needsRuns() {
			continue
		}
		if text := textOf(row.Field(&s)); text != "" {
			return fmt.Errorf("%s (%s) must not be set where mode is %s: only runs have a beginning", row.Name, text, s.Mode)
		}
	}
	return nil
}

// needsRuns reports whether the setting says when runs begin.
func (row Setting) needsRuns() bool {
	return row.Name == "cron" || row.Name == "every" || row.Name == "after"
}

func (s Settings) validateSchedule() error {
	if s.Cron != "" && s.Every != 0 {
		return fmt.Errorf("cron (%s) and every (%s) must not both be set", s.Cron, s.Every)
	}
	return errors.Join(s.validateCron(), s.validateEvery(), runs.ValidAfter(s.After))
}

func (s Settings) validateCron() error {
	if s.Cron == "" {
		return nil
	}
	if len(s.Cron) > runs.MaxExpression {
		return fmt.Errorf("cron must have at most %d bytes, not %d", runs.MaxExpression, len(s.Cron))
	}
	zone, err := cron.LoadZone(s.TimeZone)
	if err != nil {
		return nil //nolint:nilerr // Validate reports the zone through ParseWindow
	}
	_, err = cron.Parse(s.Cron, zone)
	return err
}

func (s Settings) validateEvery() error {
	if _, err := slots.Parse(runs.TriggerEvery, s.Every.String(), "", time.Unix(0, 0)); s.Every != 0 && err != nil {
		return fmt.Errorf("every (%s) must be from 1s to 8760h, in whole milliseconds", s.Every)
	}
	return nil
}

// CheckAfter validates the dependencies of task types that are defined together. The map is by name. CheckAfter
// returns an error for a cycle and for an upstream without runs. Define checks the upstreams that are not in the map.
func CheckAfter(tasks map[string]Settings) error {
	var edges []runs.Edge
	names := slices.Sorted(maps.Keys(tasks))
	for _, name := range names {
		for _, a := range tasks[name].After {
			if up, there := tasks[a.Upstream]; there && up.WithDefaults().Mode == ModeContinuous {
				return fmt.Errorf("task %s: after %s: %w", name, a.Upstream, runs.ErrNoRuns)
			}
			edges = append(edges, runs.Edge{TaskType: name, After: a})
		}
	}
	for _, name := range names {
		if path := runs.Cycle(edges, name); path != nil {
			return fmt.Errorf("task %s: after makes a cycle: %s", name, strings.Join(path, " after "))
		}
	}
	return nil
}
