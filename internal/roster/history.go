package roster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// Memory is what a process remembers of what the database has acknowledged to it, for one task type and over all its
// sessions. If the rows contradict it, the database has lost history (H7). It is not safe for concurrent use.
type Memory struct {
	queues map[string]Ownership // the highest epoch of each queue that the process had or released, by id
	ended  []Beats              // of sessions whose rows were gone
}

// Ownership is the owner of a queue and its epoch, and which items the queue has under that epoch; zero: unknown.
type Ownership struct {
	Owner string
	Epoch int64
	Items
}

// mostTokens is how many heartbeats of a session Beats remembers, and mostEnded how many sessions Memory.
const (
	mostTokens = 100
	mostEnded  = 10
)

// Beats are the heartbeats of one session that the database has acknowledged.
type Beats struct {
	UUID   string
	Tokens []string  // of the last hundred, the newest last; the first one is that of the registration
	Last   time.Time // when the newest was sent, or before, by the database's clock
	Floor  int64     // the epoch_floor of the lock row when it was answered (H8)

	answered time.Time // the time of the database in the answer to the newest
}

// Add remembers a heartbeat that the database has answered at a time of its clock, or the registration. The row of the
// server has an earlier time, that of the UPDATE before the answer. A later one would prove a loss where the retention
// has deleted the row. So Last is the time of the answer before, after which the heartbeat was sent.
func (b *Beats) Add(token string, at time.Time, floor int64) {
	b.Tokens = append(b.Tokens, token)
	b.Tokens = b.Tokens[max(0, len(b.Tokens)-mostTokens):]
	b.Last, b.answered, b.Floor = cmp.Or(b.answered, at), at, max(b.Floor, floor)
}

// NewMemory returns a memory of nothing.
func NewMemory() *Memory { return &Memory{queues: map[string]Ownership{}} }

// HistoryReply are figures of a heartbeat's reply that only rise, unless the database has lost history.
type HistoryReply struct {
	EpochFloor  int64 // plans have raised the epochs of all queues above it (H8)
	PlanVersion int64
}

// columns implements replyOption.
func (HistoryReply) columns(Heartbeat) string { return `r.epoch_floor, r.plan_version` }

// Snapshot returns a copy that another goroutine may read.
func (m *Memory) Snapshot() Memory {
	return Memory{queues: maps.Clone(m.queues), ended: slices.Clone(m.ended)}
}

// Empty reports whether there is nothing that rows could contradict.
func (m *Memory) Empty() bool { return len(m.queues) == 0 && len(m.ended) == 0 }

// EndSession remembers the heartbeats of a session whose row is gone. An expiry leaves a row in the history of servers.
func (m *Memory) EndSession(b Beats) {
	m.ended = append(m.ended, b)
	m.ended = m.ended[max(0, len(m.ended)-mostEnded):]
}

// Note remembers the queues that a server owns in its view.
func (m *Memory) Note(v View, uuid string) {
	for _, q := range v.Queues {
		if now := q.ownership(); q.Owner == uuid && q.Epoch > m.queues[q.ID].Epoch {
			m.queues[q.ID] = now
		}
	}
}

// Released remembers that the database has acknowledged the release of a queue that the server owned under this epoch,
// or that the server has given up or split the queue ([Server.GiveUp]).
func (m *Memory) Released(h Handover) {
	m.queues[h.QueueID] = Ownership{Owner: h.Requester, Epoch: h.Epoch + 1}
}

// Saw remembers the owner and the epoch under which a data database has fenced a queue (F11).
func (m *Memory) Saw(queueID string, o Ownership) {
	if o.Epoch >= m.queues[queueID].Epoch {
		m.queues[queueID] = o
	}
}

// Doubts reports whether a view of a server calls for CheckHistory: it contradicts the memory, or a queue is not in it
// that the server owned and has not released. Mostly another server has taken it over.
func (m *Memory) Doubts(v View, uuid string) bool {
	owned := make(map[string]bool, len(v.Queues))
	for _, q := range v.Queues {
		owned[q.ID] = q.Owner == uuid
		if m.queues[q.ID].contradictedBy(q.ownership()) {
			return true
		}
	}
	for id, known := range m.queues {
		if known.Owner == uuid && !owned[id] {
			return true
		}
	}
	return false
}

