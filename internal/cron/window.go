package cron

import (
	"fmt"
	"strings"
	"time"
)

// Window is the time in which work is permitted: from each instant at which one expression fires until the next
// instant at which another expression fires (permit_run_start_time and permit_run_end_time of TBSchedule). A window
// that lies in a time that the clock skips opens at the first instant after it, for its usual length. It is
// immutable.
type Window struct {
	start, end *Expr     // a nil start means always open, a nil end means until the work is drained
	startRun   bool      // the start of a server opens the window, too
	started    time.Time // when the server started, if startRun
}

// WindowState is the state of a window at one instant. Times that do not exist are zero.
type WindowState struct {
	// Open means that work is permitted: the last start was later than the last end. A window without an end is open
	// from its first start on, and each start begins another window. A server that finds no more work treats the window
	// as closed until Since changes.
	Open bool
	// OpenEnded means that the window is open and ends when the work is drained.
	OpenEnded bool
	// Since is when the open window began. A start in an open window does not count. Zero if the window is always open.
	Since time.Time
	// NextStart is when the next window begins. A start that coincides with an end counts, although it opens nothing.
	NextStart time.Time
	// NextEnd is when the open window ends, or the next window if none is open.
	NextEnd time.Time
}

const (
	startRunPrefix = "startrun:" // of a start in TBSchedule: the start of a server counts as a start, too
	noEnd          = "-1"        // no end, in TBSchedule
)

// ParseWindow reads a window. Without a start it is always open. If the end is empty or "-1", the window closes when
// the work is drained. The prefix "startrun:" of the start takes effect with From. The zone is a name as for
// LoadZone. The error is one line and names the setting, the value and the rule.
func ParseWindow(start, end, zone string) (*Window, error) {
	loc, err := LoadZone(zone)
	if err != nil {
		return nil, err
	}
	if end = strings.TrimSpace(end); end == noEnd {
		end = ""
	}
	if start = strings.TrimSpace(start); start == "" {
		return alwaysOpen(end)
	}
	w := &Window{}
	start, w.startRun = strings.CutPrefix(start, startRunPrefix)
	if w.start, err = Parse(start, loc); err != nil {
		return nil, fmt.Errorf("permit_run_start_time: %w", err)
	}
	if end == "" {
		return w, nil
	}
	if w.end, err = Parse(end, loc); err != nil {
		return nil, fmt.Errorf("permit_run_end_time: %w", err)
	}
	if w.end.covers(w.start) {
		return nil, fmt.Errorf("permit_run_end_time (%q) must not fire at every permit_run_start_time (%q): "+
			"the window would never open", end, start)
	}
	return w, nil
}

func alwaysOpen(end string) (*Window, error) {
	if end != "" {
		return nil, fmt.Errorf("permit_run_end_time (%q) must be empty where permit_run_start_time is: "+
			"a window that never starts cannot end", end)
	}
	return &Window{}, nil
}

// From returns the window of a server that started at the given instant. If the start has the prefix "startrun:", that
// instant is a start like any other and begins a window that lasts until the next end.
func (w *Window) From(started time.Time) *Window {
	if !w.startRun {
		return w
	}
	from := *w
	from.started = started
	return &from
}

// At returns the state of the window at an instant.
func (w *Window) At(now time.Time) WindowState {
	if w.start == nil {
		return WindowState{Open: true}
	}
	if w.end == nil {
		return w.openEnded(now)
	}
	if since := w.since(now); !since.IsZero() {
		s := WindowState{Open: true, Since: since, NextEnd: w.nextEnd(now)}
		if !s.NextEnd.IsZero() {
			s.NextStart = w.start.Next(s.NextEnd)
		}
		return s
	}
	s := WindowState{NextStart: w.start.Next(now)}
	if !s.NextStart.IsZero() {
		s.NextEnd = w.nextEnd(s.NextStart)
	}
	return s
}

func (w *Window) openEnded(now time.Time) WindowState {
	since := w.start.Prev(now)
	if w.startedIn(since, now) {
		since = w.started
	}
	open := !since.IsZero()
	return WindowState{Open: open, OpenEnded: open, Since: since, NextStart: w.start.Next(now)}
}

// since returns the first start after the last end, or zero if none has come yet.
func (w *Window) since(now time.Time) time.Time {
	ended := w.lastEnd(now)
	since := w.start.Prev(now)
	if !since.After(ended) {
		since = time.Time{}
	} else if !ended.IsZero() {
		since = w.start.Next(ended)
	}
	if w.startedIn(ended, now) && (since.IsZero() || w.started.Before(since)) {
		since = w.started
	}
	return since
}

// startedIn reports whether the start of the server counts and lies between two instants, the later included.
func (w *Window) startedIn(after, by time.Time) bool {
	return w.started.After(after) && !w.started.After(by)
}

// covers reports whether e fires at each instant at which other fires. It ignores clock changes.
func (e *Expr) covers(other *Expr) bool {
	mine, theirs := &e.spec, &other.spec
	if theirs.Second&^mine.Second != 0 || theirs.Minute&^mine.Minute != 0 || theirs.Hour&^mine.Hour != 0 {
		return false
	}
	last := year.min + yearTypes
	if e.lastYear != 0 || other.lastYear != 0 {
		last = year.max + 1
	}
	my, their := e.midnights(), other.midnights()
	for day := their.wallAfter(newYear(year.min).Add(-1)); !day.IsZero() &&
		day.Year() <= last; day = their.wallAfter(day) {
		if !my.wallAfter(day.Add(-1)).Equal(day) {
			return false
		}
	}
	return true
}

// yearTypes is the number of years within which every kind of year occurs: each length with each first day of the week.
const yearTypes = 28

// midnights returns an expression that fires once on each day of e.
func (e *Expr) midnights() *Expr {
	days := *e
	days.spec.Second, days.spec.Minute, days.spec.Hour = 1, 1, 1
	return &days
}
