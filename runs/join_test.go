package runs

import (
	"slices"
	"testing"
)

// R18: a join of which one upstream has slots and another has none is found, also through other task types.
func TestUnmetJoins(t *testing.T) {
	after := func(list ...string) (edges []Edge) { // pairs of a task type and its upstream
		for i := 0; i < len(list); i += 2 {
			edges = append(edges, Edge{TaskType: list[i], After: After{Upstream: list[i+1]}})
		}
		return edges
	}
	anyOf := after("j", "a", "j", "b")
	anyOf[0].Any, anyOf[1].Any = true, true
	for name, test := range map[string]struct {
		edges    []Edge
		fired    []string
		want     []string // the joins that are found
		slotless []string
	}{
		"both have slots": {after("j", "a", "j", "b"), []string{"a", "b"}, nil, nil},
		"one has none":    {after("j", "a", "j", "b"), []string{"a"}, []string{"j"}, []string{"b"}},
		"submitted only":  {after("j", "a", "j", "b"), nil, nil, nil},
		"any upstream":    {anyOf, []string{"a"}, nil, nil},
		"one root":        {after("a", "r", "b", "r", "j", "a", "j", "b"), []string{"r"}, nil, nil},
		"a join behind a join": {
			after("j", "a", "j", "b", "k", "j", "k", "a"), []string{"a"}, []string{"j", "k"}, []string{"b", "j"},
		},
		"a join that meets another": {after("k", "j", "k", "c", "j", "a", "j", "b"), []string{"a", "b", "c"}, nil, nil},
		"a cycle by hand":           {after("j", "a", "j", "b", "a", "j"), []string{"b"}, []string{"j"}, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			fired := map[string]bool{}
			for _, name := range test.fired {
				fired[name] = true
			}
			var got, slotless []string
			for _, j := range unmetJoins(test.edges, fired) {
				got, slotless = append(got, j.TaskType), append(slotless, j.Slotless...)
			}
			if !slices.Equal(got, test.want) || !slices.Equal(slotless, test.slotless) {
				t.Errorf("found %v without slots of %v, want %v and %v", got, slotless, test.want, test.slotless)
			}
		})
	}
}
