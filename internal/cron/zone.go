package cron

import (
	"fmt"
	"time"
)

// LoadZone returns the time zone of that name in the tz database. An empty name is UTC. Local is refused, because it is
// another zone on another host.
func LoadZone(name string) (*time.Location, error) {
	loc, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("time_zone (%q) must be a name in this host's tz database, such as Europe/Berlin", name)
	}
	return loc, nil
}

// zone maps between instants and wall times. A wall time is a time.Time in UTC that reads like the clock of the zone.
type zone struct{ loc *time.Location }

// maxJump is longer than any jump of a clock (the longest was a day, at the date line), longer than the offset of any
// zone from UTC, and longer than their sum.
const maxJump = 48 * time.Hour

// stretch is a time in which the clock of a zone runs without a jump. There need not be a jump between two stretches.
type stretch struct {
	start, end time.Time // the end is excluded; zero means no bound
	offset     time.Duration
}

func (z zone) at(t time.Time) stretch {
	t = t.In(z.loc)
	start, end := t.ZoneBounds()
	if !end.IsZero() && !end.After(t) {
		// go.dev/issue/81583: on the last day of a leap year, ZoneBounds returns the begin of that day
		end = end.Add(24 * time.Hour)
	}
	_, offset := t.Zone()
	return stretch{start.UTC(), end.UTC(), time.Duration(offset) * time.Second}
}

// wall returns what the clock would show at t if it always ran as in this stretch.
func (s stretch) wall(t time.Time) time.Time { return t.UTC().Add(s.offset) }

// instant returns when the clock would show w if it always ran as in this stretch.
func (s stretch) instant(w time.Time) time.Time { return w.Add(-s.offset) }

func (s stretch) contains(t time.Time) bool {
	return !t.Before(s.start) && (s.end.IsZero() || t.Before(s.end))
}

// reached returns the latest wall time that the clock has shown by t. After the clock was set back, that is the wall
// time before the change, until the clock has caught up.
func (z zone) reached(t time.Time) time.Time {
	s := z.at(t)
	latest := s.wall(t)
	for !s.start.IsZero() && t.Sub(s.start) < maxJump {
		before := z.at(s.start.Add(-1))
		if shown := before.wall(s.start).Add(-1); shown.After(latest) {
			latest = shown
		}
		s = before
	}
	return latest
}

// first returns the first instant at which the clock shows w or a later time: the first of two such instants, or the
// end of a gap.
func (z zone) first(w time.Time) time.Time {
	s := z.at(w.Add(-maxJump))
	for !s.end.IsZero() && !s.wall(s.end).After(w) {
		s = z.at(s.end)
	}
	t := s.instant(w)
	if t.Before(s.start) {
		t = s.start
	}
	return t.In(z.loc)
}
