package doctor

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/ops"
)

// Not known is a state of its own, with its reason and its age, and what was known before is of before.
func TestVerdict(t *testing.T) {
	t.Parallel()
	now := time.Now()
	failing, notes := condition.New(condition.Failing, "a", "x", ""), condition.New(condition.RetryItems, "a", "x", "")
	found := Judgement{Findings: []condition.Condition{notes, failing, failing}, At: now.Add(-12 * time.Second), Took: time.Second}
	old := found
	old.At = now.Add(-JudgementHolds - 4*time.Second)
	again := old // nobody has looked since, and somebody does now
	again.Since = now.Add(-time.Second)
	hangs := old
	hangs.Since = now.Add(-judgeLimit)
	slow := old
	slow.Took = 2 * time.Second
	away := errors.New("connection refused")
	for name, c := range map[string]struct {
		j       Judgement
		verdict string
	}{
		"found":                            {found, "2 problems, 1 note"},
		"notes alone":                      {found.Where(func(c condition.Condition) bool { return c.Status == condition.Note }), "No problems, 1 note"},
		"nothing":                          {found.Of("b"), "Nothing is wrong"},
		"no task types":                    {Judgement{Findings: []condition.Condition{condition.New(condition.NoTasks, "", "x", "")}, At: now}, "No task type has been registered"},
		"not yet":                          {Judgement{}, "Checking"},
		"never":                            {Judgement{}.failed(away, now.Add(-40*time.Second)).failed(away, now), "Not checked for 40s: connection refused"},
		"an outage":                        {found.failed(away, now.Add(-3*time.Second)), "Not checked for 12s: connection refused. Before: 2 problems, 1 note"},
		"checks that hang":                 {old, "Not checked for 34s: the checks have not ended. Before: 2 problems, 1 note"},
		"checks that have begun again":     {again, "Checking. Before: 2 problems, 1 note"},
		"checks again that hang":           {hangs, "Not checked for 34s: the checks have not ended. Before: 2 problems, 1 note"},
		"checks of a roster that is large": {slow, "2 problems, 1 note"},
	} {
		if got := c.j.Verdict(now); got != c.verdict {
			t.Errorf("%s: %q, want %q", name, got, c.verdict)
		}
		task := c.j.Tasks([]ops.TaskRecord{{TaskType: "a"}}, now)[0]
		if known := c.j.Known(now); known != (task.Problems != nil) || known != (task.Notes != nil) || known != (task.NotChecked == "") {
			t.Errorf("%s is known: %t; the task type has problems %v, notes %v and is not checked because of %q", name, known, task.Problems, task.Notes, task.NotChecked)
		}
	}
	if diff := cmp.Diff([]Tally{{"a", "FAILING", "PROBLEM", 2}, {"a", "RETRY_ITEMS", "NOTE", 1}}, found.Tallies()); diff != "" {
		t.Errorf("tallies (-want +got):\n%s", diff)
	}
}
