package console

import (
	"errors"
	"strings"
	"time"
)

// errChecking is the error of an answer that needs a part whose query has not ended.
var errChecking = errors.New("the database has not answered yet")

// with returns what two queries say that are one part of a page: as old as the older result, and not known before both
// are.
func (p part) with(q part) part {
	switch {
	case !q.known():
		p.value, p.at = nil, time.Time{}
	case p.known() && q.at.Before(p.at):
		p.at = q.at
	}
	if q.err != nil && (p.err == nil || q.failing.Before(p.failing)) {
		p.err, p.failing = q.err, q.failing
	}
	if p.asking.IsZero() || !q.asking.IsZero() && q.asking.Before(p.asking) {
		p.asking = q.asking
	}
	p.outdated = p.outdated || q.outdated
	return p
}

// fine reports whether a page shows the part without a word about it.
func (p part) fine() bool {
	return p.known() && p.err == nil && !p.outdated && time.Since(p.at) <= maxAge
}

// note keeps what a query has said for the part of the page that is named by the first word of the query's key.
func (v *viewer) note(key string, p part) {
	if v.parts == nil {
		v.parts = map[string]part{}
	}
	name, _, _ := strings.Cut(key, "\x00")
	if other, noted := v.parts[name]; noted {
		p = other.with(p)
	}
	v.parts[name] = p
}

// knows reports whether the parts with these names are known, as far as the page has asked for them.
func (v *viewer) knows(names ...string) bool {
	for _, name := range names {
		if p, asked := v.parts[name]; asked && !p.known() {
			return false
		}
	}
	return true
}

// readAt returns when a part was read; the zero time if it is not known.
func (v *viewer) readAt(name string) time.Time { return v.parts[name].at }

// asOf returns when the oldest part was read.
func (v *viewer) asOf() (oldest time.Time) {
	for _, p := range v.parts {
		if p.known() && (oldest.IsZero() || p.at.Before(oldest)) {
			oldest = p.at
		}
	}
	return oldest
}

// failing returns since when the database does not answer; the zero time if it does.
func (v *viewer) failing() (since time.Time) {
	for _, p := range v.parts {
		if p.err != nil && (since.IsZero() || p.failing.Before(since)) {
			since = p.failing
		}
	}
	return since
}

// partState is what a page says of a part that it does not know, or that is not fresh. Not known is a state of its own:
// it is neither empty nor without trouble.
type partState struct {
	Known  bool
	At     time.Time // when it was read, if it is known
	Reason string    // why it is not fresh; empty while the database has not answered
	Since  time.Time // since when that is so, or when the query began that is under way; zero if none is
	err    error     // Reason is its short line; nil if there is none
}

// State returns what the page says of parts, which stand at one place; nil if they are fresh.
func (v *view) State(names ...string) *partState {
	var all part
	for i, name := range names {
		p, asked := v.viewer.parts[name]
		switch {
		case !asked:
			return nil
		case i == 0:
			all = p
		default:
			all = all.with(p)
		}
	}
	if all.fine() {
		return nil
	}
	s := &partState{Known: all.known(), At: all.at, Since: all.asking}
	if all.err != nil {
		s.Reason, s.Since, s.err = v.viewer.client.Brief(all.err).Error(), all.failing, all.err
	}
	return s
}

// Knows reports whether the parts are known.
func (v *view) Knows(names ...string) bool { return v.viewer.knows(names...) }

// Command returns a command line of rota for the environment of the page.
func (v *view) Command(line string) string { return v.viewer.client.CommandLines(line) }

// Lacking returns what the page says of all parts that it does not know; nil if it lacks none.
func (v *view) Lacking() *partState {
	var names []string
	for name := range v.viewer.parts {
		if !v.viewer.knows(name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return v.State(names...)
}
