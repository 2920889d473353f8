package manager

import (
	"fmt"
	"strings"

	"github.com/dutyrota/rota/internal/roster"
)

// numbered runs a transaction. It raises the numbers of the servers whose queues it changes (S2), except that of a
// server that releases queues and knows what is new. An edit by hand is no such transaction.
func (w *world) numbered(except string, transaction func()) {
	before, adopted := map[string]string{}, w.db.adopted
	for _, s := range w.db.servers {
		before[s.uuid] = w.news(s.uuid)
	}
	transaction()
	for i := range w.db.servers {
		s := &w.db.servers[i]
		if before[s.uuid] != w.news(s.uuid) && s.uuid != except {
			s.number++
		}
		if w.db.adopted > adopted {
			s.number += w.db.adopted - adopted // no number of the lost history comes again
		}
	}
}

// news returns all that a server reads of its queues, in a form that can be compared.
func (w *world) news(uuid string) string {
	var b strings.Builder
	fmt.Fprint(&b, w.removing(), w.resizing(), w.db.partition)
	for _, q := range w.db.rows {
		if q.cur == uuid || q.req == uuid {
			fmt.Fprint(&b, " ", q.id, q.cur, q.req, q.epoch, q.plan, q.total)
		}
	}
	return b.String()
}

// number returns the number of a server, or that of one whose row is missing.
func (w *world) number(uuid string) int64 {
	if s := w.db.server(uuid); s != nil {
		return s.number
	}
	return -1
}

// queueSum is what QueueSum returns for the view that the server would read now.
func (w *world) queueSum(uuid string) int64 {
	var v roster.View
	for _, q := range w.db.rows {
		if q.cur == uuid || q.req == uuid {
			v.Queues = append(v.Queues, roster.ViewQueue{ID: q.id, Owner: q.cur, Requester: q.req, Epoch: q.epoch})
		}
	}
	return v.QueueSum(uuid)
}

// findEdits is that of internal/roster.
func (w *world) findEdits() {
	for i := range w.db.servers {
		if s := &w.db.servers[i]; s.readNumber == s.number && s.readSum != w.queueSum(s.uuid) && !w.without.edits {
			s.number++
		}
	}
}
