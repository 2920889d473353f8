package console

import (
	"cmp"
	"context"
	"html/template"
	"slices"
	"sync"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
	"github.com/dutyrota/rota/ops/verbs"
)

const (
	// diagnosisLimit is how long the checks of the doctor may take, which are more than a hundred statements.
	diagnosisLimit = 3 * time.Minute
	// diagnosisPatience is how long a viewer waits for the checks. The page has them two seconds later.
	diagnosisPatience = 60 * time.Millisecond
)

// found is a finding of the doctor.
type found struct {
	condition.Condition
	Verb *verbs.Verb // what the hint says, if that is a command which the viewer may give; else nil
}

// Bad reports whether the finding is a problem.
func (f found) Bad() bool { return f.Status == condition.Problem }

// firstSeen remembers since when the console has seen each finding, for those of which the doctor does not know since
// when they last.
type firstSeen struct {
	mu    sync.Mutex
	last  time.Time // the last checks; zero: there were none
	since map[string]time.Time
}

// seldom is how far apart checks are that do not tell since when a finding lasts. Nobody may have looked in between.
const seldom = 2 * time.Minute

func newFirstSeen() *firstSeen { return &firstSeen{since: map[string]time.Time{}} }

// date adds the times to findings. A new finding has none if the checks before are long ago: it may be old.
func (s *firstSeen) date(findings []condition.Condition, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := make(map[string]time.Time, len(findings))
	for i, f := range findings {
		at, known := s.since[f.Key()]
		if !known && now.Sub(s.last) < seldom {
			at = now
		}
		since[f.Key()] = at
		if f.Since.IsZero() {
			findings[i].Since = at
		}
	}
	s.since, s.last = since, now
}

// verbOf returns the verb of a hint that is a command and nothing else; nil for another hint.
func verbOf(c *ops.Client, f condition.Condition) *verbs.Verb {
	for _, verb := range verbs.All() {
		command := c.CommandLines("rota " + verb.Name + " " + human.ShellWord(f.TaskType))
		ofQueue := command + " " + human.ShellWord(f.QueueID)
		if verb.NoPage == "" && (f.Hint == command || f.QueueID != "" && f.Hint == ofQueue) {
			return verb
		}
	}
	return nil
}

// Page returns the address of the form of the verb.
func (f found) Page() template.URL {
	names := []string{"task", f.TaskType}
	if f.QueueID != "" {
		names = append(names, "queue", f.QueueID)
	}
	return link(pathOf(f.Verb)[1:], names...)
}

// diagnosis is what the doctor finds, of what the actor may look at.
type diagnosis struct {
	doctor.Judgement
	Bad, Good []found // the problems first, and the newest of them first
}

// Known reports whether the findings hold now.
func (d diagnosis) Known() bool { return d.Judgement.Known(time.Now()) }

// Verdict is the headline, for readers who stop there.
func (d diagnosis) Verdict() string { return d.Judgement.Verdict(time.Now()) }

// judge returns what the doctor finds, which serves all readers for a time. If the database has not answered another
// query of the page since then, it is not known whether that still holds.
func (v *viewer) judge(ctx context.Context, life, patience time.Duration) doctor.Judgement {
	p := v.cache.get(ctx, request{v.partKey("findings"), life, diagnosisLimit, func(ctx context.Context) (any, error) {
		began := time.Now()
		findings, err := doctor.Diagnose(ctx, v.client, "")
		if err == nil { // else some findings are missing, and would count as new later
			v.seen.date(findings, time.Now())
		}
		return doctor.Judgement{Findings: findings, At: began, Took: time.Since(began)}, err
	}}, patience)
	v.note("findings", p)
	j, _ := p.value.(doctor.Judgement)
	j.Since = p.asking
	for _, p := range v.parts {
		if p.err != nil && p.failing.After(j.At) && (j.Err == nil || p.failing.Before(j.Since)) {
			j.Err, j.Since = v.client.Brief(p.err), p.failing
		}
	}
	return j
}

// diagnose returns what the doctor finds. A page asks for it last, and shows the rest without it: in a large roster the
// checks take longer than a viewer waits, and what else the page reads would wait for them.
func (v *viewer) diagnose(ctx context.Context) (d diagnosis) {
	d.Judgement = v.judge(ctx, v.life(), min(diagnosisPatience, time.Until(v.until)))
	d.Findings = visible(v, d.Findings, func(c condition.Condition) string { return c.TaskType })
	for _, c := range d.Findings {
		f := found{Condition: c, Verb: verbOf(v.client, c)}
		if f.Verb != nil && !v.Actor.may(f.Verb.Right, f.TaskType) {
			f.Verb = nil
		}
		if f.Status == condition.OK {
			d.Good = append(d.Good, f)
		} else {
			d.Bad = append(d.Bad, f)
		}
	}
	slices.SortStableFunc(d.Bad, func(a, b found) int {
		if a.Bad() != b.Bad() {
			return cmp.Compare(b.Status, a.Status) // PROBLEM before NOTE
		}
		return b.Since.Compare(a.Since)
	})
	return d
}
