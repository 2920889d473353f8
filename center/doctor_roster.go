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

// rosterReading is what an examination has read of a task type.
type rosterReading struct {
	task    TaskRecord
	servers []ServerRecord
	queues  []QueueRecord
}

func (r rosterReading) eligible() (n int) {
	for _, s := range r.servers {
		if s.Eligible() {
			n++
		}
	}
	return n
}

// longWait is how long a hand-over may take before it is worth a word.
const longWait = time.Minute

func (e *diagnosis) served(r rosterReading) {
	if r.task.Paused {
		e.note("pause", "rota task resume "+r.task.TaskType, "it is paused: no server starts anything")
	}
	switch {
	case r.task.QueueTotal == 0:
		e.note("queues", "start a worker: rota worker -c rota.yaml", "nobody has ever served it in own_sign %s", e.c.ownSign)
	case len(r.servers) == 0:
		e.problem("servers", "start a worker: rota worker -c rota.yaml", "nobody serves it: no server is registered")
	case r.eligible() == 0:
		e.problem("servers", "start a worker, or resume one: rota server list "+r.task.TaskType, "nobody may take queues: all servers are paused, draining or silent")
	}
	for _, s := range r.servers {
		switch {
		case s.Overdue:
		case s.State == StatePaused:
			e.note("servers", "rota server resume "+e.handle(s), "%s is paused", ServerName(s.UUID))
		case s.State == StateDraining && s.Queues == 0:
			e.note("servers", "stop it, or: rota server resume "+e.handle(s), "%s is drained and lives on", ServerName(s.UUID))
		}
	}
}

// deadServers tells late ones from those that should have been taken over by now.
func (e *diagnosis) deadServers(r rosterReading) {
	for _, s := range r.servers {
		silent := time.Duration(s.HeartbeatAge * float64(time.Second)).Round(time.Second)
		judge := time.Duration(s.JudgeDead) * time.Millisecond
		owned := plural(s.Queues, "queue", "queues")
		switch {
		case !s.Overdue:
		case r.eligible() > 0 && silent < 3*judge:
			e.note("servers", "nothing: the others take over in a moment", "%s has been silent for %s; it owns %s", ServerName(s.UUID), silent, owned)
		default:
			e.problem("servers", "start a worker, which takes over; see why the process stopped", "%s has been silent for %s and is not taken over; it owns %s", ServerName(s.UUID), silent, owned)
		}
	}
}

// queues tells of those that nobody works on. While there is no server at all, served has told enough.
func (e *diagnosis) queues(r rosterReading) {
	if r.eligible() == 0 {
		return
	}
	if list := queuesWith(r, "UNASSIGNED"); len(list) > 0 {
		e.problem("queues", "raise max_queues_per_server or start more workers; if neither limits, the next audit mends it within 30 s", "without owner: %s", some(list))
	}
	if list := queuesWith(r, "ORPHAN"); len(list) > 0 {
		e.problem("queues", "the next audit mends it within 30 s; look again", "their owner is not registered: %s", some(list))
	}
}

func queuesWith(r rosterReading, status string) (ids []string) {
	for _, q := range r.queues {
		if q.Status == status {
			ids = append(ids, q.QueueID)
		}
	}
	return ids
}

// some names the first few.
func some(ids []string) string {
	if len(ids) > 5 {
		return fmt.Sprintf("%s and %d more", strings.Join(ids[:5], ", "), len(ids)-5)
	}
	return strings.Join(ids, ", ")
}

// requests tells of hand-overs that take long: one finding for each owner that keeps others waiting.
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
			e.problem("requests", "see what its dealer does; rota server drain --force "+e.handle(s)+" takes them away, and cancels what is in hand",
				"%s was asked for queues %s ago and has not handed them over: %s", ServerName(s.UUID), asked, some(ids))
		}
	}
}

func (e *diagnosis) stalls(r rosterReading, after time.Duration) {
	for _, s := range r.servers {
		if s.OldestInHandAge == nil || s.Overdue || *s.OldestInHandAge < after.Seconds() {
			continue
		}
		age := time.Duration(*s.OldestInHandAge) * time.Second
		e.problem("dealer", "see what it waits for (its log, the database's locks); batch_timeout ends such calls", "%s has had a call of its dealer in hand for %s (stall_after %s)", ServerName(s.UUID), age, after)
	}
}

// errors shows the last error of servers, which may be an old one: the same error once.
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

// errorAge is in seconds; an older program does not tell.
func errorAge(s ServerRecord) float64 {
	if s.LastErrorAge == nil {
		return math.Inf(1)
	}
	return *s.LastErrorAge
}

// errText is a text that is to be put on one line.
type errText string

func (t errText) Error() string { return string(t) }

func (e *diagnosis) items(task TaskRecord) {
	if task.DeadItems > 0 {
		e.problem("items", "rota item list "+task.TaskType+" --state DEAD; then rota item retry or rota item drop", "%s failed for good", plural(task.DeadItems, "item has", "items have"))
	}
	if task.RetryItems > 0 {
		e.note("items", "rota item list "+task.TaskType, "%s tried again", plural(task.RetryItems, "item has failed and is", "items have failed and are"))
	}
}

// waitsForAll tells for whom another number of queues waits, and who has a queue that shall go.
func (e *diagnosis) waitsForAll(r rosterReading) {
	if n := r.task.RequestedTotal; n != nil {
		var busy []string
		for _, s := range r.servers {
			if s.DrainedPartition != r.task.Partition {
				busy = append(busy, ServerName(s.UUID))
			}
		}
		e.note("repartition", fmt.Sprintf("wait; to withdraw: rota task apply with queues: %d", r.task.QueueTotal),
			"%s instead of %d, as soon as everybody has drained; it waits for %s", plural(*n, "queue", "queues"), r.task.QueueTotal, cmp.Or(some(busy), "nobody"))
	}
	for _, q := range r.queues {
		if q.Removing && q.CurServer != nil {
			e.note("removal", "wait; to withdraw: rota queue add "+r.task.TaskType+" "+q.QueueID, "queue %s is to be removed and waits for %s to drain it", q.QueueID, ServerName(*q.CurServer))
		}
	}
}