// Settle takes the result of CheckHistory. While raised epochs wait for an operator, the memory stays as it is.
func (m *Memory) Settle(checked Memory, c HistoryCheck) {
	if c.Waiting {
		return
	}
	m.ended = slices.DeleteFunc(m.ended, func(b Beats) bool {
		return slices.ContainsFunc(checked.ended, func(e Beats) bool { return e.UUID == b.UUID })
	})
	for id := range checked.queues {
		row, there := c.Rows[id]
		switch known := m.queues[id]; {
		case known != checked.queues[id]: // a later read has more
		case !there, known.contradictedBy(row): // the plans raise its epoch, and the next owner notes it
			delete(m.queues, id)
		default:
			m.queues[id] = row
		}
	}
}

// High returns the highest epoch that the process knows.
func (m *Memory) High() (epoch int64) {
	for _, q := range m.queues {
		epoch = max(epoch, q.Epoch)
	}
	for _, b := range m.ended {
		epoch = max(epoch, b.Floor)
	}
	return epoch
}

// contradictedBy reports whether a row proves that the database has lost what it had acknowledged. No statement lowers
// the epoch of a queue, or gives it another owner or other items under the same epoch (H6, N1, N3).
func (o Ownership) contradictedBy(row Ownership) bool {
	return row.Epoch < o.Epoch || row.Epoch == o.Epoch && (row.Owner != o.Owner || o.otherItems(row))
}

// otherItems reports whether the queue is known to have other items in a row.
func (o Ownership) otherItems(row Ownership) bool {
	return o.Items != Items{} && row.Items != Items{} && o.Items != row.Items
}

// Remains are what the tables have of a session: its row, or that in the history of servers.
type Remains struct {
	Token      string
	Heartbeat  time.Time
	Registered bool
}

// Rows are what the tables have of what a process remembers. A queue without a row, and a session that is in no table,
// are missing.
type Rows struct {
	Queues   map[string]Ownership // by id
	Sessions map[string]Remains   // by uuid
	Complete time.Time            // the history of servers has all servers that sent a later heartbeat
}

// Contradiction is a proof that the database has lost history.
type Contradiction struct {
	Text  string // for people
	Epoch int64  // a floor that is not below it was raised since: another server has found the loss
	UUID  string // of a session whose row is still there; empty: none
}

// Contradictions compares the memory with the rows.
func (m *Memory) Contradictions(r Rows, taskType string) (list []Contradiction) {
	for _, b := range m.ended {
		left, found := r.Sessions[b.UUID]
		if text := b.lostBy(left, found, r.Complete); text != "" {
			c := Contradiction{Text: text, Epoch: b.Floor + 1}
			if left.Registered {
				c.UUID = b.UUID
			}
			list = append(list, c)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.queues)) {
		known := m.queues[id]
		if row, there := r.Queues[id]; there && known.contradictedBy(row) {
			text := fmt.Sprintf("queue %s of %s is at %s, and was at %s", id, taskType, row, known)
			if known.otherItems(row) {
				text += fmt.Sprintf(" with other items (%s, and now %s)", known.Items, row.Items)
			}
			list = append(list, Contradiction{Text: text, Epoch: known.Epoch})
		}
	}
	return list
}

// lostBy says how the remains of a session prove that its heartbeats are lost; empty: they do not. Old rows of the
// history of servers are deleted: a session proves something by missing only if it has sent a heartbeat since the time
// from which on the history is complete.
func (b Beats) lostBy(r Remains, found bool, complete time.Time) string {
	last := len(b.Tokens) - 1
	at := slices.Index(b.Tokens, r.Token)
	switch {
	case !found && b.Last.After(complete):
		return fmt.Sprintf("the registration of %s is lost, which sent heartbeats until %s", b.UUID, clock(b.Last))
	case found && at >= 0 && at < last:
		return fmt.Sprintf("heartbeats of %s from %s to %s are lost", b.UUID, clock(r.Heartbeat), clock(b.Last))
	}
	return ""
}

// clock writes a time of the database for people.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000") + " UTC" }

