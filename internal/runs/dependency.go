package runs

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// The rules of a dependency: what of the upstream lets the dependant go on.
const (
	RuleSuccess  = "SUCCESS"  // its success; anything else ends the dependant
	RuleFinished = "FINISHED" // its end, whatever that is
)

// After is a static dependency: each run of Upstream makes a run of the task type that has it, which waits (R5).
type After struct {
	Upstream string // a task type of mode RUN
	Rule     string // Defaults to SUCCESS.
}

// edge is a row of schedule_task_after.
type Edge struct {
	TaskType string
	After
}

// DefineAfter says what a task type runs after, in place of what was said before; nothing removes all. It holds for
// runs that are made from now on, in all environments. It refuses task types that are unknown or not of mode RUN, and
// what would make a task type run after itself.
func (e *Engine) DefineAfter(ctx context.Context, taskType string, after ...After) error {
	err := e.db.Transact(ctx, e.db.Store, func(ctx context.Context, t sqldb.Tx) error {
		return WriteAfter(ctx, t, taskType, after)
	})
	if err != nil {
		return fmt.Errorf("define what %s runs after: %w", taskType, err)
	}
	return nil
}

func WriteAfter(ctx context.Context, t sqldb.Tx, taskType string, after []After) error {
	// All lock rows are the lock: two edges that are drawn at once could close a cycle that neither sees.
	if _, err := t.Exec(ctx, `UPDATE schedule_task_running SET version = version + 1`); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	edges, err := ReadEdges(ctx, t)
	if err != nil {
		return err
	}
	edges = slices.DeleteFunc(edges, func(e Edge) bool { return e.TaskType == taskType })
	for _, a := range after {
		edges = append(edges, Edge{taskType, a})
	}
	if err := checkAfter(ctx, t, taskType, after, edges); err != nil {
		return err
	}
	return replaceAfter(ctx, t, taskType, after)
}

func checkAfter(ctx context.Context, t sqldb.Tx, taskType string, after []After, edges []Edge) error {
	modes := map[string]string{}
	err := t.Each(ctx, func(rows *sql.Rows) error {
		var name, mode string
		err := rows.Scan(&name, &mode)
		modes[name] = mode
		return err
	}, `SELECT task_type, mode FROM schedule_task_type ORDER BY task_type`)
	if err != nil {
		return fmt.Errorf("read the task types: %w", err)
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
			return fmt.Errorf("%s: %w", what, roster.ErrUnknownTask)
		}
		if modes[name] != ModeRun {
			return fmt.Errorf("%s: %w", what, ErrNoRuns)
		}
	}
	if path := Cycle(edges, taskType); path != nil {
		return fmt.Errorf("a cycle: %s", strings.Join(path, " after "))
	}
	return nil
}

// errNoRuns: a task type that works always has no runs.
var ErrNoRuns = errors.New("mode is CONTINUOUS, and only task types of mode RUN have runs")

func replaceAfter(ctx context.Context, t sqldb.Tx, taskType string, after []After) error {
	if _, err := t.Exec(ctx, `DELETE FROM schedule_task_after WHERE task_type = ?`, taskType); err != nil {
		return err
	}
	for _, a := range after {
		if _, err := t.Exec(ctx, `INSERT INTO schedule_task_after (task_type, upstream, rule) VALUES (?, ?, ?)`, taskType, a.Upstream, cmp.Or(a.Rule, RuleSuccess)); err != nil {
			return err
		}
	}
	return nil
}

// After returns what a task type runs after, by name.
func (e *Engine) After(ctx context.Context, taskType string) (after []After, err error) {
	err = e.db.Each(ctx, func(rows *sql.Rows) error {
		var a After
		err := rows.Scan(&a.Upstream, &a.Rule)
		after = append(after, a)
		return err
	}, `SELECT upstream, rule FROM schedule_task_after WHERE task_type = ? ORDER BY upstream`, taskType)
	if err != nil {
		return nil, fmt.Errorf("read what %s runs after: %w", taskType, err)
	}
	return after, nil
}

func ReadEdges(ctx context.Context, t sqldb.Tx) (edges []Edge, err error) {
	err = t.Each(ctx, func(rows *sql.Rows) error {
		var e Edge
		err := rows.Scan(&e.TaskType, &e.Upstream, &e.Rule)
		edges = append(edges, e)
		return err
	}, `SELECT task_type, upstream, rule FROM schedule_task_after ORDER BY task_type, upstream`)
	if err != nil {
		return nil, fmt.Errorf("read the dependencies: %w", err)
	}
	return edges, nil
}

// cycle returns a way from a task type upstream to itself, nil if there is none.
func Cycle(edges []Edge, from string) []string {
	visited := map[string]bool{}
	var walk func(path []string) []string
	walk = func(path []string) []string {
		for _, e := range edges {
			if e.TaskType != path[len(path)-1] || visited[e.Upstream] {
				continue
			}
			way := append(slices.Clone(path), e.Upstream)
			if e.Upstream == from {
				return way
			}
			visited[e.Upstream] = true
			if found := walk(way); found != nil {
				return found
			}
		}
		return nil
	}
	return walk([]string{from})
}

// downstream returns everything that runs after root, directly or not, each after its upstreams. What is in a cycle,
// which only a hand can have made, and what is after it, is left out: its runs would wait for each other for ever.
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
		return slices.ContainsFunc(edges, func(e Edge) bool { return e.TaskType == name && reached[e.Upstream] && !placed[e.Upstream] })
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

// validAfter looks at what needs no database.
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
		seen[a.Upstream] = true
	}
	return nil
}

// String is the upstream, with the rule unless it is the default.
func (a After) String() string {
	if a.Rule == "" || a.Rule == RuleSuccess {
		return a.Upstream
	}
	return a.Upstream + " " + a.Rule
}
