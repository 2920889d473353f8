package demo

import (
	"fmt"
	"time"
)

// scene is what a view shows at one moment.
type scene struct {
	elapsed time.Duration
	step    string // of the story
	workers []actor
	queues  []queue
	settled int
	rate    float64  // orders per second
	news    []string // since the scene before
	crew    *crew
}

// actor is a worker as it is shown.
type actor struct {
	*worker
	state   state
	queues  int // that it owns
	settled int
	rate    float64
}

// state is what a worker's process does.
type state string

const (
	working state = "working"
	leaving state = "leaving"
	left    state = "left"
	killed  state = "killed"
)

func (w *worker) state() state {
	switch {
	case w.killed:
		return killed
	case w.ended():
		return left
	case w.leaving:
		return leaving
	}
	return working
}

// stage makes scenes of what is seen. It remembers what the last scene has told.
type stage struct {
	step  string
	began time.Time
	told  int      // events that were told
	news  []string // to tell in the next scene
	meter meter
}

// tell adds a line to the news that is not an event of the database.
func (s *stage) tell(format string, args ...any) {
	s.news = append(s.news, fmt.Sprintf(format, args...))
}

func (s *stage) scene(seen seen, crew *crew) scene {
	now := time.Now()
	if s.began.IsZero() {
		s.began = now
	}
	byWorker := map[int]int{}
	total := 0
	for server, n := range seen.settled {
		total += n
		if w := crew.of(server); w != nil {
			byWorker[w.number] += n
		}
	}
	s.meter.add(now, byWorker)
	owned := map[int]int{}
	for _, q := range seen.queues {
		if w := crew.of(q.owner); w != nil {
			owned[w.number]++
		}
	}
	view := scene{
		elapsed: now.Sub(s.began), step: s.step, queues: seen.queues, settled: total, crew: crew,
		news: append(s.news, crew.tell(seen.events[s.told:])...),
	}
	s.news, s.told = nil, len(seen.events)
	for _, w := range crew.workers {
		a := actor{w, w.state(), owned[w.number], byWorker[w.number], s.meter.rate(w.number)}
		view.workers = append(view.workers, a)
		view.rate += a.rate
	}
	return view
}

// meter measures orders per second over the last seconds.
type meter struct{ readings []reading }

type reading struct {
	at       time.Time
	byWorker map[int]int
}

const meterWindow = 2 * time.Second

func (m *meter) add(at time.Time, byWorker map[int]int) {
	m.readings = append(m.readings, reading{at, byWorker})
	for len(m.readings) > 2 && at.Sub(m.readings[1].at) >= meterWindow {
		m.readings = m.readings[1:]
	}
}

func (m *meter) rate(worker int) float64 {
	first, last := m.readings[0], m.readings[len(m.readings)-1]
	span := last.at.Sub(first.at).Seconds()
	if span == 0 {
		return 0
	}
	return float64(last.byWorker[worker]-first.byWorker[worker]) / span
}
