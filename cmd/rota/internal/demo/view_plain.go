package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// plainView writes a line for each thing that happens, and one about the progress now and then.
type plainView struct {
	out      io.Writer
	clock    func() time.Time
	step     string
	progress time.Duration // when it was told last
}

const progressInterval = 2 * time.Second

func newPlainView(out io.Writer, headline string) *plainView {
	v := &plainView{out: out, clock: time.Now}
	v.line("Rota demo: %s", headline)
	return v
}

func (v *plainView) show(s scene) {
	if s.step != v.step {
		v.step = s.step
		v.line("== %s", s.step)
	}
	for _, news := range s.news {
		v.line("   %s", news)
	}
	if s.elapsed-v.progress >= progressInterval {
		v.progress = s.elapsed
		v.line("%3d %%  %s of %s orders, %.0f/s: %s", percent(s.settled), count(s.settled), count(orderCount), s.rate, strings.Join(shares(s.workers), "; "))
	}
}

// shares tells who has how much, of those that work.
func shares(workers []actor) []string {
	var list []string
	for _, w := range workers {
		if w.state == working {
			list = append(list, fmt.Sprintf("worker %d has %s, %s settled", w.number, plural(w.queues, "queue"), count(w.settled)))
		}
	}
	return list
}

func percent(settled int) int { return settled * 100 / orderCount }

func (v *plainView) line(format string, args ...any) {
	fmt.Fprintf(v.out, v.clock().Format("15:04:05.000")+"  "+format+"\n", args...) //nolint:errcheck // see view
}

func (v *plainView) close() {}
