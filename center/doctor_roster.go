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
type rosterReading struct {
	task    TaskRecord
	servers []ServerRecord
	queues  []QueueRecord
}

// eligible returns the number of eligible servers.
func (r rosterReading) eligible() (n int) {
	for _, s := range r.servers {
		if s.Eligible() {
			n++
		}
	}
	return n
}

// longWait is how long a hand-over may be pending until Diagnose reports it.
const longWait = time.Minute

// served reports what keeps the task type from being worked on: a pause, missing servers, servers that are not eligible.
func (e *diagnosis) served(r rosterReading) {
	if r.task.Paused {
		e.note("pause", "rota task resume "+r.task.TaskType, "the task type is paused: no server starts a call")
	}
	switch {
	case r.task.QueueTotal == 0:
		e.note("queues", "start a worker: rota worker -c rota.yaml", "no server has ever served it in own_sign %s", e.c.ownSign)
	case len(r.servers) == 0:
		e.problem("servers", "start a worker: rota worker -c rota.yaml", "no server is registered")
	case r.eligible() == 0:
		e.problem("servers", "start a worker, or resume one: rota server list "+r.task.TaskType, "no server may take queues: all are paused, draining or silent")
	}
	for _, s := range r.servers {
		switch {
		case s.Overdue:
		case s.State == StatePaused:
			e.note("servers", "rota server resume "+e.handle(s), "%s is paused", ServerName(s.UUID))
		case s.State == StateDraining && s.Queues == 0:
			e.note("servers", "stop it, or: rota server resume "+e.handle(s), "%s is drained and still runs", ServerName(s.UUID))
		}
	}
}

// deadServers reports overdue servers, as a problem if another server should have taken over by now.
func (e *diagnosis) deadServers(r rosterReading) {
	for _, s := range r.servers {
		silent := time.Duration(s.HeartbeatAge * float64(time.Second)).Round(time.Second)
		judge := time.Duration(s.JudgeDead) * time.Millisecond
		owned := plural(s.Queues, "queue", "queues")
		switch {
		case !s.Overdue:
		case r.eligible() > 0 && silent < 3*judge:
			e.note("servers", "wait: the other servers take over in a moment", "%s has been silent for %s; it owns %s", ServerName(s.UUID), silent, owned)
		default:
			e.problem("servers", "start a worker, which takes over; find out why the process stopped", "%s has been silent for %s and no server has taken over; it owns %s", ServerName(s.UUID), silent, owned)
		}
	}
}

// queues reports queues that no server works on. If no server is eligible, served has reported that already.
func (e *diagnosis) queues(r rosterReading) {
	if r.eligible() == 0 {
		return
	}
	if list := queuesWith(r, "UNASSIGNED"); len(list) > 0 {
		e.problem("queues", "raise max_queues_per_server or start more workers; otherwise the next audit assigns them within 30 s", "queues without an owner: %s", some(list))
	}
	if list := queuesWith(r, "ORPHAN"); len(list) > 0 {
		e.problem("queues", "wait: the next audit assigns them within 30 s", "queues whose owner is not registered: %s", some(list))
	}
}

// queuesWith returns the ids of the queues that have a status.
func queuesWith(r rosterReading, status string) (ids []string) {
	for _, q := range r.queues {
		if q.Status == status {
			ids = append(ids, q.QueueID)
		}
	}
	return ids
}

// some lists the first five ids.
func some(ids []string) string {
	if len(ids) > 5 {
		return fmt.Sprintf("%s and %d more", strings.Join(ids[:5], ", "), len(ids)-5)
	}
	return strings.Join(ids, ", ")
}

// requests reports hand-overs that take long, with one finding for each owner.
func (e *diagnosis) requests(r rosterReading) {
	late := map[string][]string{}
	longest := map[string]float64{}
	for _, q := range r.queues {
		if q.CurServer == nil || q.Requested == nil || *q.Requested < longWait.Seconds() {
			continue
		}
		late[*q.CurServer] = append(late[*q.CurServer], q.QueueID)
		longest[*q.CurServer] = max(longest[*q.CurServer], *q.Requested)
	}
	for _, s := range r.servers {
		if ids := late[s.UUID]; len(ids) > 0 && !s.Overdue {
			asked := time.Duration(longest[s.UUID]) * time.Second
			e.problem("requests", "find out what its dealer does; rota server drain --force "+e.handle(s)+" takes the queues away and cancels the calls in flight",
				"%s has not handed over queues that were requested %s ago: %s", ServerName(s.UUID), asked, some(ids))
		}
	}
}

// stalls reports servers with a call of the dealer that takes longer than stall_after.
func (e *diagnosis) stalls(r rosterReading, after time.Duration) {
	for _, s := range r.servers {
		if s.OldestInHandAge == nil || s.Overdue || *s.OldestInHandAge < after.Seconds() {
			continue
		}
		age := time.Duration(*s.OldestInHandAge) * time.Second
		e.problem("dealer", "find out what it waits for (its log, the database's locks); batch_timeout ends such calls", "a call of the dealer of %s has been in flight for %s (stall_after %s)", ServerName(s.UUID), age, after)
	}
}

// errors reports the last errors of servers, each text once. An error may be old.
func (e *diagnosis) errors(r rosterReading) {
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
		e.note("errors", "see the log of "+ServerName(latest.UUID), "last error of %s%s: %s",
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
func (e *diagnosis) items(task TaskRecord) {
	if task.DeadItems > 0 {
		e.problem("items", "rota item list "+task.TaskType+" --state DEAD; then rota item retry or rota item drop", "%s failed permanently", plural(task.DeadItems, "item has", "items have"))
	}
	if task.RetryItems > 0 {
		e.note("items", "rota item list "+task.TaskType, "%s retried", plural(task.RetryItems, "item has failed and is", "items have failed and are"))
	}
}

// waitsForAll reports which servers a repartition waits for, and which owners a removal of a queue waits for.
func (e *diagnosis) waitsForAll(r rosterReading) {
	if n := r.task.RequestedTotal; n != nil {
		var busy []string
		for _, s := range r.servers {
			if s.DrainedPartition != r.task.Partition {
				busy = append(busy, ServerName(s.UUID))
			}
		}
		e.note("repartition", fmt.Sprintf("wait; to withdraw: rota task apply with queues: %d", r.task.QueueTotal),
			"%s instead of %d, as soon as every server has drained; it waits for %s", plural(*n, "queue", "queues"), r.task.QueueTotal, cmp.Or(some(busy), "no server"))
	}
	for _, q := range r.queues {
		if q.Removing && q.CurServer != nil {
			e.note("removal", "wait; to withdraw: rota queue add "+r.task.TaskType+" "+q.QueueID, "queue %s is to be removed and waits for %s to drain it", q.QueueID, ServerName(*q.CurServer))
		}
	}
}
