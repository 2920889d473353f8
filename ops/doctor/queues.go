package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/fit"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/ops"
)

// queueCheck checks the queues of a task type and their failed items.
type queueCheck struct{ *diagnosis }

// ownerless reports queues that no server works on. It reports nothing if no server is eligible, because availability
// reports that, and nothing if no server has the labels of require, because requirement reports that. A queue that has
// been without an owner for so short a time that no audit can have seen it counts as being assigned.
func (d queueCheck) ownerless(ctx context.Context, r rosterRows) error {
	if !r.eligible() {
		return nil
	}
	d.list(condition.Hung, "queues without an owner, because calls of former sessions still hang", hungQueues(r))
	for reason, list := range r.waiting() {
		switch {
		case !r.mayOwn(plan.Selector{}):
		case reason == "":
			audited, err := d.audited(ctx, r)
			if err != nil {
				return err
			}
			fresh := slices.DeleteFunc(slices.Clone(list), func(id string) bool { return audited[id] })
			late := slices.DeleteFunc(list, func(id string) bool { return !audited[id] })
			d.list(condition.NoOwner, "queues without an owner", names(late))
			if len(fresh) > 0 {
				d.note(condition.NoOwner, "wait: a plan follows in a moment, and an audit within 30 s",
					"queues that are being assigned: %s", human.First(names(fresh), 5)).Subject = "fresh"
			}
		default:
			d.advise(condition.NoOwner, "start workers that may own them, or change the rule", "queues without an owner (%s): "+
				"%s", reason, human.First(names(list), 5)).Subject = reason
		}
	}
	withStatus := func(status string) []string {
		return r.eachQueue(func(q ops.QueueRecord) string {
			if q.Status != status {
				return ""
			}
			return escape.Name(q.QueueID)
		})
	}
	d.list(condition.Reserved, "queues that wait for the return of workers that have left", withStatus("RESERVED"))
	d.list(condition.Orphan, "queues whose owner is not registered", withStatus("ORPHAN"))
	return nil
}

// audited returns the queues that have had no owner for longer than the pause between two audits, while a server was
// eligible.
func (d queueCheck) audited(ctx context.Context, r rosterRows) (map[string]bool, error) {
	old := func(s ops.ServerRecord) bool { return s.Eligible() && s.Now.Sub(s.RegisterTime) > roster.AuditInterval }
	if !slices.ContainsFunc(r.servers, old) {
		return nil, nil
	}
	list, err := sqldb.Records[string](ctx, d.db, fmt.Sprintf(`SELECT queue_id FROM schedule_queue
		WHERE task_type = ? AND own_sign = ? AND cur_server IS NULL AND gmt_modified < {ago %d} ORDER BY queue_id`,
		roster.AuditInterval.Milliseconds()), r.task.TaskType, d.c.OwnSign())
	ids := map[string]bool{}
	for _, id := range list {
		ids[id] = true
	}
	return ids, err
}

// misplaced reports pinned queues that stay with an owner that lacks a label, because no server that has it may take
// them (P7, P14).
func (d queueCheck) misplaced(ctx context.Context, r rosterRows) error {
	stay, err := d.staying(ctx, r, func(q ops.QueueRecord, owner ops.ServerRecord) bool {
		pin, _ := plan.ParseSelector(q.Pin) // no server has the labels of a pin that cannot be read
		return !pin.Matches(planServer(owner))
	})
	list := make([]string, len(stay))
	for i, q := range stay {
		list[i] = fmt.Sprintf("%s (%s)", escape.Name(q.QueueID), q.Pin)
	}
	d.list(condition.PinUnmet, "no worker that has the labels of pinned queues may take them, and their owners keep them",
		list)
	return err
}

