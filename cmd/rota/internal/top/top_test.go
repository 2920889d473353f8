package top

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/cmd/rota/internal/rostercmd"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

// person is a person in front of a model, in a bubble: its loop is that of bubbletea.
type person struct {
	*testing.T
	m    *model
	msgs chan tea.Msg
	left bool
}

// sit shows a model of lists that read does for each of them.
func sit(t *testing.T, read func(ctx context.Context, list string) (content, error)) *person {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	m := newModel(ctx, nil, scope{}, 2*time.Second)
	m.screen = cli.Screen{Width: 80, Height: 24}
	for _, p := range m.tabs {
		v := *p.view
		v.read = func(ctx context.Context, _ *reader, _ scope) (content, error) { return read(ctx, v.name) }
		v.into = nil
		p.view = &v
	}
	p := &person{T: t, m: m, msgs: make(chan tea.Msg, 1000)}
	t.Cleanup(func() {
		p.left = true
		cancel()
		time.Sleep(time.Minute) // until all commands have ended
	})
	p.start(m.Init())
	p.update(tea.WindowSizeMsg{Width: 80, Height: 24})
	return p
}

func (p *person) start(cmd tea.Cmd) {
	if cmd != nil && !p.left {
		go func() {
			switch msg := cmd().(type) {
			case tea.BatchMsg:
				for _, cmd := range msg {
					p.start(cmd)
				}
			default:
				p.msgs <- msg
			}
		}()
	}
}

func (p *person) update(msg tea.Msg) {
	_, cmd := p.m.Update(msg)
	p.start(cmd)
}

// press presses keys, which are letters or names.
func (p *person) press(keys ...string) {
	for _, key := range keys {
		codes := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "down": tea.KeyDown, "backspace": tea.KeyBackspace, "end": tea.KeyEnd, "pgup": tea.KeyPgUp}
		if code := codes[key]; code != 0 {
			p.update(tea.KeyPressMsg{Code: code})
			continue
		}
		for _, r := range key {
			p.update(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
}

// wait lets time pass.
func (p *person) wait(d time.Duration) {
	for end := time.After(d); ; {
		select {
		case msg := <-p.msgs:
			p.update(msg)
		case <-end:
			for synctest.Wait(); len(p.msgs) > 0; synctest.Wait() {
				p.update(<-p.msgs)
			}
			return
		}
	}
}

func (p *person) sees(patterns ...string) {
	p.Helper()
	for _, pattern := range patterns {
		if shown := p.m.View().Content; !regexp.MustCompile(pattern).MatchString(shown) {
			p.Errorf("no %s in\n%s", pattern, shown)
		}
	}
}

// queueContent is a list of some queues.
func queueContent(n int) content {
	list := make([]ops.QueueRecord, n)
	for i := range list {
		owner, age, trend, items := fmt.Sprintf("web%d:%d:0000000a", i%1000, i%1000), float64(i%7), "DRAINING", int64(i)
		list[i] = ops.QueueRecord{
			TaskType: "settle", QueueID: fmt.Sprint(i), Status: "HELD", CurServer: &owner, HeartbeatAge: &age, OwnedFor: &age,
			BacklogItems: &items, BacklogTrend: &trend, Epoch: 7,
		}
	}
	return contentOf(list, rostercmd.QueueRow, func(q ops.QueueRecord) object {
		return object{q.QueueID, scope{task: q.TaskType, server: *q.CurServer}}
	})
}

// However fast a person goes from list to list, one reading runs at a time, and the list that is shown is read.
func TestReadingsDoNotOverlap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var running, most, readings atomic.Int32
		p := sit(t, func(ctx context.Context, list string) (content, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			readings.Add(1)
			select {
			case <-time.After(3 * time.Second):
				return queueContent(len(list)), nil
			case <-ctx.Done():
				time.Sleep(100 * time.Millisecond) // the database cancels
				return content{}, ctx.Err()
			}
		})
		p.sees(`tasks; reading`)
		p.wait(10 * time.Millisecond)
		p.press("2", "3", "2", "4", "2")
		p.sees(`workers; reading`) // a key does not wait for the database
		p.wait(3500 * time.Millisecond)
		p.sees(`workers: 7; read`)
		before := readings.Load()
		p.wait(27 * time.Second) // each reading takes 3 s, and the next one begins 3 s later, not 2 s
		if n := readings.Load() - before; most.Load() != 1 || n < 4 || n > 5 {
			t.Errorf("%d readings at a time; %d in 27 s, want 4 or 5", most.Load(), n)
		}
		p.press("?")
		p.wait(4 * time.Second)
		before = readings.Load()
		p.wait(time.Minute)
		if n := readings.Load() - before; n != 0 {
			t.Errorf("%d readings while the help is shown", n)
		}
		p.press("esc", "1")
		p.wait(4 * time.Second)
		p.sees(`tasks: 5; read`)
	})
}

