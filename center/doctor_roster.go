package center

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// rosterRows holds what Diagnose has read about one task type.
type rosterRows struct {
	task    TaskRecord
	servers []ServerRecord
	queues  []QueueRecord
}

// eligible returns the number of eligible servers.
func (r rosterRows) eligible() (n int) {
	for _, s := range r.servers {
		if s.Eligible() {
			n++
		}
	}
	return n
}

// lateHandover is how long a hand-over may be pending until Diagnose reports it.
const lateHandover = time.Minute

// availability reports what keeps the task type from being worked on: a pause, missing servers, servers that are not eligible.
func (d *diagnosis) availability(r rosterRows) {
	if r.task.Paused {
		d.note("pause", "rota task resume "+r.task.TaskType, "the task type is paused: no server starts a call")
	}
	switch {
	case r.task.QueueTotal == 0:
		d.note("queues", "start a worker: rota worker -c rota.yaml", "no server has ever served it in own_sign %s", d.c.ownSign)
	case len(r.servers) == 0:
		d.problem("servers", "start a worker: rota worker -c rota.yaml", "no server is registered")
	case r.eligible() == 0:
		d.problem("servers", "start a worker, or resume one: rota server list "+r.task.TaskType, "no server may take queues: all are paused, draining or silent")
	}
	for _, s := range r.servers {
		switch {
		case s.Overdue:
		case s.State == StatePaused:
			d.note("servers", "rota server resume "+d.commandName(s), "%s is paused", ServerName(s.UUID))
		case s.State == StateDraining && s.Queues == 0:
			d.note("servers", "stop it, or: rota server resume "+d.commandName(s), "%s is drained and still runs", ServerName(s.UUID))
		}
	}
}

// overdueServers reports overdue servers, as a problem if another server should have taken over by now.
func (d *diagnosis) overdueServers(r rosterRows) {
	for _, s := range r.servers {
		silent := time.Duration(s.HeartbeatAge * float64(time.Second)).Round(time.Second)
		judgeDead := time.Duration(s.JudgeDead) * time.Millisecond
		owned := plural(s.Queues, "queue", "queues")
		switch {
		case !s.Overdue:
		case r.eligible() > 0 && silent < 3*judgeDead:
			d.note("servers", "wait: the other servers take over in a moment", "%s has been silent for %s; it owns %s", ServerName(s.UUID), silent, owned)
		default:
			d.problem("servers", "start a worker, which takes over; find out why the process stopped", "%s has been silent for %s and no server has taken over; it owns %s", ServerName(s.UUID), silent, owned)
		}
	}
}

// queues reports queues that no server works on. If no server is eligible, availability has reported that already.
func (d *diagnosis) queues(r rosterRows) {
	if r.eligible() == 0 {
		return
	}
	if list := hungQueues(r); len(list) > 0 {
		d.problem("queues", "start another worker, or end the process in which the call hangs; a context that is cancelled should end the call", "queues without an owner, because calls of former sessions still hang: %s", firstFive(list))
	}
	if list := queuesWithStatus(r, "UNASSIGNED"); len(list) > 0 {
		d.problem("queues", "raise max_queues_per_server or start more workers; otherwise the next audit assigns them within 30 s", "queues without an owner: %s", firstFive(list))
	}
	if list := queuesWithStatus(r, "ORPHAN"); len(list) > 0 {
		d.problem("queues", "wait: the next audit assigns them within 30 s", "queues whose owner is not registered: %s", firstFive(list))
	}
}

// queuesWithStatus returns the ids of the queues that have a status.
func queuesWithStatus(r rosterRows, status string) (ids []string) {
	for _, q := range r.queues {
		if q.Status == status && !isHung(q) {
			ids = append(ids, q.QueueID)
		}
	}
	return ids
}

// isHung reports whether the queue has no owner and a server does not get it because of a call that hangs (P9).
func isHung(q QueueRecord) bool { return q.Status == "UNASSIGNED" && len(q.HungOn) > 0 }

// hungQueues returns the queues without an owner whose calls hang, with the servers on which they do.
func hungQueues(r rosterRows) (list []string) {
	for _, q := range r.queues {
		if isHung(q) {
			names := make([]string, len(q.HungOn))
			for i, uuid := range q.HungOn {
				names[i] = ServerName(uuid)
			}
			list = append(list, q.QueueID+" on "+strings.Join(names, " and "))
		}
	}
	return list
}

// firstFive lists the first five ids.
func firstFive(ids []string) string {
	if len(ids) > 5 {
		return fmt.Sprintf("%s and %d more", strings.Join(ids[:5], ", "), len(ids)-5)
	}
	return strings.Join(ids, ", ")
}