// halted reports queues that stay with a paused owner, which works nothing, because no other server may take them (P7).
// If no server is eligible, availability reports it. A queue that waits for a change is to have no owner.
func (d queueCheck) halted(ctx context.Context, r rosterRows) error {
	if !r.eligible() || r.task.RequestedTotal != nil {
		return nil
	}
	stay, err := d.staying(ctx, r, func(q ops.QueueRecord, owner ops.ServerRecord) bool {
		return owner.State == ops.StatePaused && !owner.Overdue && !q.Removing && q.Resizing == nil
	})
	byOwner := map[string][]string{}
	for _, q := range stay {
		byOwner[*q.CurServer] = append(byOwner[*q.CurServer], escape.Name(q.QueueID))
	}
	for _, s := range r.servers {
		if list := byOwner[s.UUID]; len(list) > 0 {
			d.advise(condition.NoEligible, "rota worker resume "+d.commandName(s)+", or let another worker have them",
				"%s is paused and keeps queues that no other worker may take, so that nobody works them: %s",
				ops.ServerName(s.UUID), human.First(list, 5)).Server = s.UUID
		}
	}
	return err
}

// staying returns the queues, selected with their owners, that a plan leaves with these.
func (d queueCheck) staying(ctx context.Context, r rosterRows,
	selects func(q ops.QueueRecord, owner ops.ServerRecord) bool,
) ([]ops.QueueRecord, error) {
	servers := make(map[string]ops.ServerRecord, len(r.servers))
	for _, s := range r.servers {
		servers[s.UUID] = s
	}
	var queues []ops.QueueRecord
	for _, q := range r.queues {
		if q.CurServer != nil {
			if owner, registered := servers[*q.CurServer]; registered && selects(q, owner) {
				queues = append(queues, q)
			}
		}
	}
	if len(queues) == 0 {
		return nil, nil
	}
	p, err := d.c.Queues().Plan(ctx, d.task, ops.Scenario{})
	moves := make(map[string]bool, len(p.Moves))
	for _, m := range p.Moves {
		moves[m.QueueID] = true
	}
	return slices.DeleteFunc(queues, func(q ops.QueueRecord) bool { return moves[q.QueueID] }), err
}

// hungQueues returns the queues without an owner whose calls hang, with the servers on which the calls hang.
func hungQueues(r rosterRows) []string {
	return r.eachQueue(func(q ops.QueueRecord) string {
		if !isHung(q) {
			return ""
		}
		names := make([]string, len(q.HungOn))
		for i, uuid := range q.HungOn {
			names[i] = ops.ServerName(uuid)
		}
		return escape.Name(q.QueueID) + " on " + strings.Join(names, " and ")
	})
}

// lateHandover is how long a hand-over may be pending until Diagnose reports it.
const lateHandover = time.Minute

// pendingHandovers reports hand-overs that take long, with one finding for each owner.
func (d queueCheck) pendingHandovers(r rosterRows) {
	late := map[string][]string{}
	longest := map[string]float64{}
	for _, q := range r.queues {
		if q.CurServer == nil || q.Requested == nil || *q.Requested < lateHandover.Seconds() {
			continue
		}
		late[*q.CurServer] = append(late[*q.CurServer], escape.Name(q.QueueID))
		longest[*q.CurServer] = max(longest[*q.CurServer], *q.Requested)
	}
	for _, s := range r.servers {
		if ids := late[s.UUID]; len(ids) > 0 && !s.Overdue {
			asked := time.Duration(longest[s.UUID]) * time.Second
			c := d.advise(condition.LateHandover, "find out what its dealer does; "+
				"rota worker drain --force "+d.commandName(s)+" takes the queues away and cancels the calls in flight",
				"%s has not handed over queues that were requested %s ago: %s", ops.ServerName(s.UUID), asked,
				human.First(ids, 5))
			c.Server, c.Since = s.UUID, time.Now().Add(-asked)
		}
	}
}

// items reports failed items, and names one of them with its error: most have the same.
func (d queueCheck) items(ctx context.Context, task ops.TaskRecord) error {
	held := "" // by the items of both states together, so it is said once
	if task.HeldKeys > 0 {
		held = fmt.Sprintf("; failed items hold %s", human.Count(task.HeldKeys, "order key", "order keys"))
	}
	for _, f := range []struct {
		kind           condition.Kind
		state          string
		n              int64
		one, many, end string
	}{
		{condition.DeadItems, ops.ItemDead, task.DeadItems, "item has", "items have", "failed permanently"},
		{
			condition.RetryItems, ops.ItemRetry, task.RetryItems,
			"item has failed and is", "items have failed and are", "retried",
		},
	} {
		if f.n == 0 {
			continue
		}
		example, err := d.failedItem(ctx, task.TaskType, f.state)
		if err != nil {
			return err
		}
		if f.n > 1 && example != "" {
			example = ", such as" + strings.TrimPrefix(example, ":")
		}
		d.add(f.kind, "%s %s%s%s", human.Count(f.n, f.one, f.many), f.end, example, held)
		held = ""
	}
	return nil
}