// No key interrupts a change, or leaves it behind.
func TestKeysWaitForAChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := sit(t, func(context.Context, string) (content, error) { return queueContent(3), nil })
		p.wait(time.Second)
		var err error
		p.start(p.m.begin(&job{pane: p.m.pane(), limit: changeLimit, changes: true, do: func(ctx context.Context) func() {
			select {
			case <-time.After(10 * time.Second):
			case <-ctx.Done():
				err = ctx.Err()
			}
			return func() {}
		}}))
		p.press("2", "r", "enter", "q")
		p.sees(`\[1 tasks\]`)
		p.wait(11 * time.Second)
		if err != nil {
			t.Errorf("a key has interrupted the change: %v", err)
		}
		p.press("2")
		p.sees(`\[2 workers\]`)
	})
}

// A reading that takes long is shown as such, beside what was read before.
func TestSlowReadingIsShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		takes := time.Millisecond
		p := sit(t, func(ctx context.Context, _ string) (content, error) {
			select {
			case <-time.After(takes):
			case <-ctx.Done():
			}
			return queueContent(3), ctx.Err()
		})
		p.wait(time.Second)
		p.sees(`(?m)^ tasks: 3; read`)
		takes = time.Hour
		p.wait(12 * time.Second)
		p.sees(`(?m)^ waiting for the database for \d+s; tasks: 3; read`, `settle`)
		p.wait(readLimit - 9*time.Second)
		p.sees(`no answer; read .*; trying again in [1-4]s: context dead`)
	})
}

// While the database does not answer, the screen shows what it has read before, and when that was. It tries again after
// longer and longer times, up to ten seconds.
func TestScreenGoesOnThroughAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var down error
		var tries []time.Time
		p := sit(t, func(context.Context, string) (content, error) {
			tries = append(tries, time.Now())
			return queueContent(3), down
		})
		p.wait(3 * time.Second)
		down = errors.New("open \x1b[2J:\nrefused")
		tries = nil
		p.wait(62 * time.Second)
		p.sees(`(?m)^ no answer; read 00:00:0\dZ, 1m\d+s ago; trying again in \d+s: open \\x1b\[2J: `, `(?m)^>settle +0 +HELD`)
		if n := len(tries); n < 6 || n > 9 || tries[2].Sub(tries[1]) <= tries[1].Sub(tries[0]) {
			t.Errorf("tried at %s", tries)
		}
		p.press("r")
		p.wait(time.Millisecond)
		down = nil
		p.wait(retryEvery + time.Second)
		p.sees(`(?m)^ tasks: 3; read 00:01:\d\dZ, every 2s$`)
	})
}

// The chosen row remains chosen while rows come and go, and while they are filtered and sorted.
func TestChosenRowRemainsChosen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rows := queueContent(100)
		p := sit(t, func(context.Context, string) (content, error) { return rows, nil })
		p.wait(time.Second)
		p.press("end", "pgup")
		p.sees(`(?m)^>settle +79 `)
		all := queueContent(100)
		rows = queueContent(80)
		p.wait(3 * time.Second)
		p.sees(`tasks: 80;`, `(?m)^>settle +79 `)
		rows = all
		p.press("S", "s", "s")
		p.sees(`by QUEUE, the greatest first`, `(?m)^>settle +79 `)
		p.wait(3 * time.Second)
		p.sees(`(?m)^>settle +79 .*\n settle +78 `)
		p.press("/", "WEB7 held")
		p.sees(`tasks: 11 of 100; with WEB7 held`, `(?m)^>settle +79 .*\n settle +78 `, `(?m)^/WEB7 held_`)
		p.press("backspace", "backspace", "backspace", "backspace", "backspace", "9", "enter")
		p.sees(`tasks: 1 of 100; with WEB79`, `(?m)^>settle +79 `)
		p.press("enter")
		p.sees(`tasks: a row`)
		p.press("esc", "esc")
		p.sees(`tasks: 100; by QUEUE`)
		p.press("s", "s", "s", "s", "s", "s", "s", "s", "s", "s", "s", "s", "S")
		p.sees(`(?m)^ tasks: 100; (by|read)`)
	})
}

