// Package slots computes which slots of a trigger are due, which are missed, and which comes next (R2, R3). It is
// pure: it reads no clock and no database.
//
// A slot is an instant at which a trigger fires, always in UTC. Slots are computed and not enumerated: after a month of
// downtime, a trigger of every second takes the same time as after a second. cronCountMax bounds the one exception.
package slots

import (
	"errors"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/cron"
)

// The values of the column kind of schedule_trigger.
const (
	KindCron  = "CRON"
	KindEvery = "EVERY"
	KindOnce  = "ONCE"
)

// Schedule is all slots of a kind of trigger, without its bounds. Its methods take constant time.
type Schedule interface {
	// Next returns the first slot after an instant, or zero.
	Next(after time.Time) time.Time
	// Prev returns the last slot at or before an instant, or zero.
	Prev(by time.Time) time.Time
	// count returns how many slots come after one instant, up to another instant.
	count(after, by time.Time) int64
}

// Parse reads the expression of a trigger. For CRON it is an expression of package cron, in the time zone. For EVERY
// it is a Go duration; the slots are startAt plus its multiples. For ONCE it is a time in RFC 3339. Only CRON uses
// the zone. The error is one line and names the column, the value and the rule.
func Parse(kind, expression, zone string, startAt time.Time) (Schedule, error) {
	switch kind {
	case KindCron:
		return parseCron(expression, zone)
	case KindEvery:
		return parseEvery(expression, startAt)
	case KindOnce:
		return parseOnce(expression)
	default:
		return nil, fmt.Errorf("kind (%q) must be CRON, EVERY or ONCE", kind)
	}
}

// Without returns a schedule of kind CRON without the slots on excluded days, a list as for [cron.ParseExcludedDays].
// It refuses days for another kind.
func Without(s Schedule, days string) (Schedule, error) {
	excluded, err := cron.ParseExcludedDays(days)
	if err != nil || days == "" {
		return s, err
	}
	c, ok := s.(cronSchedule)
	if !ok {
		return nil, fmt.Errorf("excluded_days (%s) must be empty unless kind is CRON", days)
	}
	expr, err := c.expr.Without(excluded)
	if err != nil {
		return nil, fmt.Errorf("expression: %w", err)
	}
	return cronSchedule{expr}, nil
}

type cronSchedule struct{ expr *cron.Expr }

func parseCron(expression, zone string) (Schedule, error) {
	loc, err := cron.LoadZone(zone)
	if err != nil {
		return nil, err
	}
	expr, err := cron.Parse(expression, loc)
	if err != nil {
		return nil, fmt.Errorf("expression: %w", err)
	}
	return cronSchedule{expr}, nil
}

func (s cronSchedule) Next(after time.Time) time.Time { return s.expr.Next(after).UTC() }

func (s cronSchedule) Prev(by time.Time) time.Time { return s.expr.Prev(by).UTC() }

// cronCountMax is the most slots that count enumerates, which takes one or two milliseconds. A transaction is open
// meanwhile, and whether a trigger missed 90,000 or 100,000 slots makes no difference to an operator.
const cronCountMax = 1000

func (s cronSchedule) count(after, by time.Time) (n int64) {
	for at := s.Next(after); !at.IsZero() && !at.After(by) && n < cronCountMax; at = s.Next(at) {
		n++
	}
	return n
}

// everySchedule is an anchor and all whole periods after it.
type everySchedule struct {
	anchor time.Time
	period time.Duration
}

// maxPeriod keeps the arithmetic within the 292 years of a time.Duration.
const maxPeriod = 8760 * time.Hour

func parseEvery(expression string, startAt time.Time) (Schedule, error) {
	period, err := time.ParseDuration(expression)
	if err != nil || period < time.Second || period > maxPeriod || period%time.Millisecond != 0 {
		return nil, fmt.Errorf("expression (%q) of kind EVERY must be a duration from 1s to 8760h in whole milliseconds, "+
			"such as 90s", expression)
	}
	if startAt.Year() < 1970 {
		return nil, errors.New("start_at must be set for kind EVERY, and not before 1970: the slots count from it")
	}
	return everySchedule{startAt.UTC(), period}, nil
}

func (s everySchedule) Next(after time.Time) time.Time {
	if after.Before(s.anchor) {
		return s.anchor
	}
	return s.anchor.Add((after.Sub(s.anchor)/s.period + 1) * s.period)
}

func (s everySchedule) Prev(by time.Time) time.Time {
	if by.Before(s.anchor) {
		return time.Time{}
	}
	return s.anchor.Add(by.Sub(s.anchor) / s.period * s.period)
}

func (s everySchedule) count(after, by time.Time) int64 {
	first, last := s.Next(after), s.Prev(by)
	if last.Before(first) {
		return 0
	}
	return int64(last.Sub(first)/s.period) + 1
}

type onceSchedule struct{ at time.Time }

func parseOnce(expression string) (Schedule, error) {
	at, err := time.Parse(time.RFC3339, expression)
	if err != nil {
		return nil, fmt.Errorf("expression (%q) of kind ONCE must be a time with its offset, such as 2026-08-01T12:00:00Z",
			expression)
	}
	if at.Year() < 1000 || at.Year() > 9899 {
		return nil, fmt.Errorf("expression (%s) of kind ONCE must be in the years 1000 to 9899", expression)
	}
	return onceSchedule{at.UTC().Truncate(time.Microsecond)}, nil // the precision of the database
}

func (s onceSchedule) Next(after time.Time) time.Time {
	if s.at.After(after) {
		return s.at
	}
	return time.Time{}
}

func (s onceSchedule) Prev(by time.Time) time.Time {
	if s.at.After(by) {
		return time.Time{}
	}
	return s.at
}

func (s onceSchedule) count(after, by time.Time) int64 {
	if s.at.After(after) && !s.at.After(by) {
		return 1
	}
	return 0
}
