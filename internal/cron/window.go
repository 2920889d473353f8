package cron

import (
	"fmt"
	"strings"
	"time"
)

// Window says when work is permitted: from the instants at which one expression fires until those at which another one
// does (TBSchedule's permit_run_start_time and permit_run_end_time). It is immutable.
type Window struct {
	start, end *Expr // no start: always open; no end: until the work is drained
	atStart    bool
	started    time.Time
}

// WindowState is what a window is at one instant. Times that do not exist are zero.
type WindowState struct {
	// Open means that work is permitted: the last start was later than the last end. A window without an end is open
	// from its first start on, and each start begins another one: who finds no more work treats it as closed until
	// Since has changed.
	Open bool
	// OpenEnded means that the window is open, and ends when the work is drained.
	OpenEnded bool
	// Since is when the open window began; starts while it is open do not count. Zero if it is always open.
	Since time.Time
	// NextStart is when the next window begins. A start that coincides with an end counts, although it opens nothing.
	NextStart time.Time
	// NextEnd is when the open window ends; if none is open, when the next one will.
	NextEnd time.Time
}

const (
	startRun = "startrun:" // TBSchedule's prefix of a start: a server's own start is one, too
	noEnd    = "-1"        // TBSchedule's word for no end
)

// ParseWindow reads a window. No start means always open. An end that is empty or "-1" is none: the window closes when
// the work is drained. Whether the prefix "startrun:" of the start takes effect depends on From. The zone is as in
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
	start, w.atStart = strings.CutPrefix(start, startRun)
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
		return nil, fmt.Errorf("permit_run_end_time (%q) must not fire at every permit_run_start_time (%q): the window would never open", end, start)
	}
	return w, nil
}

func alwaysOpen(end string) (*Window, error) {
	if end != "" {
		return nil, fmt.Errorf("permit_run_end_time (%q) must be empty where permit_run_start_time is: a window that never starts cannot end", end)
	}
	return &Window{}, nil
}

// From returns the window as a server sees it that started then: if the start has the prefix "startrun:", that instant
// is a start like any other, and begins a window that lasts until the next end.
func (w *Window) From(started time.Time) *Window {
	if !w.atStart {
		return w
	}
	from := *w
	from.started = started
	return &from
}

// At returns the window's state at an instant.
func (w *Window) At(now time.Time) WindowState {
	if w.start == nil {
		return WindowState{Open: true}
	}
	if w.end == nil {
		return w.openEnded(now)
	}
	if since := w.since(now); !since.IsZero() {
		s := WindowState{Open: true, Since: since, NextEnd: w.end.Next(now)}
		if !s.NextEnd.IsZero() {
			s.NextStart = w.start.Next(s.NextEnd)
		}
		return s
	}
	s := WindowState{NextStart: w.start.Next(now)}
	if !s.NextStart.IsZero() {
		s.NextEnd = w.end.Next(s.NextStart)
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

// since returns the first start after the last end, zero if there is none by now.
func (w *Window) since(now time.Time) time.Time {
	ended := w.end.Prev(now)
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

// startedIn reports whether the server's start counts, and was after one instant and not after another.
func (w *Window) startedIn(after, by time.Time) bool {
	return w.started.After(after) && !w.started.After(by)
}

// covers reports whether e fires whenever other does, clock changes apart.
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
	for day := their.wallAfter(newYear(year.min).Add(-1)); !day.IsZero() && day.Year() <= last; day = their.wallAfter(day) {
		if !my.wallAfter(day.Add(-1)).Equal(day) {
			return false
		}
	}
	return true
}

// yearTypes is in how many years each kind of year comes, by its length and its first day of the week.
const yearTypes = 28

// midnights returns an expression that fires once on each of e's days.
func (e *Expr) midnights() *Expr {
	days := *e
	days.spec.Second, days.spec.Minute, days.spec.Hour = 1, 1, 1
	return &days
}
