package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/runs"
)

// text describes the run, its graph and its queues.
func (d runDetails) text(sc screen) string {
	parts := []string{d.head(sc)}
	if len(d.Graph.Runs) > 1 {
		parts = append(parts, runTreeText(sc, d.Graph, d.Run.ID))
	}
	if len(d.Queues) > 0 {
		parts = append(parts, render(sc, urgentFirst(d.Queues), runQueueColumns(d.Run.Now)))
	}
	if len(d.FailedItems) > 0 {
		parts = append(parts, render(sc, d.FailedItems, runItemColumns)+d.moreItems(sc))
	}
	return strings.Join(parts, "\n\n")
}

// moreItems returns the line below the failed items that says how many more there are.
func (d runDetails) moreItems(sc screen) string {
	more := d.Run.ItemsFailed - int64(len(d.FailedItems))
	if more <= 0 {
		return ""
	}
	return "\n" + wrapped(sc, fmt.Sprintf("and %s more failed: rota item list --run %s", number(more), d.Run.ID))
}

// head returns the lines above the tables, indented like them.
func (d runDetails) head(sc screen) string {
	r := d.Run
	lines := []string{
		escape.Text(fmt.Sprintf(" run %s of %s$%s", r.ID, r.TaskType, r.OwnSign)),
		d.stateLine(sc),
	}
	if r.Message != "" {
		lines = append(lines, wrapped(sc, "reason: "+oneLine(r.Message)))
	}
	if !r.AckedAt.IsZero() {
		lines = append(lines, wrapped(sc, "acknowledged by "+r.AckedBy+" "+relativeTime(r.Now, r.AckedAt)))
	}
	lines = append(lines, wrapped(sc, originText(r)))
	if r.Params != "" {
		lines = append(lines, wrapped(sc, "params "+oneLine(r.Params)))
	}
	if !r.StartedAt.IsZero() {
		lines = append(lines, "", " "+progressBar(r, cmp.Or(sc.width, 100)-2))
	}
	return strings.Join(lines, "\n")
}

// stateLine returns the run's state, its blocker and its times.
func (d runDetails) stateLine(sc screen) string {
	state := d.Run.DisplayState()
	line := wrapped(sc, strings.Join(append([]string{state + blockerSuffix(d.Run, d.Blocker)}, runTimes(d.Run)...), ", "))
	if sc.color {
		line = strings.Replace(line, state, byMeaning(d.Run, state), 1)
	}
	return line
}

// runTimes returns the times that matter in the run's state.
func runTimes(r runs.Record) (list []string) {
	add := func(what string, t time.Time) { list = append(list, what+" "+relativeTime(r.Now, t)) }
	if r.StartedAt.IsZero() {
		add("due", r.ScheduledAt)
	} else {
		add("started", r.StartedAt)
	}
	switch {
	case r.State == runs.Running:
		add("deadline", r.DeadlineAt)
	case !r.Ended() && !r.DeadlineAt.IsZero():
		add("must start", r.DeadlineAt)
	}
	if r.Ended() {
		add("ended", r.FinishedAt)
	}
	return list
}

// originText says what made the run.
func originText(r runs.Record) string {
	origin := "submitted, key " + r.Key
	if r.Trigger != "" {
		origin = "by trigger " + r.Trigger + ", for " + timeText(r.ScheduledAt)
	}
	if r.Backfill != "" {
		origin += ", in backfill " + r.Backfill
	}
	return fmt.Sprintf("%s, priority %d", origin, r.Priority)
}

// wrapped escapes a text, indents it and wraps it to the screen.
func wrapped(sc screen, s string) string {
	sc.width = max(sc.width-2, 0)
	return " " + strings.ReplaceAll(sc.wrap(s), "\n", "\n ")
}

var urgency = []string{runs.QueueFailed, runs.QueueRunning, runs.QueuePending, runs.QueueCancelled, runs.QueueDone}

// urgentFirst sorts the queues by urgency and keeps the order of equal ones.
func urgentFirst(queues []runs.Queue) []runs.Queue {
	return slices.SortedStableFunc(slices.Values(queues), func(a, b runs.Queue) int {
		return cmp.Compare(slices.Index(urgency, a.State), slices.Index(urgency, b.State))
	})
}

// runQueueColumns shows times relative to now, the database's time.
func runQueueColumns(now time.Time) []column[runs.Queue] {
	return []column[runs.Queue]{
		{title: "QUEUE", text: func(q runs.Queue) string { return q.QueueID }},
		{title: "STATE", text: func(q runs.Queue) string { return q.State }, color: byMeaning[runs.Queue]},
		{title: "SERVER", text: func(q runs.Queue) string { return orDash(q.Server) }, uuid: true},
		{title: "ATTEMPT", text: func(q runs.Queue) string { return fmt.Sprint(q.Attempt) }, right: true},
		{title: "ITEMS", text: func(q runs.Queue) string { return itemsText(q.ItemsDone, q.ItemsAtLeast) }, right: true},
		{
			title: "FAILED", text: func(q runs.Queue) string { return number(q.ItemsFailed) }, right: true,
			color: badUnlessZero[runs.Queue],
		},
		{title: "EPOCH", text: func(q runs.Queue) string { return number(q.Epoch) }, right: true, dropRank: 4},
		{
			title: "PROGRESS", text: func(q runs.Queue) string { return relativeTime(now, q.ProgressAt) }, right: true,
			dropRank: 2,
		},
		{
			title: "RETRY", text: func(q runs.Queue) string { return relativeTime(now, q.NextAttemptAt) }, right: true,
			dropRank: 1,
		},
		{title: "CURSOR", text: func(q runs.Queue) string { return oneLine(q.Cursor) }, dropRank: 3, truncate: true},
		{title: "LAST ERROR", text: func(q runs.Queue) string { return oneLine(q.LastError) }, truncate: true},
	}
}
