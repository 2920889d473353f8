package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/plural"
)

// labelWidth is the widest name of a queue in the matrix.
const labelWidth = 20

// matrixMarks are the characters of the states in the matrix. The states of runs and of queues share a legend.
var matrixMarks = []struct {
	mark   byte
	states []string
}{
	{'+', []string{center.RunSuccess, center.RunQueueDone}},
	{'>', []string{center.RunRunning}},
	{'r', []string{center.RunReady}},
	{'w', []string{center.RunWaiting, center.RunQueuePending}},
	{'x', []string{center.RunFailed}},
	{'d', []string{center.RunDependentFailed}},
	{'c', []string{center.RunCancelled}},
	{'s', []string{center.RunSkipped}},
}

// noMark stands for a slot without a run, and for a queue before its run was opened.
const noMark = '.'

func markOf(state string) byte {
	for _, m := range matrixMarks {
		if slices.Contains(m.states, state) {
			return m.mark
		}
	}
	return noMark
}

// window returns the slots that fit the width, around the first slot that has not ended, or from the wanted slot on.
func window(list []center.BackfillSlot, first, width int) (from, to int) {
	n := len(list)
	room := width - labelWidth - 3
	if width == 0 || room >= n && first == 0 {
		return min(max(first-1, 0), n), n
	}
	room = max(room, 10)
	from = first - 1
	if first == 0 {
		at := slices.IndexFunc(list, func(s center.BackfillSlot) bool { return s.State == "" || !(center.Run{State: s.State}).Ended() })
		if at < 0 {
			at = n
		}
		from = min(max(at-room/2, 0), n-room)
	}
	from = min(max(from, 0), n)
	return from, min(from+room, n)
}

// text describes the backfill and shows its matrix.
func (d backfillDetails) text(sc screen) string {
	return d.head(sc) + "\n\n" + d.matrix(sc)
}

// head returns the lines above the matrix, indented like it.
func (d backfillDetails) head(sc screen) string {
	b := d.Backfill
	state := b.DisplayState()
	line := wrapped(sc, strings.Join(backfillTimes(b), ", "))
	if sc.color {
		line = strings.Replace(line, state, byMeaning(b, state), 1)
	}
	lines := []string{escape.Text(fmt.Sprintf(" backfill %s of %s$%s", b.ID, b.TaskType, b.OwnSign)), line}
	if b.Message != "" {
		lines = append(lines, wrapped(sc, "reason: "+oneLine(b.Message)))
	}
	return strings.Join(append(lines, wrapped(sc, rangeText(b)), wrapped(sc, slotsText(b))), "\n")
}

// backfillTimes returns the state of a backfill, and the times that matter in it.
func backfillTimes(b center.BackfillRecord) []string {
	list := []string{b.DisplayState(), "started " + relativeTime(b.Now, b.CreatedAt)}
	if b.Actor != "" {
		list[1] += " by " + b.Actor
	}
	if !b.EndedAt.IsZero() {
		list = append(list, "ended "+relativeTime(b.Now, b.EndedAt))
	}
	return list
}

// rangeText says which slots the backfill has, and how it makes their runs.
func rangeText(b center.BackfillRecord) string {
	schedule := scheduleText(center.Trigger{Kind: b.Kind, Expression: b.Expression, TimeZone: b.TimeZone})
	list := []string{
		"slots of trigger " + b.Trigger + " (" + schedule + ") from " + timeText(b.From) + " to " + timeText(b.To),
		fmt.Sprintf("parallel %d, priority %d", b.Parallel, b.Priority),
	}
	for _, o := range []struct {
		on   bool
		text string
	}{{b.NewestFirst, "newest first"}, {b.RerunFailed, "reruns what failed"}, {!b.Dependants, "without dependants"}} {
		if o.on {
			list = append(list, o.text)
		}
	}
	return strings.Join(list, ", ")
}

