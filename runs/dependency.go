package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// The rules of a dependency: the end of the upstream that lets the dependant start.
const (
	RuleSuccess  = "SUCCESS"  // it succeeds; any other end also ends the dependant
	RuleFinished = "FINISHED" // it ends in any state
)

// After is a static dependency of a task type: its runs wait for runs of Upstream (R5). A task type with several
// upstreams has one run for the runs of all of them that belong together: runs of the same slot or, if they were
// submitted, of the same key. If Any is set, each run of each upstream makes a run, unless they have the same key.
type After struct {
	Upstream string `db:"upstream"` // a task type of mode RUN
	Rule     string `db:"rule"`     // Defaults to SUCCESS.
	Any      bool   `db:"any_of"`   // the same for all upstreams of a task type; without a meaning for a single one
}

// String returns the upstream, followed by the rule unless that is the default.
func (a After) String() string {
	if a.Rule == "" || a.Rule == RuleSuccess {
		return a.Upstream
	}
	return a.Upstream + " " + a.Rule
}

// Edge is a row of schedule_task_after.
type Edge struct {
	TaskType string `db:"task_type"`
	After
}

// Dependencies reads the static dependencies of task types, in schedule_task_after.
type Dependencies struct{ db *sqldb.DB }

// After returns the static dependencies of a task type, by upstream.
func (d *Dependencies) After(ctx context.Context, taskType string) (after []After, err error) {
	after, err = sqldb.Records[After](ctx, d.db, `SELECT {columns} FROM schedule_task_after
		WHERE task_type = ? ORDER BY upstream`, taskType)
	return after, sqldb.Wrap(err, "read what %s runs after", taskType)
}

// WriteAfter replaces the static dependencies of a task type. Without after it removes them all. They apply to runs
// that are made from now on, in every own_sign. WriteAfter refuses dependencies of and on a task type that is unknown
// or not of mode RUN, and dependencies that form a cycle.
func WriteAfter(ctx context.Context, t sqldb.Tx, taskType string, after []After) error {
	// The statement locks all lock rows. Otherwise two transactions that each add an edge could close a cycle that neither
	// of them sees.
	if _, err := t.Exec(ctx, `UPDATE schedule_task_running SET version = version + 1`); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	if err := CheckAfter(ctx, t, taskType, "", after); err != nil {
		return err
	}
	return replaceAfter(ctx, t, taskType, after)
}

// CheckAfter returns the error with which WriteAfter refuses the dependencies of a task type that has a mode, or that
// of its row if mode is empty. It only reads.
func CheckAfter(ctx context.Context, q sqldb.Eacher, taskType, mode string, after []After) error {
	edges, err := ReadEdges(ctx, q)
	if err != nil {
		return err
	}
	edges = slices.DeleteFunc(edges, func(e Edge) bool { return e.TaskType == taskType })
	for _, a := range after {
		edges = append(edges, Edge{taskType, a})
	}
	type task struct{ Name, Mode string }
	tasks, err := sqldb.Records[task](ctx, q, `SELECT task_type, mode FROM schedule_task_type ORDER BY task_type`)
	if err != nil {
		return fmt.Errorf("read the task types: %w", err)
	}
	modes := map[string]string{}
	for _, t := range tasks {
		modes[t.Name] = t.Mode
	}
	if mode != "" {
		modes[taskType] = mode
	}
	if err := ValidAfter(after); err != nil {
		return err
	}
	names := []string{taskType}
	for _, a := range after {
		names = append(names, a.Upstream)
	}
	for i, name := range names {
		what := name
		if i > 0 {
			what = "after " + name
		}
		if modes[name] == "" {
			return fmt.Errorf("%s: %w (see rota task list)", what, roster.ErrUnknownTask)
		}
		if modes[name] != ModeRun && len(after) > 0 { // the change that removes them may end mode RUN, too
			return fmt.Errorf("%s: %w", what, ErrNoRuns)
		}
	}
	if path := Cycle(edges, taskType); path != nil {
		return fmt.Errorf("a cycle: %s", strings.Join(path, " after "))
	}
	return nil
}

// ErrNoRuns means that the task type is of mode CONTINUOUS.
var ErrNoRuns = errors.New("mode is CONTINUOUS, and only task types of mode RUN have runs")

func replaceAfter(ctx context.Context, t sqldb.Tx, taskType string, after []After) error {
	if _, err := t.Exec(ctx, `DELETE FROM schedule_task_after WHERE task_type = ?`, taskType); err != nil {
		return err
	}
	var edges []Edge
	for _, a := range after {
		a.Rule = cmp.Or(a.Rule, RuleSuccess)
		edges = append(edges, Edge{taskType, a})
	}
	return sqldb.Insert(ctx, t, "schedule_task_after", edges...)
}

// ReadEdges returns the static dependencies of all task types.
func ReadEdges(ctx context.Context, q sqldb.Eacher) ([]Edge, error) {
	edges, err := sqldb.Records[Edge](ctx, q, `SELECT {columns} FROM schedule_task_after ORDER BY task_type, upstream`)
	return edges, sqldb.Wrap(err, "read the dependencies")
}

// ValidAfter checks dependencies as far as that needs no database.
func ValidAfter(after []After) error {
	seen := map[string]bool{}
	for _, a := range after {
		if err := roster.ValidName("after", a.Upstream, 100); err != nil {
			return err
		}
		if a.Rule != "" && a.Rule != RuleSuccess && a.Rule != RuleFinished {
			return fmt.Errorf("after %s: rule (%q) must be SUCCESS or FINISHED", a.Upstream, a.Rule)
		}
		if seen[a.Upstream] {
			return fmt.Errorf("after %s: it is named twice", a.Upstream)
		}
		if first := after[0]; a.Any != first.Any {
			joined, each := first.Upstream, a.Upstream
			if first.Any {
				joined, each = each, joined
			}
			return fmt.Errorf("after (%s) and after_any (%s) must not both be set", joined, each)
		}
		seen[a.Upstream] = true
	}
	return nil
}

// Cycle returns a path from a task type upstream to itself, nil if there is none.
func Cycle(edges []Edge, from string) []string {
	visited := map[string]bool{}
	var walk func(path []string) []string
	walk = func(path []string) []string {
		for _, e := range edges {
			if e.TaskType != path[len(path)-1] || visited[e.Upstream] {
				continue
			}
			next := append(slices.Clone(path), e.Upstream)
			if e.Upstream == from {
				return next
			}
			visited[e.Upstream] = true
			if found := walk(next); found != nil {
				return found
			}
		}
		return nil
	}
	return walk([]string{from})
}

// downstream returns the direct and indirect dependants of root, each after its upstreams. It leaves out the members
// of a cycle and their dependants, because their runs would wait for each other forever. Only manual changes of the
// rows can make a cycle.
func downstream(edges []Edge, root string) (order []string) {
	reached := map[string]bool{root: true}
	for grown := true; grown; {
		grown = false
		for _, e := range edges {
			if reached[e.Upstream] && !reached[e.TaskType] {
				reached[e.TaskType], grown = true, true
			}
		}
	}
	placed := map[string]bool{root: true}
	blocked := func(name string) bool {
		return slices.ContainsFunc(edges, func(e Edge) bool {
			return e.TaskType == name && reached[e.Upstream] && !placed[e.Upstream]
		})
	}
	for grown := true; grown; {
		grown = false
		for _, e := range edges {
			if reached[e.TaskType] && !placed[e.TaskType] && !blocked(e.TaskType) {
				placed[e.TaskType], grown = true, true
				order = append(order, e.TaskType)
			}
		}
	}
	return order
}
