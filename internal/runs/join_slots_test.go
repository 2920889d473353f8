package runs

import (
	"slices"
	"testing"
	"time"
)

// R18: UnmetJoins finds joins whose upstreams share no slot, also through other task types and with bounded triggers.
func TestUnmetJoinsShareNoSlot(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	cron := func(target, expression string) Trigger {
		return Trigger{Name: target + expression, Target: target, Kind: TriggerCron, Expression: expression, TimeZone: "UTC", Status: TriggerActive}
	}
	ended := cron("b", "0 0 2 * * ?")
	ended.EndAt = now
	done := cron("b", "0 0 2 * * ?")
	done.Status = TriggerDone
	after := func(list ...string) (edges []Edge) { // pairs of a task type and its upstream
		for i := 0; i < len(list); i += 2 {
			edges = append(edges, Edge{TaskType: list[i], After: After{Upstream: list[i+1]}})
		}
		return edges
	}
	join := after("j", "a", "j", "b")
	anyOf := after("j", "a", "j", "b")
	anyOf[0].Any, anyOf[1].Any = true, true
	for name, test := range map[string]struct {
		edges    []Edge
		triggers []Trigger
		want     []string // the joins that are found
		slotless []string
	}{
		"the same slots":            {join, []Trigger{cron("a", "0 0 2 * * ?"), cron("b", "0 0 2 * * ?")}, nil, nil},
		"each hour and each night":  {join, []Trigger{cron("a", "0 0 * * * ?"), cron("b", "0 0 2 * * ?")}, nil, nil},
		"each second and a day":     {join, []Trigger{cron("a", "* * * * * ?"), cron("b", "0 0 2 1 1 ?")}, nil, nil},
		"half an hour apart":        {join, []Trigger{cron("a", "0 0 2 * * ?"), cron("b", "0 30 2 * * ?")}, []string{"j"}, nil},
		"a leap day":                {join, []Trigger{cron("a", "0 0 2 29 2 ?"), cron("b", "0 0 2 * * ?")}, nil, nil},
		"seconds that never meet":   {join, []Trigger{cron("a", "0/2 * * * * ?"), cron("b", "1/2 * * * * ?")}, []string{"j"}, nil},
		"a second trigger":          {join, []Trigger{cron("a", "0 0 2 * * ?"), cron("b", "0 30 2 * * ?"), cron("b", "0 0 2 * * ?")}, nil, nil},
		"a trigger that has ended":  {join, []Trigger{cron("a", "0 0 2 * * ?"), ended}, []string{"j"}, nil},
		"a trigger that is done":    {join, []Trigger{cron("a", "0 0 2 * * ?"), done}, []string{"j"}, []string{"b"}},
		"an upstream never fires":   {join, []Trigger{cron("a", "0 0 2 * * ?")}, []string{"j"}, []string{"b"}},
		"submitted only":            {join, nil, nil, nil},
		"any upstream":              {anyOf, []Trigger{cron("a", "0 0 2 * * ?"), cron("b", "0 30 2 * * ?")}, nil, nil},
		"one root":                  {after("a", "r", "b", "r", "j", "a", "j", "b"), []Trigger{cron("r", "0 0 2 * * ?")}, nil, nil},
		"a join behind a join":      {after("j", "a", "j", "b", "k", "j", "k", "a"), []Trigger{cron("a", "0 0 2 * * ?"), cron("b", "0 0 3 * * ?")}, []string{"j", "k"}, nil},
		"a join that meets another": {after("j", "a", "j", "b", "k", "j", "k", "c"), []Trigger{cron("a", "0 0 * * * ?"), cron("b", "0 0 2 * * ?"), cron("c", "0 0 2 * * ?")}, nil, nil},
		"a cycle by hand":           {after("j", "a", "j", "b", "a", "j"), []Trigger{cron("a", "0 0 2 * * ?"), cron("b", "0 0 2 * * ?")}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got, slotless []string
			for _, j := range unmetJoins(test.edges, test.triggers, now) {
				got, slotless = append(got, j.TaskType), append(slotless, j.Slotless...)
			}
			if !slices.Equal(got, test.want) || !slices.Equal(slotless, test.slotless) {
				t.Errorf("found %v without slots of %v, want %v and %v", got, slotless, test.want, test.slotless)
			}
		})
	}
}
