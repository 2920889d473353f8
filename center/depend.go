package center

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

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
type edge struct {
	taskType string
	After
}

// DefineAfter says what a task type runs after, in place of what was said before; nothing removes all. It holds for
// runs that are made from now on, in all environments. It refuses task types that are unknown or not of mode RUN, and
// what would make a task type run after itself.
func (e *Engine) DefineAfter(ctx context.Context, taskType string, after ...After) error {
	err := e.db.Transact(ctx, e.db.Store, func(ctx context.Context, t sqldb.Tx) error {
		return writeAfter(ctx, t, taskType, after)
	})
	if err != nil {
		return fmt.Errorf("define what %s runs after: %w", taskType, err)
	}
	return nil
}

func writeAfter(ctx context.Context, t sqldb.Tx, taskType string, after []After) error {
	// All lock rows are the lock: two edges that are drawn at once could close a cycle that neither sees.
	if _, err := t.Exec(ctx, `UPDATE schedule_task_running SET version = version + 1`); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	edges, err := readEdges(ctx, t)
	if err != nil {
		return err
	}
	edges = slices.DeleteFunc(edges, func(e edge) bool { return e.taskType == taskType })
	for _, a := range after {
		edges = append(edges, edge{taskType, a})
	}
	if err := checkAfter(ctx, t, taskType, after, edges); err != nil {
		return err
	}
	return replaceAfter(ctx, t, taskType, after)
}

func checkAfter(ctx context.Context, t sqldb.Tx, taskType string, after []After, edges []edge) error {
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
	if err := validAfter(after); err != nil {
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
			return fmt.Errorf("%s: %w", what, ErrUnknownTask)
		}
		if modes[name] != modeRun {
			return fmt.Errorf("%s: %w", what, errNoRuns)
		}
	}
	if path := cycle(edges, taskType); path != nil {
		return fmt.Errorf("a cycle: %s", strings.Join(path, " after "))
	}
	return nil
}

// errNoRuns: a task type that works always has no runs.
var errNoRuns = errors.New("mode is CONTINUOUS, and only task types of mode RUN have runs")

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

func readEdges(ctx context.Context, t sqldb.Tx) (edges []edge, err error) {
	err = t.Each(ctx, func(rows *sql.Rows) error {
		var e edge
		err := rows.Scan(&e.taskType, &e.Upstream, &e.Rule)
		edges = append(edges, e)
		return err
	}, `SELECT task_type, upstream, rule FROM schedule_task_after ORDER BY task_type, upstream`)
	if err != nil {
		return nil, fmt.Errorf("read the dependencies: %w", err)
	}
	return edges, nil
}

// cycle returns a way from a task type upstream to itself, nil if there is none.
func cycle(edges []edge, from string) []string {
	visited := map[string]bool{}
	var walk func(path []string) []string
	walk = func(path []string) []string {
		for _, e := range edges {
			if e.taskType != path[len(path)-1] || visited[e.Upstream] {
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
func downstream(edges []edge, root string) (order []string) {
	reached := map[string]bool{root: true}
	for grown := true; grown; {
		grown = false
		for _, e := range edges {
			if reached[e.Upstream] && !reached[e.taskType] {
				reached[e.taskType], grown = true, true
			}
		}
	}
	placed := map[string]bool{root: true}
	blocked := func(name string) bool {
		return slices.ContainsFunc(edges, func(e edge) bool { return e.taskType == name && reached[e.Upstream] && !placed[e.Upstream] })
	}
	for grown := true; grown; {
		grown = false
		for _, e := range edges {
			if reached[e.taskType] && !placed[e.taskType] && !blocked(e.taskType) {
				placed[e.taskType], grown = true, true
				order = append(order, e.taskType)
			}
		}
	}
	return order
}