// failedItem returns one failed item of a state with its queue and its error, as ": 17 of queue 3: no such customer".
// It returns nothing if there is none any more.
func (d queueCheck) failedItem(ctx context.Context, taskType, state string) (string, error) {
	type item struct{ Key, QueueID, LastError string }
	i, found, err := sqldb.Record[item](ctx, d.db, `SELECT item_key, queue_id, last_error FROM schedule_failed_item
		WHERE task_type = ? AND own_sign = ? AND state = ? ORDER BY item_hash LIMIT 1`, taskType, d.c.OwnSign(), state)
	if err != nil || !found {
		return "", err
	}
	text := fmt.Sprintf(": %s of queue %s", escape.Name(fmt.Sprintf("%.60s", i.Key)), escape.Name(i.QueueID))
	if i.LastError != "" {
		text += ": " + sqldb.JoinLines(i.LastError)
	}
	return text, nil
}

// maxFailedItems bounds the failed items of a task type that dividedKeys reads.
const maxFailedItems = 10_000

// dividedKeys reports order keys with failed items in several queues (X10). Items that have failed under different
// divisions of the items into queues, such as before and after a split, prove nothing. Keys of different lengths are
// different: MySQL compares texts without the spaces at their ends.
func (d queueCheck) dividedKeys(ctx context.Context, task ops.TaskRecord) error {
	if task.DeadItems+task.RetryItems == 0 {
		return nil
	}
	type divided struct{ OrderKey, First, Last string }
	keys, err := sqldb.Records[divided](ctx, d.db, fmt.Sprintf(`SELECT order_key, MIN(queue_id), MAX(queue_id)
		FROM (SELECT order_key, queue_id, partition_version FROM schedule_failed_item
			WHERE task_type = ? AND own_sign = ? ORDER BY item_hash LIMIT %d) i
		WHERE order_key <> '' GROUP BY order_key, LENGTH(order_key), partition_version
		HAVING MIN(queue_id) <> MAX(queue_id) ORDER BY order_key`, maxFailedItems), task.TaskType, d.c.OwnSign())
	var list []string
	for _, k := range keys {
		key := escape.Name(fmt.Sprintf("%.60s", k.OrderKey))
		list = append(list, fmt.Sprintf("%s (%s and %s)", key, escape.Name(k.First), escape.Name(k.Last)))
	}
	d.list(condition.KeyDivided, "order keys with failed items in several queues", list)
	return err
}

// pendingChanges reports which servers a repartition waits for, which queues a plan could not move, and which owners a
// removal of a queue waits for. queues is the number of queues as the settings have it.
func (d queueCheck) pendingChanges(r rosterRows, queues int) {
	if n := r.task.RequestedTotal; n != nil {
		owners := map[string]bool{}
		for _, q := range r.queues {
			if q.CurServer != nil {
				owners[ops.ServerName(*q.CurServer)] = true
			}
		}
		busy := slices.Sorted(maps.Keys(owners))
		withdraw := command("rota task set", r.task.TaskType, fmt.Sprintf("queues=%d", queues))
		d.advise(condition.RepartitionWait, "wait; to withdraw: "+withdraw,
			"%s instead of %d, as soon as every worker has drained; it waits for %s", human.Count(*n, "queue",
				"queues"), r.task.QueueTotal, cmp.Or(human.First(busy, 5), "no worker"))
	}
	d.list(condition.PlanSkipped, "the last plan could not move queues, because transactions hold their rows",
		names(r.task.Skipped))
	d.resizing(r)
	for _, q := range r.queues {
		if q.Removing && q.CurServer != nil {
			words := []string{r.task.TaskType, q.QueueID}
			if strings.HasPrefix(q.QueueID, "-") {
				words = slices.Insert(words, 0, "--") // else the name would be a flag
			}
			withdraw := command("rota queue add", words...)
			d.advise(condition.RemovalWait, "wait; to withdraw: "+withdraw,
				"queue %s is to be removed and waits for %s to drain it", escape.Name(q.QueueID),
				ops.ServerName(*q.CurServer)).QueueID = q.QueueID
		}
	}
}

