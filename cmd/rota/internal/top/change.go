package top

import (
	"context"
	"errors"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/cmd/rota/internal/rostercmd"
	"github.com/dutyrota/rota/cmd/rota/internal/verbcmd"
	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/verbs"
)

// question is a change that a person is asked to confirm, in a pane of its own.
type question struct {
	change *verbs.Change // nil: there is none yet, or it was done
}

// waits reports whether the question waits for its answer.
func (q *question) waits() bool { return q.change != nil }

// operation returns what a key does to an object, by the state that the object has now.
type operation func(ctx context.Context, c *ops.Client, o object) (verbs.Operation, error)

// The errors of keys that do not fit the row.
var (
	errNoTask   = errors.New("this row is about no task type")
	errNoServer = errors.New("this row is about no worker: choose one in the list of workers")
)

// pauseOrResume pauses a task type, or resumes a paused one.
func pauseOrResume(ctx context.Context, c *ops.Client, o object) (verbs.Operation, error) {
	if o.task == "" {
		return nil, errNoTask
	}
	tasks, err := c.Tasks().List(ctx, o.task)
	if err != nil {
		return nil, err
	}
	if tasks[0].Paused {
		return verbs.ResumeTask{TaskType: o.task}, nil
	}
	return verbs.PauseTask{TaskType: o.task}, nil
}

// drainOrResume drains a server, or resumes one that may own no queues.
func drainOrResume(ctx context.Context, c *ops.Client, o object) (verbs.Operation, error) {
	if o.server == "" {
		return nil, errNoServer
	}
	servers, err := c.Servers().Matching(ctx, o.server)
	if err != nil {
		return nil, err
	}
	if s := servers[0].State; s == ops.StatePaused || s == ops.StateDraining {
		return verbs.ResumeServers{Servers: []string{o.server}}, nil
	}
	return verbs.DrainServers{Servers: []string{o.server}}, nil
}

// prepared is a change with the moves of queues that it causes.
type prepared struct {
	*verbs.Change
	plans []ops.Preview
}

// prepare reads what an operation would do.
func (o operation) prepare(ctx context.Context, c *ops.Client, to object) (p prepared, err error) {
	what, err := o(ctx, c, to)
	if err != nil {
		return p, err
	}
	if p.Change, err = what.Prepare(ctx, c); err != nil {
		return p, err
	}
	for _, taskType := range p.TaskTypes {
		scenario, moves := p.Scenarios[taskType]
		if !moves {
			continue
		}
		preview, err := c.Queues().Plan(ctx, taskType, scenario)
		if err != nil {
			return p, err
		}
		p.plans = append(p.plans, preview)
	}
	return p, nil
}

// text says what would happen.
func (p prepared) text(s cli.Screen) string {
	parts := []string{verbcmd.PreviewText(s, p.Change)}
	for _, plan := range p.plans {
		parts = append(parts, rostercmd.PlanText(s, plan))
	}
	return strings.Join(parts, "\n\n")
}

const (
	previewLimit = 30 * time.Second
	changeLimit  = time.Minute
)

// propose shows what an operation would do to the chosen row, and asks whether to do it.
func (m *model) propose(o operation) tea.Cmd {
	chosen, ok := m.pane().chosen()
	if !ok {
		return nil
	}
	p := &pane{title: "preview", ask: &question{}}
	m.panes = append(m.panes, p)
	return m.begin(&job{pane: p, limit: previewLimit, do: func(ctx context.Context) func() {
		ready, err := o.prepare(ctx, m.reader.c, chosen)
		return func() {
			if err != nil {
				p.say(errorText(err))
				return
			}
			p.title = ready.Title
			p.show(content{text: ready.text})
			if !ready.Nothing() {
				p.ask.change = ready.Change
			}
		}
	}})
}

// answer does what was asked, or goes back.
func (m *model) answer(key string) tea.Cmd {
	p := m.pane()
	switch key {
	case "y", "Y":
	case "n", "N", "esc", "q":
		return m.back()
	default:
		if b := m.binding(key); b != nil && b.moves {
			return b.do(m)
		}
		return nil
	}
	change := p.ask.change
	p.ask.change = nil
	p.say(change.Title + " ...")
	return m.begin(&job{pane: p, limit: changeLimit, changes: true, do: func(ctx context.Context) func() {
		done, err := change.Do(ctx, cli.Actor())
		return func() {
			var lines []string
			for _, d := range done {
				lines = append(lines, d.String())
			}
			if err != nil {
				lines = append(lines, errorText(err))
			}
			p.say(lines...)
		}
	}})
}

// say shows some lines instead of what the pane has shown.
func (p *pane) say(lines ...string) {
	p.show(content{text: func(s cli.Screen) string {
		var wrapped []string
		for _, line := range lines {
			wrapped = append(wrapped, s.Wrap(line))
		}
		return strings.Join(wrapped, "\n")
	}})
}

// errorText returns an error on one line.
func errorText(err error) string { return "Not done: " + escape.Text(cli.OneLine(err.Error())) }
