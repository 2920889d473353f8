package moves

import (
	"errors"
	"slices"
	"time"

	"github.com/dutyrota/rota/bench/internal/stage"
)

// playNamed restarts workers with names, one after the other.
func (c *fleet) playNamed(r *Result) error {
	if err := c.begin(); err != nil {
		return err
	}
	calm := time.Now()
	if err := c.work(c.o.Calm); err != nil {
		return err
	}
	from := time.Now()
	var restarts []restart
	for _, w := range slices.Clone(c.all) {
		stage.Progress("moves: %s: restart of worker %s", r.Database, w.name)
		s := restart{name: w.name, from: time.Now()}
		if err := c.terminate(w); err != nil {
			return err
		}
		if _, err := c.startAs(w.name); err != nil {
			return err
		}
		if err := errors.Join(c.settle(c.o.Workers), c.work(0)); err != nil {
			return err
		}
		s.to = time.Now()
		restarts = append(restarts, s)
	}
	if err := c.finish(); err != nil {
		return err
	}
	r.Named = c.evaluateNamed(calm, from, restarts)
	return nil
}

// restart is the restart of a worker, until all queues are worked again.
type restart struct {
	name     string
	from, to time.Time
}

// evaluateNamed computes the measurements from the times of the items. Nothing happened between calm and from.
func (c *fleet) evaluateNamed(calm, from time.Time, restarts []restart) (n Named) {
	slices.SortFunc(c.done, func(a, b span) int { return a.begin.Compare(b.begin) })
	names := map[int]string{}
	for _, w := range c.all {
		names[w.cmd.Process.Pid] = w.name
	}
	owner := map[int]string{} // by queue
	for _, s := range c.done {
		if s.begin.Before(from) {
			owner[s.queue] = names[s.pid]
		} else if s.begin.Before(restarts[len(restarts)-1].to) && owner[s.queue] != names[s.pid] {
			owner[s.queue] = names[s.pid]
			n.Moves++
		}
	}
	perQueue := rate(c.done, calm, from) / float64(c.o.Queues)
	var items, expected float64
	for _, restarted := range restarts {
		last := map[int]span{}
		others := 0
		for _, queue := range owner {
			if queue != restarted.name {
				others++
			}
		}
		for _, s := range c.done {
			if s.begin.Before(calm) {
				continue // the workers have started one after the other
			}
			if owner[s.queue] != restarted.name {
				if !s.end.Before(restarted.from) && s.end.Before(restarted.to) {
					items++
				}
				continue
			}
			if before, ok := last[s.queue]; ok && before.pid != s.pid {
				n.Away = append(n.Away, s.begin.Sub(before.end))
			}
			last[s.queue] = s
		}
		expected += perQueue * float64(others) * restarted.to.Sub(restarted.from).Seconds()
	}
	n.Others = items / expected
	return n
}
