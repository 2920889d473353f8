package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/ops"
)

// Judgement is what is wrong with a roster at one moment, or why that is not known. Whatever says that something is
// wrong or right derives from a Judgement: the lists, the screens, the pages and the metrics. So all of them count and
// name the same findings. Not known is a state of its own: it is neither 0 nor nothing.
type Judgement struct {
	// Findings are those of the last checks that ended well, also if it is not known any more whether they still hold.
	Findings []condition.Condition

	At    time.Time     // when these checks began, by the clock of this process; zero: none have ended well
	Took  time.Duration // what these checks took
	Err   error         // why later checks have failed; nil: none have
	Since time.Time     // when the first of the later checks began; zero: there are none
}

const (
	// JudgementHolds is how old findings may be that are said to hold, beside three times what their checks took.
	JudgementHolds = 30 * time.Second

	// JudgeEvery is how long a screen that is renewed all the time shows the same findings at most: the checks read all
	// queues. They are newer where the checks are quick, since they take a fiftieth of the time (judgeShare).
	JudgeEvery = 20 * time.Second

	judgeShare = 50

	// judgeLimit is how long the checks of Judge may take.
	judgeLimit = 10 * time.Second
)

// Judge returns what Diagnose finds now, or the judgement before if its checks succeeded and began within the given
// time, and within 50 times what they took. The checks may take ten seconds. If they fail, Judge returns what was found
// before, with the reason why it is not known whether that still holds.
func Judge(ctx context.Context, c *ops.Client, taskType string, before Judgement, within time.Duration) Judgement {
	began := time.Now()
	if before.Err == nil && !before.At.IsZero() && began.Sub(before.At) < min(within, judgeShare*before.Took) {
		return before
	}
	ctx, cancel := context.WithTimeout(ctx, judgeLimit)
	defer cancel()
	findings, err := Diagnose(ctx, c, taskType)
	if err == nil {
		return Judgement{Findings: findings, At: began, Took: time.Since(began)}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %s", judgeLimit)
	}
	return before.failed(c.Brief(err), began)
}

// failed returns the judgement after later checks have failed, the first of which began at since.
func (j Judgement) failed(err error, since time.Time) Judgement {
	if j.Since.IsZero() {
		j.Since = since
	}
	j.Err = err
	return j
}

// Known reports whether the findings hold at a moment, by the clock of this process.
func (j Judgement) Known(now time.Time) bool {
	return !j.At.IsZero() && j.Err == nil && now.Sub(j.At) <= JudgementHolds+3*j.Took
}

// Unknown says in a sentence why it is not known at a moment whether something is wrong, and since when; empty if it is
// known.
func (j Judgement) Unknown(now time.Time) string {
	since := cmp.Or(j.At, j.Since, now)
	switch {
	case j.Known(now):
		return ""
	case j.Err == nil && (j.At.IsZero() || now.Sub(j.Since) < judgeLimit):
		return "Checking"
	case j.Err == nil:
		return "Not checked for " + human.Age(now.Sub(since).Seconds()) + ": the checks have not ended"
	}
	return "Not checked for " + human.Age(now.Sub(since).Seconds()) + ": " + j.Err.Error()
}

// Verdict says in a sentence what is wrong at a moment. What was known before an outage is said to be of before.
func (j Judgement) Verdict(now time.Time) string {
	unknown := j.Unknown(now)
	switch {
	case unknown == "":
		return j.verdict()
	case j.At.IsZero():
		return unknown
	}
	return unknown + ". Before: " + j.verdict()
}

func (j Judgement) verdict() string {
	problems, notes := j.Count(condition.Problem), j.Count(condition.Note)
	rest := ""
	if notes > 0 {
		rest = ", " + human.Count(notes, "note", "notes")
	}
	switch {
	case slices.ContainsFunc(j.Findings, func(c condition.Condition) bool { return c.Kind == condition.NoTasks.Name }):
		return "No task type has been registered"
	case problems > 0:
		return human.Count(problems, "problem", "problems") + rest
	case notes > 0:
		return "No problems" + rest
	}
	return "Nothing is wrong"
}

// Where returns the judgement with the findings for which keep returns true.
func (j Judgement) Where(keep func(condition.Condition) bool) Judgement {
	all := j.Findings
	j.Findings = nil
	for _, c := range all {
		if keep(c) {
			j.Findings = append(j.Findings, c)
		}
	}
	return j
}

// Of returns the judgement of a task type; for an empty name that of what belongs to no task type, such as the
// database.
func (j Judgement) Of(taskType string) Judgement {
	return j.Where(func(c condition.Condition) bool { return c.TaskType == taskType })
}

// Count returns the number of findings with a status.
func (j Judgement) Count(status string) (n int) {
	for _, c := range j.Findings {
		if c.Status == status {
			n++
		}
	}
	return n
}

// Tally is the number of findings of a kind that have one status in a task type.
type Tally struct {
	TaskType, Kind, Status string
	Count                  int
}

// String returns the kind, and the number if it is not 1: "FAILING", "STALLED x2".
func (t Tally) String() string {
	if t.Count == 1 {
		return t.Kind
	}
	return fmt.Sprintf("%s x%d", t.Kind, t.Count)
}

// Tallies counts the problems and the notes by task type and kind, the problems first, each in the order in which they
// were found.
func (j Judgement) Tallies() (list []Tally) {
	index := map[Tally]int{}
	for _, status := range []string{condition.Problem, condition.Note} {
		for _, c := range j.Findings {
			if c.Status != status {
				continue
			}
			t := Tally{c.TaskType, c.Kind, status, 0}
			at, counted := index[t]
			if !counted {
				at = len(list)
				index[t], list = at, append(list, t)
			}
			list[at].Count++
		}
	}
	return list
}

// Names returns the tallies of a status as texts, such as "STALLED x2".
func (j Judgement) Names(status string) []string {
	names := []string{}
	for _, t := range j.Tallies() {
		if t.Status == status {
			names = append(names, t.String())
		}
	}
	return names
}

// JudgedTask is a task type with what is wrong with it.
type JudgedTask struct {
	ops.TaskRecord
	Problems   []string  `json:"problems"`            // kinds, such as "FAILING" or "STALLED x2"; nil: not known
	Notes      []string  `json:"notes"`               // likewise
	CheckedAt  time.Time `json:"checked_at,omitzero"` // of the last checks, also if their findings may not hold any more
	NotChecked string    `json:"not_checked"`         // why it is not known what is wrong; empty: it is known
}

// Tasks returns task types with what is wrong with them at a moment.
func (j Judgement) Tasks(list []ops.TaskRecord, now time.Time) []JudgedTask {
	judged, unknown := make([]JudgedTask, len(list)), j.Unknown(now)
	for i, t := range list {
		judged[i] = JudgedTask{TaskRecord: t, CheckedAt: j.At, NotChecked: unknown}
		if unknown == "" {
			of := j.Of(t.TaskType)
			judged[i].Problems, judged[i].Notes = of.Names(condition.Problem), of.Names(condition.Note)
		}
	}
	return judged
}

// Outside returns the names of the findings that belong to no task type, such as "CLOCK", the problems first; empty if
// there are none.
func (j Judgement) Outside() string {
	of := j.Of("")
	return strings.Join(append(of.Names(condition.Problem), of.Names(condition.Note)...), ", ")
}