// No line is wider than the screen, and no screen has more lines than the terminal, whatever its size and the list.
func TestScreenFits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := sit(t, func(_ context.Context, list string) (content, error) {
			c := queueContent(50)
			c.note = strings.Repeat("ü\x1b", 200)
			if list == "items" {
				return content{text: func(s cli.Screen) string { return s.Wrap(strings.Repeat("long words ", 200)) }}, nil
			}
			return c, nil
		})
		p.wait(time.Second)
		check := func() {
			for width := 1; width < 200; width += 7 {
				for _, height := range []int{1, 2, 3, 4, 5, 24, 70} {
					p.update(tea.WindowSizeMsg{Width: width, Height: height})
					shown := p.m.View().Content
					if n, rows := text.LongestLineLen(shown), strings.Count(shown, "\n")+1; n > width || rows > height {
						t.Fatalf("%d columns and %d rows on a terminal of %d and %d:\n%s", n, rows, width, height, shown)
					}
					if strings.Contains(shown, "\x1b") {
						t.Fatalf("a screen without colours has %q", shown)
					}
				}
			}
		}
		for _, keys := range []string{"1", "4", "1?", "1/xy", "3"} {
			p.press("esc", "esc", "esc")
			p.press(strings.Split(keys, "")...)
			p.wait(time.Second)
			check()
		}
		p.press("enter")
		check()
		p.update(tea.WindowSizeMsg{Width: 300, Height: 24})
		p.press("esc")
		p.sees(` CURSOR`, ` BACKLOG`)
		p.m.screen.Color = true
		p.sees("\x1b\\[32mHELD\x1b\\[0m", "\x1b\\[7m>settle  0 .* \x1b\\[0m")
	})
}

// BenchmarkPicture measures the lists that grow with the roster, from the first statement to the drawn screen: 1,000
// servers with 10,000 queues beside a tenth of them. package ops bounds the statements (TestReadsTakeFewStatements).
func BenchmarkPicture(b *testing.B) {
	for _, kind := range testdb.Kinds(b) {
		for _, servers := range []int{100, 1_000} {
			if servers > 100 && testing.Short() {
				continue
			}
			c := centertest.Open(b, testdb.URL(b, kind), center.Options{})
			centertest.Define(b, c, "settle", center.Settings{Queues: 10 * servers})
			var rows []string
			for i := range servers {
				rows = append(rows, fmt.Sprintf(`('s%04d', 'settle', 'SERVING', '2026-01-01 00:00:00.000000', '2026-01-01 00:00:00.000000')`, i))
			}
			centertest.Exec(b, c, `INSERT INTO schedule_server (uuid, task_type, state, register_time, heartbeat_time) VALUES `+strings.Join(rows, ", "))
			centertest.Exec(b, c, fmt.Sprintf(`UPDATE schedule_queue SET epoch = 1, cur_since = '2026-01-01 00:00:00.000000',
				cur_server = CONCAT('s', SUBSTR(CAST(10000 + queue_index %% %d AS CHAR(5)), 2))`, servers))
			for tab, v := range tabViews[:3] {
				b.Run(fmt.Sprintf("%s/%d workers/%s", v.name, servers, kind), func(b *testing.B) {
					m := newModel(b.Context(), &reader{c: ops.New(c)}, scope{}, time.Second)
					m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
					m.tab = tab
					for b.Loop() {
						read, err := v.read(b.Context(), m.reader, scope{})
						if err != nil {
							b.Fatal(err)
						}
						m.pane().show(read)
						m.Update(clock{})
						if shown := m.View().Content; !strings.Contains(shown, "settle") {
							b.Fatal(shown)
						}
					}
				})
			}
		}
	}
}

// A key or a reading of 10,000 queues must not be felt. View renders only the rows that the screen shows.
func BenchmarkScreen(b *testing.B) {
	large := queueContent(10_000)
	m := newModel(b.Context(), nil, scope{}, time.Second)
	m.Update(tea.WindowSizeMsg{Width: 120, Height: 50})
	m.pane().show(large)
	b.Run("key", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			m.Update(tea.KeyPressMsg{Code: 'j', Text: "j"})
			m.View()
		}
	})
	b.Run("filter", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			m.pane().filter = "web77"
			m.pane().rearrange()
			m.pane().filter = ""
		}
	})
	b.Run("new rows, sorted", func(b *testing.B) {
		b.ReportAllocs()
		m.pane().sort = "OWNER"
		for b.Loop() {
			m.pane().show(large)
		}
	})
	b.Run("rows of a reading", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			queueContent(10_000)
		}
	})
}
