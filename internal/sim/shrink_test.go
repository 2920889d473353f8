package sim

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// rule returns the name of a broken rule: the words before the colon.
func rule(text string) string {
	name, _, _ := strings.Cut(text, ":")
	return name
}

// shrink returns a history that is as short as possible and breaks the same rule, with its result. It plays shorter and
// shorter histories until the deadline. A history may not break the rule each time, so the last one that did counts.
func shrink(t *testing.T, h *history, r result, deadline time.Time) (*history, result) {
	t.Helper()
	for again := true; again; {
		again = false
		for _, shorter := range h.shorter() {
			if time.Now().After(deadline) {
				return h, r
			}
			if played := play(t, shorter); len(played.broken) > 0 && rule(played.broken[0]) == rule(r.broken[0]) {
				h, r, again = shorter, played, true
				break
			}
		}
	}
	return h, r
}

// shorter returns histories that lack something: half of the steps, a task, a process, an option or a step.
func (h *history) shorter() (list []*history) {
	without := func(drop func(*history)) {
		c := &history{
			seed: h.seed, processes: h.processes, data: h.data, returns: h.returns, retention: h.retention,
			hints: h.hints, others: h.others, forgets: h.forgets,
			tasks: slices.Clone(h.tasks), steps: slices.Clone(h.steps),
		}
		drop(c)
		list = append(list, c)
	}
	for size := len(h.steps) / 2; size > 0; size /= 2 {
		for from := 0; from < len(h.steps); from += size {
			without(func(c *history) { c.steps = slices.Delete(c.steps, from, min(from+size, len(c.steps))) })
		}
		if size > 1 && len(h.steps) < 4 {
			break
		}
	}
	if len(h.tasks) > 1 {
		for i, t := range h.tasks {
			without(func(c *history) {
				c.tasks = slices.Delete(c.tasks, i, i+1)
				if slices.Contains(t.words, "other") {
					c.others = 0
				}
				c.steps = slices.DeleteFunc(c.steps, func(s step) bool { return s.names(t.name) })
			})
		}
	}
	if h.processes > 1 {
		without(func(c *history) { c.processes-- })
	}
	if h.returns > 0 {
		without(func(c *history) { c.returns = 0 })
	}
	if h.retention > 0 {
		without(func(c *history) { c.retention = 0 })
	}
	if h.hints {
		without(func(c *history) { c.hints = false })
	}
	for i, t := range h.tasks {
		for k, word := range t.words {
			if strings.HasPrefix(word, "queues=") || word == "other" {
				continue
			}
			without(func(c *history) {
				c.tasks[i].words = slices.Delete(slices.Clone(t.words), k, k+1)
			})
		}
	}
	return slices.DeleteFunc(list, func(c *history) bool { return !c.valid() })
}

// names reports whether a step is about a task.
func (s step) names(task string) bool {
	return slices.Contains(s.words, task) || slices.Contains(s.words, "task="+task)
}

// valid reports whether workers accept the tasks, each finds the tasks that it runs after, and each process has a task.
func (h *history) valid() bool {
	var names []string
	first := false
	for _, s := range h.tasks {
		names, first = append(names, s.name), first || !slices.Contains(s.words, "other")
	}
	return first && !slices.ContainsFunc(h.tasks, func(s taskSpec) bool {
		t, err := s.task()
		unknown := func(upstream string) bool { return !slices.Contains(names, upstream) }
		return err != nil || !accepted(t) || slices.ContainsFunc(s.upstreams(), unknown)
	})
}

// upstreams returns the tasks that the task runs after.
func (s taskSpec) upstreams() (names []string) {
	for _, word := range s.words {
		if list, after := strings.CutPrefix(word, "after="); after {
			for edge := range strings.SplitSeq(list, ",") {
				name, _, _ := strings.Cut(edge, "~")
				names = append(names, name)
			}
		}
	}
	return names
}
