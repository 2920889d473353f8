package manager

import (
	"time"

	"github.com/dutyrota/rota/internal/roster"
)

// stages are the hand-overs that this server has begun, by queue, with the times of the steps that it has taken.
type stages map[string]Move

// noteRequests notes when this server sees first that another one requests a queue.
func (s stages) noteRequests(uuid string, rows []roster.ViewQueue) {
	for _, row := range rows {
		if m := s[row.ID]; row.Owner == uuid && row.Requester != "" && m.Requested.IsZero() {
			m.Requested = time.Now()
			s[row.ID] = m
		}
	}
}

// noteDrain notes that the drain of a queue begins.
func (s stages) noteDrain(id string) {
	m := s[id]
	m.Draining, m.Drained = time.Now(), time.Time{}
	s[id] = m
}

// noteDrained notes that nothing of a queue that drains is in flight any more.
func (s stages) noteDrained(id string) {
	if m := s[id]; !m.Draining.IsZero() && m.Drained.IsZero() {
		m.Drained = time.Now()
		s[id] = m
	}
}

// end returns the hand-over of a queue that was released just now, and forgets it.
func (s stages) end(id string, epoch int64, to string) Move {
	m := s[id]
	delete(s, id)
	m.Kind, m.Queue, m.Epoch, m.To, m.Released = MoveReleased, id, epoch, to, time.Now()
	return m
}
