package roster

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
)

// Changes are the changes of queues that wait until the queues have no owner, by the ids of the queues: the column
// queue_changes of the lock row, such as {"3": 16} or {"north": "remove"}. The entry of allQueues is for all of them.
//
// All changes are made in one way. An operator writes the request into the lock row. The owners learn of it with their
// next heartbeats, drain the queues and give them up, and plans leave them free. The transaction that finds the last
// of them without an owner makes the change: that of the owner that gives it up, that of a plan, which may have expired
// the owner, or that of the operator.
type Changes map[string]Change

// Change is what becomes of a queue: the total that it gets (N1, N3), or Remove. Zero is a number that no queue can
// get, which an edit by hand has written.
type Change int

// Remove deletes a named queue (N2).
const Remove Change = -1

// allQueues is the entry of another number of queues (N1). Only queues with numbers get another number, so that it is
// never one of theirs.
const allQueues = "all"

const removeText = `"remove"`

// MarshalJSON implements json.Marshaler.
func (c Change) MarshalJSON() ([]byte, error) {
	if c == Remove {
		return []byte(removeText), nil
	}
	return json.Marshal(int(c))
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Change) UnmarshalJSON(doc []byte) error {
	if *c = Remove; string(doc) == removeText {
		return nil
	}
	var total int
	err := json.Unmarshal(doc, &total)
	*c = Change(max(0, total))
	return err
}

// Scan implements sql.Scanner. A text that is no such object is no change (S13).
func (c *Changes) Scan(src any) error {
	err := (*sqldb.Map[Change])(c).Scan(src)
	if *c == nil {
		*c = Changes{}
	}
	return err
}

// Value implements driver.Valuer.
func (c Changes) Value() (driver.Value, error) {
	if len(c) == 0 {
		return nil, nil
	}
	return sqldb.Map[Change](c).Value()
}

// Queues returns the number of queues that is requested instead of the present one (N1), 0 if none is.
func (c Changes) Queues() int {
	if total := int(c[allQueues]); validTotal(total) {
		return total
	}
	return 0
}

// Removes reports whether a queue is to be removed (N2).
func (c Changes) Removes(queueID string) bool { return c[queueID] == Remove }

// Total returns the total that a queue gets when it is split or merged (N3), 0 if it is not to be.
func (c Changes) Total(queueID string) int {
	if queueID == allQueues {
		return 0
	}
	return max(0, int(c[queueID]))
}

// Removing returns the queues that are to be removed, sorted.
func (c Changes) Removing() []string {
	ids := slices.Sorted(maps.Keys(c))
	return slices.DeleteFunc(ids, func(id string) bool { return !c.Removes(id) })
}

// Totals returns the queues that are to be split or merged, with their new totals; nil if there are none.
func (c Changes) Totals() (totals map[string]int) {
	for id := range c {
		if total := c.Total(id); total > 0 {
			if totals == nil {
				totals = map[string]int{}
			}
			totals[id] = total
		}
	}
	return totals
}

// concerns reports whether a queue is to be changed.
func (c Changes) concerns(queueID string) bool { return c.Queues() > 0 || c[queueID] != 0 }

// keepsFree reports whether no other server gets a queue before its change. A queue that is to be split or merged stays
// with its owner until that has drained it. A queue that is to be merged then waits for the others.
func (c Changes) keepsFree(queueID, owner string, total int) bool {
	merges := c.Total(queueID) > 0 && c.Total(queueID) < total
	return c.Queues() > 0 || c.Removes(queueID) || merges && owner == ""
}

// DivideAnew reports whether queues get other items. No run is opened meanwhile (R6).
func (c Changes) DivideAnew() bool { return c.Queues() > 0 || len(c.Totals()) > 0 }

// DividesAnew is the condition of DivideAnew on a lock row, whose alias is given. No roster has both removals, of
// queues with names, and totals, of queues with numbers.
func DividesAnew(lockRow string) string {
	column := lockRow + ".queue_changes"
	return `(` + column + ` IS NOT NULL AND ` + column + ` NOT LIKE '%` + removeText + `%')`
}

// changes returns the changes that wait. A roster without a lock row has none.
func (r Reader) changes(ctx context.Context) (c Changes, err error) {
	if r.locked != nil {
		return r.locked.Changes, nil
	}
	c, err = sqldb.Value[Changes](ctx, r, `SELECT queue_changes FROM schedule_task_running WHERE `+ofTask,
		r.taskType, r.ownSign)
	return c, sqldb.Wrap(err, "read the changes of queues")
}