// pendingHandovers reports hand-overs that take long, with one finding for each owner.
func (d *diagnosis) pendingHandovers(r rosterRows) {
	late := map[string][]string{}
	longest := map[string]float64{}
	for _, q := range r.queues {
		if q.CurServer == nil || q.Requested == nil || *q.Requested < lateHandover.Seconds() {
			continue
		}
		late[*q.CurServer] = append(late[*q.CurServer], q.QueueID)
		longest[*q.CurServer] = max(longest[*q.CurServer], *q.Requested)
	}
	for _, s := range r.servers {
		if ids := late[s.UUID]; len(ids) > 0 && !s.Overdue {
			asked := time.Duration(longest[s.UUID]) * time.Second
			d.problem("requests", "find out what its dealer does; rota server drain --force "+d.commandName(s)+" takes the queues away and cancels the calls in flight",
				"%s has not handed over queues that were requested %s ago: %s", ServerName(s.UUID), asked, firstFive(ids))
		}
	}
}

// stalledCalls reports servers with a call of the dealer that takes longer than stall_after.
func (d *diagnosis) stalledCalls(r rosterRows, after time.Duration) {
	for _, s := range r.servers {
		if s.OldestInFlightAge == nil || s.Overdue || *s.OldestInFlightAge < after.Seconds() {
			continue
		}
		age := time.Duration(*s.OldestInFlightAge) * time.Second
		d.problem("dealer", "find out what it waits for (its log, the database's locks); batch_timeout ends such calls", "a call of the dealer of %s has been in flight for %s (stall_after %s)", ServerName(s.UUID), age, after)
	}
}

// errors reports the last errors of servers, each text once. An error may be old.
func (d *diagnosis) errors(r rosterRows) {
	servers := map[string][]ServerRecord{}
	for _, s := range r.servers {
		if s.LastError != "" {
			servers[s.LastError] = append(servers[s.LastError], s)
		}
	}
	texts := slices.SortedFunc(maps.Keys(servers), func(a, b string) int {
		return cmp.Or(len(servers[b])-len(servers[a]), strings.Compare(a, b))
	})
	for _, text := range texts[:min(len(texts), 5)] {
		latest := slices.MinFunc(servers[text], func(a, b ServerRecord) int { return cmp.Compare(errorAge(a), errorAge(b)) })
		when := ""
		if latest.LastErrorAge != nil {
			when = fmt.Sprintf(", %s ago", time.Duration(errorAge(latest))*time.Second)
		}
		d.note("errors", "see the log of "+ServerName(latest.UUID), "last error of %s%s: %s",
			plural(len(servers[text]), "server", "servers"), when, oneLine(errText(text)))
	}
}

// errorAge returns the age of the last error in seconds. It is infinite for servers of an older version, which do not
// report it.
func errorAge(s ServerRecord) float64 {
	if s.LastErrorAge == nil {
		return math.Inf(1)
	}
	return *s.LastErrorAge
}

// errText is a text as an error, for oneLine.
type errText string

func (t errText) Error() string { return string(t) }

// items reports failed items.
func (d *diagnosis) items(task TaskRecord) {
	if task.DeadItems > 0 {
		d.problem("items", "rota item list "+task.TaskType+" --state DEAD; then rota item retry or rota item drop", "%s failed permanently", plural(task.DeadItems, "item has", "items have"))
	}
	if task.RetryItems > 0 {
		d.note("items", "rota item list "+task.TaskType, "%s retried", plural(task.RetryItems, "item has failed and is", "items have failed and are"))
	}
}

// pendingQueueChanges reports which servers a repartition waits for, and which owners a removal of a queue waits for.
func (d *diagnosis) pendingQueueChanges(r rosterRows) {
	if n := r.task.RequestedTotal; n != nil {
		var busy []string
		for _, s := range r.servers {
			if s.DrainedPartition != r.task.Partition {
				busy = append(busy, ServerName(s.UUID))
			}
		}
		d.note("repartition", fmt.Sprintf("wait; to withdraw: rota task apply with queues: %d", r.task.QueueTotal),
			"%s instead of %d, as soon as every server has drained; it waits for %s", plural(*n, "queue", "queues"), r.task.QueueTotal, cmp.Or(firstFive(busy), "no server"))
	}
	for _, q := range r.queues {
		if q.Removing && q.CurServer != nil {
			d.note("removal", "wait; to withdraw: rota queue add "+r.task.TaskType+" "+q.QueueID, "queue %s is to be removed and waits for %s to drain it", q.QueueID, ServerName(*q.CurServer))
		}
	}
}