// rows reads what the tables have of what the process remembers.
func (p Planner) rows(ctx context.Context, q sqldb.Eacher, m Memory) (r Rows, err error) {
	r.Sessions = make(map[string]Remains, len(m.ended))
	for _, b := range m.ended {
		left, found, err := remainsOf(ctx, q, b.UUID)
		if err != nil {
			return r, fmt.Errorf("read what is left of %s: %w", b.UUID, err)
		}
		if found {
			r.Sessions[b.UUID] = left
		}
	}
	// It is read after the sessions, so that it covers a row that is deleted meanwhile.
	r.Complete, _, err = sqldb.Record[time.Time](ctx, q, `SELECT history_since FROM schedule_environment
		WHERE own_sign = ?`, p.roster.OwnSign)
	if err != nil {
		return r, fmt.Errorf("ask since when the history of workers is complete: %w", err)
	}
	if r.Queues, err = p.ownerships(ctx, q, slices.Sorted(maps.Keys(m.queues))); err != nil {
		return r, fmt.Errorf("read the epochs of the queues: %w", err)
	}
	return r, nil
}

// CleanServers deletes servers from the history that left before the retention, in all environments, at most as many as
// most, and returns their number. It first notes in their environments since when the history is complete, so that no
// process takes a row that is missing for lost history (H7). A server whose last heartbeat is later, because the clock
// was set back since, stays until the retention of that has passed, too.
func (r *Roster) CleanServers(ctx context.Context, retention time.Duration, most int) (deleted int, err error) {
	type server struct {
		UUID, OwnSign string
		Heartbeat     time.Time
	}
	list, err := sqldb.Records[server](ctx, r.DB, fmt.Sprintf(`SELECT uuid, own_sign, heartbeat_time
		FROM schedule_server_history WHERE left_time < {ago %[1]d} AND heartbeat_time < {ago %[1]d}
		ORDER BY left_time LIMIT %[2]d`, retention.Milliseconds(), most))
	if err != nil || len(list) == 0 {
		return 0, err
	}
	uuids, newest := make([]string, len(list)), map[string]time.Time{}
	for i, s := range list {
		uuids[i] = s.UUID
		if s.Heartbeat.After(newest[s.OwnSign]) {
			newest[s.OwnSign] = s.Heartbeat
		}
	}
	for _, sign := range slices.Sorted(maps.Keys(newest)) {
		if err := r.In(sign).noteHistorySince(ctx, newest[sign]); err != nil {
			return 0, err
		}
	}
	return r.DB.Exec(ctx, `DELETE FROM schedule_server_history WHERE uuid IN (`+sqldb.Marks(len(uuids))+`)`,
		sqldb.Args(uuids)...)
}

// noteHistorySince notes that rows of servers are deleted whose last heartbeats are not later than a time.
func (r *Roster) noteHistorySince(ctx context.Context, since time.Time) error {
	if err := r.insertEnvironment(ctx); err != nil {
		return err
	}
	_, err := r.DB.Exec(ctx, `UPDATE schedule_environment SET history_since = ?
		WHERE own_sign = ? AND (history_since IS NULL OR history_since < ?)`+r.DB.Limits,
		r.DB.Time(since), r.OwnSign, r.DB.Time(since))
	return sqldb.Wrap(err, "note since when the history of workers of %s is complete", r.OwnSign)
}

// remainsOf reads what the tables have of a session.
func remainsOf(ctx context.Context, q sqldb.Eacher, uuid string) (r Remains, found bool, err error) {
	return sqldb.Record[Remains](ctx, q, `SELECT beat_token, heartbeat_time, 1 FROM schedule_server
		WHERE uuid = ? UNION ALL
		SELECT beat_token, heartbeat_time, 0 FROM schedule_server_history WHERE uuid = ?`, uuid, uuid)
}

// ownerships reads the owners and epochs of queues.
func (p Planner) ownerships(ctx context.Context, q sqldb.Eacher, ids []string) (map[string]Ownership, error) {
	type row struct {
		ID string
		Ownership
	}
	rows := make(map[string]Ownership, len(ids))
	for part := range slices.Chunk(ids, changesPerStatement) {
		from, args, err := p.roster.DB.SelectQueues(queueTable, part, p.taskType, p.roster.OwnSign)
		if err != nil {
			return nil, err
		}
		list, err := sqldb.Records[row](ctx, q, `SELECT q.queue_id, q.cur_server, q.epoch, q.division,
			q.queue_index, COALESCE(q.queue_total, 0)`+from+` AND q.`+validEpoch+`
			ORDER BY q.queue_id`, args...)
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			rows[r.ID] = r.Ownership
		}
	}
	return rows, nil
}

// String describes the epoch and the owner for people.
func (o Ownership) String() string {
	if o.Owner == "" {
		return fmt.Sprintf("epoch %d without an owner", o.Epoch)
	}
	return fmt.Sprintf("epoch %d of %s", o.Epoch, o.Owner)
}