// Removing returns the queues that are to be removed. A roster without a lock row has none.
func (r Reader) Removing(ctx context.Context) ([]string, error) {
	c, err := r.changes(ctx)
	return c.Removing(), err
}

// changesExtension makes the changes of queues that have lost their owner. Another plan gives owners to what results.
func changesExtension() extension {
	return extension{
		repair: repairChanges,
		last: func(ctx context.Context, p *planning) error {
			_, _, err := makeChanges(ctx, p.l, p.actor)
			return err
		},
	}
}

// repairChanges looks at the changes that wait, and makes all servers look, because edits by hand tell nobody.
func repairChanges(ctx context.Context, p Planner) error {
	changes, err := p.roster.Reader(p.taskType).changes(ctx)
	if err != nil || len(changes) == 0 {
		return err
	}
	return p.roster.UnderLock(ctx, p.taskType, func(ctx context.Context, l *LockTx) error {
		if _, _, err := makeChanges(ctx, l, p.actor); err != nil || len(l.Changes) == 0 {
			return err
		}
		return l.queuesChangedForAll(ctx)
	})
}

// GiveUp gives up queues that are to be changed and that this server has drained, and makes the changes that no other
// owner holds up. It returns the queues of the call that the server has given up, for Memory.Released: the owner of the
// next epoch is nobody, or the server itself if it has split the queue. Queues whose change was withdrawn are not among
// them. Whatever the reply, the server must not work a queue of the call again under the old epoch: to keep it, it
// calls Retake (H3).
func (s Server) GiveUp(ctx context.Context, drained ...QueueEpoch) (given []Handover, err error) {
	err = s.roster.UnderLock(ctx, s.taskType, func(ctx context.Context, l *LockTx) (err error) {
		var divided bool
		given, divided, err = makeChanges(ctx, l, s.uuid, drained...)
		if err == nil && divided {
			_, err = rebalance(ctx, l, rebalancing{actor: s.uuid}) // owners for what results
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("give up queues of %w", err)
	}
	return given, nil
}

// changing makes changes in a transaction under the lock row.
type changing struct {
	*LockTx
	actor   string
	queues  sizedQueues     // as the transaction has left them before it makes the changes
	kept    map[string]bool // drained queues that their owner keeps when they are split
	refused error           // why no queue may be split or merged
	divided bool            // queues have been divided anew, and need owners
}

// makeChanges drops the changes that do not fit the rows. Then it gives up the queues that the actor, a server, has
// drained, and makes the changes of queues that no server owns. It returns the queues that the actor has given up, and
// reports whether queues have been divided anew.
func makeChanges(ctx context.Context, l *LockTx, actor string, drained ...QueueEpoch,
) (given []Handover, divided bool, err error) {
	if len(l.Changes) == 0 {
		return nil, false, nil
	}
	c := &changing{LockTx: l, actor: actor, kept: map[string]bool{}}
	if c.queues, err = readSizedQueues(ctx, l); err != nil {
		return nil, false, err
	}
	if len(l.Changes.Totals()) > 0 {
		if c.refused, err = mustBeSplittable(ctx, l); err != nil {
			return nil, false, err
		}
	}
	if err := c.each(ctx, c.dropUnfit); err != nil {
		return nil, false, err
	}
	if given, err = c.giveUp(ctx, drained); err != nil {
		return nil, false, err
	}
	return given, c.divided, c.each(ctx, c.makeFree)
}

// each calls f for each change that waits. f may end changes.
func (c *changing) each(ctx context.Context, f func(context.Context, string, Change) error) error {
	for _, id := range slices.Sorted(maps.Keys(c.Changes)) {
		to, waits := c.Changes[id]
		if !waits {
			continue // it was merged with an earlier one
		}
		if err := f(ctx, id, to); err != nil {
			return err
		}
	}
	return nil
}

// dropUnfit withdraws a change that does not fit the rows: these were edited by hand, or a cursor has moved, or the
// task type is not splittable any more.
func (c *changing) dropUnfit(ctx context.Context, id string, to Change) error {
	why, err := c.unfit(ctx, id, to)
	if err != nil || why == nil {
		return err
	}
	delete(c.Changes, id)
	if err := c.queuesChanged(ctx, 0); err != nil {
		return err
	}
	e := Event{Kind: EventResizing, queue: id, epoch: c.queues[id].Epoch, Actor: c.actor}
	switch e.Reason = fmt.Sprintf("the request for the total %d was withdrawn: %v", to, why); {
	case to == Remove:
		e.Kind, e.Reason = EventRemoving, fmt.Sprintf("the removal was withdrawn: %v", why)
	case id == allQueues:
		e.Kind, e.queue, e.Reason = EventRepartition, "", fmt.Sprintf("the request was withdrawn: %v", why)
	}
	return c.Record(ctx, e)
}

// unfit returns why a change does not fit the rows; nil if it does.
func (c *changing) unfit(ctx context.Context, id string, to Change) (why, err error) {
	q, found := c.queues[id]
	switch {
	case id == allQueues && to != Remove:
		return c.queues.unfitForTotal(ctx, c.LockTx, int(to))
	case !found:
		return errNoQueue, nil
	case to == Remove && q.Total > 0:
		return ErrNumbered, nil
	case to == Remove:
		return nil, nil
	case c.refused != nil:
		return c.refused, nil
	}
	_, why = c.queues.toChange(c.LockTx, q)
	return why, nil
}

// giveUp takes the owner from drained queues that are to be changed. The owner keeps a queue that is to be split.
func (c *changing) giveUp(ctx context.Context, drained []QueueEpoch) (given []Handover, err error) {
	wanted := map[string]int64{}
	for _, q := range drained {
		if c.Changes.concerns(q.ID) && !c.isLow(q.Epoch) { // else a plan raises the epoch first (H8)
			wanted[q.ID] = q.Epoch
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	type row struct {
		ID               string
		Epoch            int64
		Owner, Requester string
	}
	rows, err := lockFree[row](ctx, c.LockTx, `q.queue_id, q.epoch, q.cur_server, q.req_server`,
		slices.Sorted(maps.Keys(wanted)))
	if err != nil {
		return nil, err
	}
	var gone []plan.Change
	var events []Event
	for _, q := range rows {
		if q.Owner != c.actor || q.Epoch != wanted[q.ID] {
			continue
		}
		h, own := Handover{QueueID: q.ID, Epoch: q.Epoch}, c.queues[q.ID]
		if c.Changes.Total(q.ID) > own.Total {
			c.kept[q.ID], h.Requester = true, c.actor
			given = append(given, h)
			continue
		}
		given = append(given, h)
		gone = append(gone, plan.Change{QueueID: q.ID, OldOwner: q.Owner, OldRequester: q.Requester, OldEpoch: q.Epoch})
		own.Owner, own.Epoch = "", q.Epoch+1
		c.queues[q.ID] = own
		if !c.Changes.Removes(q.ID) { // a removal has an event of its own
			events = append(events, Event{
				Kind: EventUnassigned, queue: q.ID, from: q.Owner, epoch: own.Epoch, Actor: c.actor,
				Reason: "it waits for a change",
			})
		}
	}
	if len(gone) == 0 {
		return given, nil
	}
	if err := writeChanges(ctx, c.LockTx, gone, c.versions.plan+1, ""); err != nil {
		return nil, err
	}
	if err := c.planChanged(ctx); err != nil {
		return nil, err
	}
	return given, c.Record(ctx, events...)
}

// makeFree makes a change unless one of its queues has an owner, or a transaction holds its row.
func (c *changing) makeFree(ctx context.Context, id string, to Change) error {
	family, err := c.family(id, to)
	if err != nil {
		return err
	}
	ids := make([]string, len(family))
	for i, q := range family {
		if ids[i] = q.ID; q.Owner != "" && !c.kept[q.ID] {
			return nil
		}
	}
	free, err := lockQueueRows(ctx, c.LockTx, ids)
	if err != nil {
		return err
	}
	if len(free) < len(ids) {
		return c.noteSkipped(ctx)
	}
	if to == Remove {
		return removeFree(ctx, c.LockTx, family[0], c.actor)
	}
	c.divided = true
	switch {
	case id == allQueues:
		return changeQueueTotal(ctx, c.LockTx, c.actor, family, int(to))
	case int(to) > family[0].Total:
		return splitQueue(ctx, c.LockTx, family[0], c.actor)
	}
	return mergeQueues(ctx, c.LockTx, family, int(to), c.actor)
}

// family returns the queues that change together.
func (c *changing) family(id string, to Change) ([]sizedQueue, error) {
	switch q := c.queues[id]; {
	case to == Remove:
		return []sizedQueue{q}, nil
	case id == allQueues:
		return slices.SortedFunc(maps.Values(c.queues), func(a, b sizedQueue) int { return a.Index - b.Index }), nil
	default:
		return c.queues.toChange(c.LockTx, q)
	}
}