// resizing reports which queues wait to be split or merged.
func (d queueCheck) resizing(r rosterRows) {
	var waiting []string
	var withdraw string
	for _, q := range r.queues {
		if q.Resizing == nil || q.QueueTotal == nil {
			continue
		}
		if waiting = append(waiting, q.QueueID); withdraw == "" {
			withdraw = command("rota queue split", r.task.TaskType, q.QueueID, "--total", fmt.Sprint(*q.QueueTotal))
		}
	}
	if len(waiting) > 0 {
		d.advise(condition.ResizeWait, "wait; to withdraw: "+withdraw, "%s to be split or merged, each when its owner has "+
			"drained it: %s", human.Count(len(waiting), "queue is", "queues are"), human.First(waiting, 5))
	}
}

// crashes reports queues whose owners were expired one after the other before they had executed a page (S14).
func (d queueCheck) crashes(ctx context.Context, taskType string, settings center.Settings) error {
	type queue struct {
		ID      string
		Crashes int
	}
	queues, err := sqldb.Records[queue](ctx, d.db, `SELECT queue_id, crash_count FROM schedule_queue WHERE task_type = ?
		AND own_sign = ? AND crash_count > 0 ORDER BY queue_id`, taskType, d.c.OwnSign())
	most := fit.Processor(settings)
	var list []string
	for _, q := range queues {
		if most.TooManyCrashes(q.Crashes) {
			list = append(list, fmt.Sprintf("%s (%d)", escape.Name(q.ID), q.Crashes))
		}
	}
	d.list(condition.Crashes, "queues whose owners have died one after the other", list)
	return err
}

// failing reports queues that fail while others of their owners succeed (X7).
func (d queueCheck) failing(r rosterRows) {
	var longest float64
	list := r.eachQueue(func(q ops.QueueRecord) string {
		if q.FailingFor == nil || r.task.Paused || q.Status != "HELD" && q.Status != "MOVING" ||
			r.failingServer(*q.CurServer) {
			return ""
		}
		longest = max(longest, *q.FailingFor)
		return fmt.Sprintf("%s (%s)", escape.Name(q.QueueID), time.Duration(*q.FailingFor)*time.Second)
	})
	if len(list) > 0 {
		d.add(condition.QueueFailing, "queues whose calls have all failed, while others may succeed: %s",
			human.First(list, 5)).Since = time.Now().Add(-time.Duration(longest) * time.Second)
	}
}

// load reports what keeps the load of a task type with balance LOAD from being even (P16).
func (d queueCheck) load(ctx context.Context, r rosterRows, settings center.Settings) error {
	if settings.Balance != center.BalanceLoad {
		return nil
	}
	p, err := d.c.Queues().Plan(ctx, d.task, ops.Scenario{ByLoad: true})
	switch {
	case errors.Is(err, ops.ErrNoLoad):
		d.add(condition.LoadUnknown, "balance is LOAD, but no queue has a measured load: all queues count alike")
		return nil
	case err != nil:
		return err
	}
	if p.Load.Incomplete {
		d.add(condition.LoadIncomplete, "no queue moves to even the load: the loads of %d of %d queues are not known",
			p.Load.Queues-p.Load.Measured, p.Load.Queues)
	}
	for _, queue := range p.Load.TooLarge[:min(5, len(p.Load.TooLarge))] {
		d.advise(condition.LoadTooLarge, r.splits(queue, settings.Database), "queue %s has more load than a worker should "+
			"have, which no plan can even", escape.Name(queue)).QueueID = queue
	}
	if n := p.LoadMoves(); n > p.Load.Budget {
		d.add(condition.LoadBudget, "the load is uneven: %d queues would have to move, and load_moves_per_hour lets %d "+
			"move now", n, p.Load.Budget)
	}
	return nil
}

