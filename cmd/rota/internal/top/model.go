package top

import (
	"context"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/ops"
)

// model is the state of the screen. All its methods are called by the goroutine of bubbletea's loop.
type model struct {
	ctx      context.Context // of the jobs: bubbletea gives its commands none
	reader   *reader
	every    time.Duration
	bindings []binding
	jobs     sync.WaitGroup // that run

	screen cli.Screen
	now    time.Time // by the clock of this process, once a second
	tabs   []*pane
	tab    int     // the list whose number was pressed
	panes  []*pane // what was looked into from there; the last one is shown

	job   *job // the one that runs; nil: none
	after *job // the one that begins when it has ended; nil: none
	turn  int  // counts the readings, so that only the last one of them is followed by another
	due   time.Time
}

// job is work that waits for the database.
type job struct {
	pane  *pane
	limit time.Duration
	do    func(ctx context.Context) (apply func()) // Update calls apply

	changes     bool // keys wait for its end
	interrupted bool // another job is to begin instead
	begun       time.Time
	stop        context.CancelFunc
}

// The messages that the model gets besides those of the terminal.
type (
	clock   time.Time // each second
	ended   struct{ apply func() }
	nextDue int // the turn whose next reading is due
)

// run shows the screen until the person at it quits, or a signal ends it.
func run(ctx context.Context, c *ops.Client, taskType string, every time.Duration) error {
	if err := cli.RequireTask(ctx, c, taskType); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	m := newModel(ctx, &reader{c: c}, scope{task: taskType}, every)
	m.screen = cli.ScreenOf(os.Stdout)
	defer m.jobs.Wait() // they use the connections, which the caller closes
	defer cancel()
	program := tea.NewProgram(m, tea.WithContext(ctx), tea.WithoutSignalHandler())
	// SIGINT comes from elsewhere: Ctrl-C is a key. The library's own handler would end the screen in the middle of a
	// picture, beside the goroutine that draws it.
	signals, stop := cli.UntilSignal(ctx)
	defer stop()
	defer context.AfterFunc(signals, program.Quit)()
	_, err := program.Run()
	return err
}

func newModel(ctx context.Context, r *reader, s scope, every time.Duration) *model {
	m := &model{ctx: ctx, reader: r, every: every, bindings: bindings(), now: time.Now()}
	for _, v := range tabViews {
		m.tabs = append(m.tabs, newPane(v, s))
	}
	return m
}

func newPane(v *view, s scope) *pane {
	p := &pane{view: v, scope: s, title: v.name}
	if about := s.String(); about != "" {
		p.title += " of " + about
	}
	return p
}

// pane returns the pane that is shown.
func (m *model) pane() *pane {
	if len(m.panes) > 0 {
		return m.panes[len(m.panes)-1]
	}
	return m.tabs[m.tab]
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return tea.Batch(tick(), m.readNow()) }

func tick() tea.Cmd { return tea.Tick(time.Second, func(t time.Time) tea.Msg { return clock(t) }) }

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case clock:
		m.now, cmd = time.Time(msg), tick()
	case tea.WindowSizeMsg:
		m.screen.Width, m.screen.Height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		cmd = m.press(tea.Key(msg))
	case tea.PasteMsg:
		if p := m.pane(); p.typing {
			p.edit("", cli.OneLine(msg.Content))
		}
	case nextDue:
		if int(msg) == m.turn {
			cmd = m.readNow()
		}
	case ended:
		cmd = m.end(msg)
	}
	m.pane().fit(m.screen, max(0, m.screen.Height-chrome))
	return m, cmd
}

// begin runs a job when the running one has ended, which it interrupts. A change is not interrupted, because press
// ignores the keys meanwhile.
func (m *model) begin(j *job) tea.Cmd {
	if m.job != nil {
		m.after, m.job.interrupted = j, true
		m.job.stop()
		return nil
	}
	ctx, cancel := context.WithTimeout(m.ctx, j.limit)
	m.job, j.begun, j.stop = j, time.Now(), cancel
	m.jobs.Add(1)
	return func() tea.Msg {
		defer m.jobs.Done()
		defer cancel()
		return ended{j.do(ctx)}
	}
}

// end applies what a job has found, and begins the next one.
func (m *model) end(e ended) tea.Cmd {
	done, next, p := m.job, m.after, m.pane()
	m.job, m.after = nil, nil
	e.apply()
	switch {
	case next != nil && next.pane == p:
		return m.begin(next)
	case p.view == nil:
		return nil
	case done.pane != p || done.interrupted:
		return m.readNow()
	}
	wait := max(m.every, p.took)
	switch {
	case p.failed > 0:
		wait = max(m.every, min(m.every<<min(p.failed, maxDoublings), retryEvery))
	case p.more:
		wait = 0
	}
	turn := m.turn
	m.due = time.Now().Add(wait)
	return tea.Tick(wait, func(time.Time) tea.Msg { return nextDue(turn) })
}

const (
	readLimit = 30 * time.Second
	// A list whose reading fails is read again after twice the interval, then four times the interval, up to retryEvery.
	retryEvery   = 10 * time.Second
	maxDoublings = 10
)

// readNow reads the pane that is shown. A reading that runs for it already goes on.
func (m *model) readNow() tea.Cmd {
	p := m.pane()
	if p.view == nil || m.job != nil && m.job.pane == p {
		return nil
	}
	m.turn++
	j := &job{pane: p, limit: readLimit}
	j.do = func(ctx context.Context) func() {
		begun := time.Now()
		c, err := p.view.read(ctx, m.reader, p.scope)
		at := time.Now()
		return func() {
			if err != nil && j.interrupted {
				return
			}
			p.took, p.err = at.Sub(begun), err
			if err != nil {
				p.failed++
				return
			}
			p.at, p.failed = at, 0
			p.show(c)
		}
	}
	return m.begin(j)
}

// open shows the list of a tab.
func (m *model) open(tab int) tea.Cmd {
	m.tab, m.panes = (tab+len(m.tabs))%len(m.tabs), nil
	return m.readNow()
}

// push shows a pane above the one that is shown.
func (m *model) push(p *pane) tea.Cmd {
	m.panes = append(m.panes, p)
	return m.readNow()
}

// back drops the filter of a list. Without one it shows what was shown before.
func (m *model) back() tea.Cmd {
	switch p := m.pane(); {
	case p.filter != "":
		p.edit("esc", "")
		return nil
	case len(m.panes) == 0:
		return nil
	}
	m.panes = m.panes[:len(m.panes)-1]
	return m.readNow()
}

// lookInto shows what the chosen row is about.
func (m *model) lookInto() tea.Cmd {
	p := m.pane()
	chosen, ok := p.chosen()
	switch {
	case !ok:
		return nil
	case p.view.into == nil:
		titles, texts := p.table.Fields(p.order[p.cursor])
		return m.push(&pane{title: p.title + ": a row", content: content{text: fieldsText(titles, texts)}})
	case p.view.into == queues && chosen.server == "":
		return m.push(newPane(queues, scope{task: chosen.task}))
	}
	return m.push(newPane(p.view.into, chosen.scope))
}
