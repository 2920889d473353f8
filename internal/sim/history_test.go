package sim

import (
	"bufio"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dutyrota/rota/processor"
)

// history is what is played: processes, tasks and steps. It is a text:
//
//	seed 7                                    of the links and of the work
//	processes 3                               a, b and c start at once
//	data 1                                    data databases, d0 and so on
//	returns 15s                               for how long a process that leaves keeps its queues for its name
//	retention 20s                             for how long the database keeps history
//	hints yes                                 processes look for hints of items
//	others 1 5s                               processes m and so on, of another environment, and their retention
//	task t0 Keyed Ordered intx queues=4 ...   what the dealer offers, how it writes, and the settings, with ~ for a space;
//	                                          other: it is one of the other environment; queues=[east,north]: names
//	12s kill a                                a step; world.take has all of them
type history struct {
	seed      uint64
	processes int
	data      int
	returns   time.Duration
	retention time.Duration
	hints     bool
	others    int
	forgets   time.Duration // the retention of the others
	tasks     []taskSpec
	steps     []step
}

// taskSpec is a task as the text has it.
type taskSpec struct {
	name  string
	words []string
}

// step is what happens at a time.
type step struct {
	at    time.Duration
	words []string
}

// String implements fmt.Stringer.
func (s step) String() string { return s.at.String() + " " + strings.Join(s.words, " ") }

// String returns the text of the history.
func (h *history) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d\nprocesses %d\ndata %d\n", h.seed, h.processes, h.data)
	if h.returns > 0 {
		fmt.Fprintf(&b, "returns %s\n", h.returns)
	}
	if h.retention > 0 {
		fmt.Fprintf(&b, "retention %s\n", h.retention)
	}
	if h.hints {
		fmt.Fprintf(&b, "hints yes\n")
	}
	if h.others > 0 {
		fmt.Fprintf(&b, "others %d %s\n", h.others, h.forgets)
	}
	for _, t := range h.tasks {
		fmt.Fprintf(&b, "task %s %s\n", t.name, strings.Join(t.words, " "))
	}
	for _, s := range h.steps {
		fmt.Fprintln(&b, s)
	}
	return b.String()
}

// parse returns the history of a text.
func parse(text string) (*history, error) {
	h := &history{}
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if err := h.add(words); err != nil {
			return nil, fmt.Errorf("line %d, %q: %w", n, lines.Text(), err)
		}
	}
	slices.SortStableFunc(h.steps, func(a, b step) int { return int(a.at - b.at) })
	return h, nil
}

func (h *history) add(words []string) (err error) {
	if len(words) < 2 {
		return fmt.Errorf("a line has at least two words")
	}
	switch words[0] {
	case "seed":
		h.seed, err = strconv.ParseUint(words[1], 10, 64)
	case "processes":
		h.processes, err = strconv.Atoi(words[1])
	case "data":
		h.data, err = strconv.Atoi(words[1])
	case "returns":
		h.returns, err = time.ParseDuration(words[1])
	case "retention":
		h.retention, err = time.ParseDuration(words[1])
	case "hints":
		h.hints = words[1] == "yes"
	case "others":
		if h.others, err = strconv.Atoi(words[1]); err == nil && len(words) > 2 {
			h.forgets, err = time.ParseDuration(words[2])
		}
	case "task":
		h.tasks = append(h.tasks, taskSpec{words[1], words[2:]})
	default:
		var at time.Duration
		at, err = time.ParseDuration(words[0])
		h.steps = append(h.steps, step{at, words[1:]})
	}
	return err
}

// task returns the task that the words describe.
func (s taskSpec) task() (*task, error) {
	t := &task{name: s.name, words: s.words, writes: "intx", takes: 200 * time.Millisecond}
	for _, word := range s.words {
		name, value, isSetting := strings.Cut(word, "=")
		switch {
		case name == "takes":
			d, err := time.ParseDuration(value)
			if err != nil {
				return nil, err
			}
			t.takes = d
		case isSetting:
			if err := t.settings.Set(name, strings.ReplaceAll(value, "~", " ")); err != nil {
				return nil, err
			}
		case slices.Contains([]string{"intx", "exec", "fence", "plain"}, word):
			t.writes = word
		case word == "peeks":
			t.peeks = true
		case word == "other":
			t.env = otherEnv
		case word == "counts":
			t.counts = true
		default:
			offers := processor.ParseCapabilities(word)
			if offers == (processor.Capabilities{}) {
				return nil, fmt.Errorf("task %s: no capability and no way to write is called %s", s.name, word)
			}
			add(&t.offers, offers)
		}
	}
	return t, nil
}

func add(to *processor.Capabilities, more processor.Capabilities) {
	to.Keyed = to.Keyed || more.Keyed
	to.Cursored = to.Cursored || more.Cursored
	to.Paged = to.Paged || more.Paged
	to.Ordered = to.Ordered || more.Ordered
	to.Discarder = to.Discarder || more.Discarder
	to.SetSelector = to.SetSelector || more.SetSelector
	to.Slotless = to.Slotless || more.Slotless
}