// splits says how to make a queue smaller; empty if the remedy of the kind is all that there is to say, because the
// parts of a queue would stay in one of several data databases. database is the setting.
func (r rosterRows) splits(queue, database string) string {
	i := slices.IndexFunc(r.queues, func(q ops.QueueRecord) bool { return q.QueueID == queue })
	split := command("rota queue split", r.task.TaskType, queue)
	switch {
	case i < 0 || r.queues[i].QueueTotal == nil:
		return "divide what it has among several names"
	case database != "" && roster.CheckDataName(database) != nil:
		return ""
	case !r.task.Splittable:
		return "if each select divides by the total of its queue: " +
			command("rota task set", r.task.TaskType, "splittable=true") + "; " + split
	}
	return split
}

// backlog reports queues in which work piles up. A task type that is paused, or whose window is closed, is not expected
// to get less, and nothing is counted then.
func (d queueCheck) backlog(r rosterRows, settings center.Settings) {
	if r.task.Paused || !r.closedUntil().IsZero() {
		return
	}
	// An autoscaler cannot rely on a count if the owner of the queue does not count often enough, or not any more.
	d.list(condition.BacklogOld, fmt.Sprintf("counts are older than %s, so /scale goes by the other queues, "+
		"or answers 503 if they are fewer than half", ops.FreshBacklog), r.eachQueue(func(q ops.QueueRecord) string {
		if q.BacklogAge == nil || *q.BacklogAge <= ops.FreshBacklog.Seconds() || q.Status != "HELD" {
			return ""
		}
		return fmt.Sprintf("%s (%s)", escape.Name(q.QueueID), wholeSeconds(*q.BacklogAge))
	}))
	// The counts of a queue that no live server owns are too old to tell.
	explained := map[string]bool{}
	for _, s := range r.servers {
		explained[s.UUID] = r.explained(s, settings.StallAfter)
	}
	withTrend := func(trend string) []string {
		return r.eachQueue(func(q ops.QueueRecord) string {
			if q.BacklogTrend == nil || *q.BacklogTrend != trend || q.BacklogItems == nil || q.Status != "HELD" ||
				q.CurServer != nil && explained[*q.CurServer] {
				return ""
			}
			text := fmt.Sprintf("%s (%d left", escape.Name(q.QueueID), *q.BacklogItems)
			if q.BacklogOldest != nil {
				text += fmt.Sprintf(", the oldest %s old", wholeSeconds(*q.BacklogOldest))
			}
			return text + ")"
		})
	}
	d.list(condition.BacklogStuck, "the oldest item stays the oldest, and the backlog does not become less",
		withTrend(ops.BacklogStuck))
	if growing := withTrend(ops.BacklogGrowing); len(growing) > 0 {
		hint := limitHint(r.task.TaskType, settings)
		d.advise(condition.BacklogGrowing, hint, "more items come than are executed: %s", human.First(growing, 5))
	}
	d.limitedBacklog(r, settings)
}

// limitedFor is how long a backlog takes at most, at the rate that the settings allow, before it is a finding.
const limitedFor = time.Hour

// limitedBacklog reports a backlog that the rate of the settings keeps waiting for long, although it becomes less.
func (d queueCheck) limitedBacklog(r rosterRows, settings center.Settings) {
	var items int64
	for _, q := range r.queues {
		if q.BacklogItems != nil && q.Status == "HELD" {
			items += *q.BacklogItems
		}
	}
	rate := settings.RatePerSecond
	if rate > 0 && float64(items)/rate > limitedFor.Seconds() {
		d.add(condition.BacklogLimited, "rate_per_second (%g) lets %s take at least %s", rate,
			human.Count(items, "waiting item", "waiting items"), wholeSeconds(float64(items)/rate))
	}
}

// limitHint says which limits may be why a backlog grows, and how to lift them; empty if the task type has none.
func limitHint(taskType string, s center.Settings) string {
	names := []string{"rate_per_second", "queue_rate_per_second", "max_in_flight", "queue_max_in_flight"}
	var limits, lifted []string
	for _, r := range s.Records() {
		if slices.Contains(names, r.Name) && r.Text != "0" {
			limits = append(limits, fmt.Sprintf("%s (%s)", r.Name, r.Text))
			lifted = append(lifted, r.Name+"=0")
		}
	}
	if len(limits) == 0 {
		return ""
	}
	return "it executes no more than its settings allow: " + strings.Join(limits, ", ") + "; to lift that: " +
		command("rota task set", append([]string{taskType}, lifted...)...)
}
