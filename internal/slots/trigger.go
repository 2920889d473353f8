package slots

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// The values of the column misfire of schedule_trigger: which due slots fire if there are several, or if they are old.
const (
	MisfireOne  = "ONE"  // the newest
	MisfireSkip = "SKIP" // the newest, if it is younger than misfire_after
	MisfireAll  = "ALL"  // each, oldest first; if there are more than catchup_max, the newest of them
)

// Trigger is the columns of a row of schedule_trigger that decide when it fires. A slot at StartAt or EndAt fires. A
// zero StartAt, EndAt or MaxFires is no bound.
type Trigger struct {
	Schedule       Schedule
	StartAt, EndAt time.Time
	MaxFires       int64
	Fires          int64     // so far
	NextFireAt     time.Time // zero: the trigger is done
	Misfire        string
	MisfireAfter   time.Duration // for SKIP, above 0
	CatchupMax     int           // for ALL, at least 1
}

// First returns next_fire_at of a trigger that is new or has another schedule: its first slot after now and not
// before its start, or zero if it is done. The slot of ONCE may be in the past: it is due until it has fired.
func (t Trigger) First(now time.Time) time.Time {
	from := now
	if _, once := t.Schedule.(onceSchedule); once && t.Fires == 0 {
		from = time.Time{}
	}
	if t.StartAt.After(from) {
		from = t.StartAt.Add(-1)
	}
	return t.bounded(t.Schedule.Next(from), 0)
}

// Due returns the slots that fire now, oldest first, the number of missed slots, and next_fire_at, which is zero when
// the trigger is done. The error is one line and names the column, the value and the rule.
//
// The due slots are next_fire_at and all slots after it, up to now and end_at. next_fire_at is due even if the
// schedule does not contain it: the row has announced it, and a host with another tz database than the writer's must
// not lose the slot. misfire decides which due slots fire. max_fires counts firings and not slots, and it bounds ALL
// like catchup_max. The other due slots are missed. Their number is exact for EVERY and ONCE, and at most about a
// thousand for CRON.
func (t Trigger) Due(now time.Time) (fire []time.Time, missed int64, next time.Time, err error) {
	if err := t.validate(); err != nil {
		return nil, 0, time.Time{}, err
	}
	first := t.bounded(t.NextFireAt.UTC(), 0)
	if first.IsZero() || first.After(now) {
		return nil, 0, first, nil
	}
	newest := t.newest(first, now)
	fire, missed = t.choose(first, newest, now)
	return fire, missed, t.bounded(t.Schedule.Next(now), int64(len(fire))), nil
}

func (t Trigger) validate() error {
	switch t.Misfire {
	case MisfireOne:
		return nil
	case MisfireSkip:
		if t.MisfireAfter <= 0 {
			return fmt.Errorf("misfire_after (%v) must be above 0 for misfire SKIP", t.MisfireAfter)
		}
		return nil
	case MisfireAll:
		if t.CatchupMax < 1 {
			return fmt.Errorf("catchup_max (%d) must be at least 1 for misfire ALL", t.CatchupMax)
		}
		return nil
	default:
		return fmt.Errorf("misfire (%q) must be ONE, SKIP or ALL", t.Misfire)
	}
}

// bounded returns the slot, or zero if the trigger is done before it. more firings come before the slot.
func (t Trigger) bounded(slot time.Time, more int64) time.Time {
	if t.left() <= more || !t.EndAt.IsZero() && slot.After(t.EndAt) {
		return time.Time{}
	}
	return slot
}

// left returns the number of firings that the trigger has left.
func (t Trigger) left() int64 {
	if t.MaxFires == 0 {
		return math.MaxInt64
	}
	return t.MaxFires - t.Fires
}

// newest returns the last slot that is due.
func (t Trigger) newest(first, now time.Time) time.Time {
	until := now
	if !t.EndAt.IsZero() && t.EndAt.Before(now) {
		until = t.EndAt
	}
	if newest := t.Schedule.Prev(until); newest.After(first) {
		return newest
	}
	return first
}

// choose returns which of the slots from first to newest fire, and how many are missed.
func (t Trigger) choose(first, newest, now time.Time) (fire []time.Time, missed int64) {
	switch {
	case t.Misfire == MisfireSkip && now.Sub(newest) >= t.MisfireAfter:
		return nil, 1 + t.Schedule.count(first, newest)
	case t.Misfire == MisfireAll:
		fire = t.latest(first, newest, min(int64(t.CatchupMax), t.left()))
	default:
		fire = []time.Time{newest}
	}
	if oldest := fire[0]; oldest.After(first) {
		missed = 1 + t.Schedule.count(first, oldest.Add(-1))
	}
	return fire, missed
}

// latest returns the last n of the slots from first to newest, oldest first.
func (t Trigger) latest(first, newest time.Time, n int64) (list []time.Time) {
	for at := newest; int64(len(list)) < n; at = t.Schedule.Prev(at.Add(-1)) {
		if !at.After(first) {
			list = append(list, first)
			break
		}
		list = append(list, at)
	}
	slices.Reverse(list)
	return list
}