// slotsText counts slots and runs.
func slotsText(b center.BackfillRecord) string {
	line := fmt.Sprintf("%s: %d made, %d kept, %d left; runs: %d open, %d succeeded, %d failed, %d cancelled",
		plural.Of(b.SlotsTotal, "slot", "slots"), b.SlotsMade, b.SlotsKept, b.SlotsTotal-b.SlotsMade-b.SlotsKept,
		b.RunsOpen, b.RunsSuccess, b.RunsFailed, b.RunsCancelled)
	if b.DependantsOpen+b.DependantsFailed > 0 {
		line += fmt.Sprintf("; dependants: %d open, %d failed or cancelled", b.DependantsOpen, b.DependantsFailed)
	}
	return line
}

// matrixRow is a row of the matrix.
type matrixRow struct {
	label string
	marks []byte
}

// matrix returns the runs and queues of the shown slots, a legend, and a note that names what it leaves out.
func (d backfillDetails) matrix(sc screen) string {
	rows := d.rows()
	shown := rows
	if room := max(sc.height-14, 5); sc.height > 0 && len(rows) > room {
		shown = urgentRows(rows, room)
	}
	wide := 0
	for i := range shown {
		shown[i].label = text.Snip(escape.Text(shown[i].label), labelWidth, "…")
		wide = max(wide, text.StringWidth(shown[i].label))
	}
	var lines []string
	if d.from < d.to {
		lines = append(lines, fmt.Sprintf(" %s  %s ... %s", strings.Repeat(" ", wide), timeText(d.Slots[d.from].ScheduledAt), timeText(d.Slots[d.to-1].ScheduledAt)))
	}
	for _, r := range shown {
		lines = append(lines, " "+r.label+strings.Repeat(" ", wide-text.StringWidth(r.label))+"  "+string(r.marks))
	}
	lines = append(lines, "", wrapped(sc, legend()))
	if note := d.leftOut(len(rows) - len(shown)); note != "" {
		lines = append(lines, text.WrapSoft(note, cmp.Or(sc.width, 1000)))
	}
	return strings.Join(lines, "\n")
}

// rows returns the row of the runs, and the rows of the queues in natural order.
func (d backfillDetails) rows() []matrixRow {
	slots := d.Slots[d.from:d.to]
	runs := matrixRow{label: "run"}
	column := map[string]int{}
	for i, s := range slots {
		runs.marks = append(runs.marks, markOf(s.State))
		column[s.RunID] = i
	}
	byQueue := map[string]int{}
	var rows []matrixRow
	for _, q := range d.Queues {
		i, known := byQueue[q.QueueID]
		if !known {
			i = len(rows)
			byQueue[q.QueueID] = i
			rows = append(rows, matrixRow{q.QueueID, slices.Repeat([]byte{noMark}, len(slots))})
		}
		rows[i].marks[column[q.RunID]] = markOf(q.State)
	}
	return append([]matrixRow{runs}, rows...)
}

// urgentRows returns the first n rows. Rows with failures come before the others, and the row of the runs stays the
// first.
func urgentRows(rows []matrixRow, n int) []matrixRow {
	failed := func(r matrixRow) int { return slices.Index(r.marks, markOf(center.RunQueueFailed)) }
	list := slices.Clone(rows)
	slices.SortStableFunc(list[1:], func(a, b matrixRow) int { return -cmp.Compare(min(failed(a), 0), min(failed(b), 0)) })
	return list[:n]
}

func legend() string {
	list := []string{string(noMark) + " none yet"}
	for _, m := range matrixMarks {
		list = append(list, string(m.mark)+" "+strings.Join(m.states, "/"))
	}
	return strings.Join(list, "  ")
}

// leftOut names the slots and queues that the matrix does not show, and how to see them.
func (d backfillDetails) leftOut(queues int) string {
	var parts []string
	for _, r := range [][2]int{{0, d.from}, {d.to, len(d.Slots)}} {
		if r[0] < r[1] {
			parts = append(parts, fmt.Sprintf("slots %d to %d", r[0]+1, r[1]))
		}
	}
	if queues > 0 {
		parts = append(parts, plural.Of(queues, "queue", "queues"))
	}
	if len(parts) == 0 {
		return ""
	}
	return leftOutPrefix + strings.Join(parts, ", ") + " (--first, a larger terminal, | less -S or -o json shows them)"
}
