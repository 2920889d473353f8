package cron

import (
	"fmt"
	"time"
)

// LoadZone returns the time zone of that name of the tz database; no name is UTC. Local is refused: it would be another
// zone on another host.
func LoadZone(name string) (*time.Location, error) {
	loc, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("time_zone (%q) must be a name in this host's tz database, such as Europe/Berlin", name)
	}
	return loc, nil
}

// zone maps between instants and wall times. A wall time is a time.Time in UTC with the hands of the zone's clock.
type zone struct{ loc *time.Location }

// maxJump is more than any clock was ever changed by at once (a day, at the date line), and more than any zone is away
// from UTC, and more than both.
const maxJump = 48 * time.Hour

// stretch is a time in which a zone's clock runs without a jump. Two may follow each other without one, too.
type stretch struct {
	start, end time.Time // the end is not part of it; zero: no bound
	offset     time.Duration
}

func (z zone) at(t time.Time) stretch {
	t = t.In(z.loc)
	start, end := t.ZoneBounds()
	if !end.IsZero() && !end.After(t) {
		end = end.Add(24 * time.Hour) // go.dev/issue/81583: on the last day of a leap year the end is that day's begin
	}
	_, offset := t.Zone()
	return stretch{start.UTC(), end.UTC(), time.Duration(offset) * time.Second}
}

// wall returns what the clock shows at t, had it always run as in this stretch.
func (s stretch) wall(t time.Time) time.Time { return t.UTC().Add(s.offset) }

// instant returns when the clock shows w, had it always run as in this stretch.
func (s stretch) instant(w time.Time) time.Time { return w.Add(-s.offset) }

func (s stretch) holds(t time.Time) bool {
	return !t.Before(s.start) && (s.end.IsZero() || t.Before(s.end))
}

// reached returns the latest wall time that the clock has shown by t: after it was set back, that is what it showed
// before, until it has caught up.
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

// first returns the first instant at which the clock shows w or more: the first of two, or the end of a gap.
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
