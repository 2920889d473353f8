package center

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/roster"
)

// Hint says that there may be new items of a task type, in the queues of some keys or, without keys, in all (X9). Or it
// says that servers have got queues or requests, or know of their requests: then it has Servers and no TaskType.
type Hint struct {
	OwnSign  string   `json:"o"`
	TaskType string   `json:"t"`
	Keys     []string `json:"k,omitempty"`
	Servers  []string `json:"s,omitempty"` // their uuids

	Echo string `json:"e,omitempty"` // a listener sends it to itself, and finds that it hears
}

// hintChannel is the channel of the notifications. Each database of a server has its own.
const hintChannel = "rota_hints"

// mostHint is the size of a notification, below the 8,000 bytes of PostgreSQL.
const mostHint = 7_500

// sendTimeout bounds how long a hint takes: later it is worth nothing.
const sendTimeout = 5 * time.Second

// Wake tells all workers of a task type that there may be new items, so that they do not wait for their next look at
// queues that were empty (X9). A key is the name of a queue. Where queues are numbers, it is the whole number by which
// the select divides the items: with Mine("id", 1), the id, and with MineHash the Hash of the key. No key means all
// queues. The caller calls Wake after its commit, because what is not committed is not found.
//
// PostgreSQL tells them at once (NOTIFY), unless they are behind PgBouncer in transaction mode. Elsewhere Wake leaves
// a note in the row of the task type if its setting hinted is true, and the workers read that four times a second;
// then all queues of the task type are meant, in all environments. If hinted is false, Wake does nothing there. Wake
// returns when the hint was sent, together with others that came while an earlier one was sent: a process sends one at
// a time. It may return an error of these. A hint that waits for its turn is given up at the end of ctx; one that is
// being sent is not, for 5 s. A hint that fails costs the time up to the next look, so the caller may ignore the error.
func (c *Center) Wake(ctx context.Context, taskType string, keys ...string) error {
	if err := roster.ValidTaskType(taskType); err != nil {
		return err
	}
	return c.send(ctx, Hint{OwnSign: c.ownSign, TaskType: taskType, Keys: keys})
}

// WakeInTx is Wake as a part of tx: the workers are told if it commits, and with its commit. It costs tx no round trip
// after the commit, and all such transactions of the server commit one after the other: PostgreSQL keeps the order of
// notifications by a lock. So use Wake where many transactions commit at once. Where the database sends no
// notifications, WakeInTx does nothing.
func (c *Center) WakeInTx(ctx context.Context, tx *sql.Tx, taskType string, keys ...string) error {
	if err := roster.ValidTaskType(taskType); err != nil {
		return err
	}
	if !c.Notifies() {
		return nil
	}
	h := &hints{list: []Hint{{OwnSign: c.ownSign, TaskType: taskType, Keys: keys}}}
	return c.notify(ctx, tx, h)
}

// Notifies reports whether the database sends notifications: PostgreSQL. Elsewhere Wake reaches only the workers of
// task types whose setting hinted is true.
func (c *Center) Notifies() bool { return c.db.Notify != "" }

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func (c *Center) notify(ctx context.Context, db execer, h *hints) error {
	for _, payload := range h.payloads() {
		if _, err := db.ExecContext(ctx, c.db.Notify, hintChannel, payload); err != nil {
			return fmt.Errorf("send a hint: %w", err)
		}
	}
	return nil
}

// send sends a hint, or waits until another caller has sent it.
func (c *Center) send(ctx context.Context, one Hint) error {
	waiting, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	h := c.sender.join(one)
	select {
	case c.sender.turn <- struct{}{}:
		defer func() { <-c.sender.turn }()
	case <-waiting.Done():
		return fmt.Errorf("send a hint: %w", waiting.Err())
	}
	if !h.sent {
		c.sender.detach(h)
		h.sent, h.err = true, c.deliver(ctx, h)
	}
	return h.err
}

// deliver sends hints, or leaves them in the rows of their task types. They are those of other callers, too: so neither
// the end of this caller's context nor an error for one task type keeps the others from being sent.
func (c *Center) deliver(ctx context.Context, h *hints) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
	defer cancel()
	if c.Notifies() {
		return c.notify(ctx, c.db.Store, h) // dealers may have all of their connections in use
	}
	var errs []error
	for _, one := range h.list {
		errs = append(errs, c.roster.LeaveHint(ctx, one.TaskType))
	}
	return errors.Join(errs...)
}

// sender joins the hints that come while one is sent.
type sender struct {
	turn    chan struct{} // of capacity 1: its holder sends
	pending chan *hints   // of capacity 1: the hints that wait for the next turn, or nil
}

func newSender() sender {
	s := sender{make(chan struct{}, 1), make(chan *hints, 1)}
	s.pending <- nil
	return s
}

// hints are sent together. The holder of the turn reads and writes them after they were detached.
type hints struct {
	list []Hint
	sent bool
	err  error
}

// join adds a hint to those that wait.
func (s *sender) join(one Hint) *hints {
	h := <-s.pending
	if h == nil {
		h = &hints{}
	}
	h.add(one)
	s.pending <- h
	return h
}

// detach makes later hints wait for another turn.
func (s *sender) detach(h *hints) {
	if waiting := <-s.pending; waiting != h {
		s.pending <- waiting
		return
	}
	s.pending <- nil
}

// add adds the keys of a hint to those for the same task type, and servers to servers.
func (h *hints) add(one Hint) {
	i := slices.IndexFunc(h.list, func(o Hint) bool {
		return o.OwnSign == one.OwnSign && o.TaskType == one.TaskType && o.Echo == "" && one.Echo == ""
	})
	switch {
	case i < 0:
		one.Keys = slices.Clone(one.Keys) // the slice is the caller's
		h.list = append(h.list, one)
	case len(one.Servers) > 0:
		h.list[i].Servers = append(h.list[i].Servers, one.Servers...)
	case len(h.list[i].Keys) == 0: // it is for all queues
	case len(one.Keys) == 0:
		h.list[i].Keys = nil
	default:
		h.list[i].Keys = append(h.list[i].Keys, one.Keys...)
	}
}

// payloads returns the texts of notifications. Hints that are too long are for all queues of their task types, and for
// no servers: so many would all read their queues at once. If they are still too long, they are sent in several.
func (h *hints) payloads() []string {
	text := marshal(h.list)
	if len(text) <= mostHint {
		return []string{text}
	}
	for i := range h.list {
		h.list[i].Keys, h.list[i].Servers = nil, nil
	}
	return split(h.list)
}

func split(list []Hint) []string {
	text, half := marshal(list), len(list)/2
	if len(text) <= mostHint || half == 0 {
		return []string{text}
	}
	return append(split(list[:half]), split(list[half:])...)
}

func marshal(list []Hint) string {
	text, _ := json.Marshal(list) // texts can always be marshaled
	return string(text)
}
