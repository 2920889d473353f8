package console

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/runs"
)

// calendarDays is how many days the calendar shows besides today.
const calendarDays = 13

// calendar is what the runs of each task type were like on the last days.
type calendar struct {
	Days []time.Time
	Rows []calendarRow
}

type calendarRow struct {
	TaskType string
	Days     []calendarDay
}

// calendarDay is the runs of a task type on a day.
type calendarDay struct {
	Runs  int64
	Worst mark
	Title string
}

// calendarOf returns the calendar of the task types that the reader may look at.
func (v *viewer) calendarOf(ctx context.Context, taskType string) (c calendar) {
	list := loadRows(ctx, v, "days", func(d runs.Day) string { return d.TaskType },
		func(ctx context.Context) ([]runs.Day, error) { return v.client.Runs().Days(ctx, calendarDays) })
	if len(list) == 0 {
		return c
	}
	today := v.asOf().UTC().Truncate(24 * time.Hour)
	if newest := slices.MaxFunc(list,
		func(a, b runs.Day) int { return strings.Compare(a.Day, b.Day) }).Day; newest > today.Format(time.DateOnly) {
		today, _ = time.Parse(time.DateOnly, newest) // the database's clock is ahead of this one
	}
	index := map[string]int{}
	for i := range calendarDays + 1 {
		day := today.AddDate(0, 0, i-calendarDays)
		c.Days = append(c.Days, day)
		index[day.Format(time.DateOnly)] = i
	}
	for _, d := range list {
		i, shown := index[d.Day]
		if !shown || taskType != "" && d.TaskType != taskType {
			continue
		}
		if n := len(c.Rows); n == 0 || c.Rows[n-1].TaskType != d.TaskType {
			c.Rows = append(c.Rows, calendarRow{TaskType: d.TaskType, Days: make([]calendarDay, calendarDays+1)})
		}
		c.Rows[len(c.Rows)-1].Days[i].add(d)
	}
	return c
}

func (d *calendarDay) add(day runs.Day) {
	state := runMark(day.State, false)
	text := number(day.Runs) + " " + state.Text
	if d.Runs > 0 {
		d.Title += ", "
	}
	d.Title += text
	if d.Runs == 0 || rank([]mark{state}) < rank([]mark{d.Worst}) {
		d.Worst = mark{state.Kind, text}
	}
	d.Runs += day.Runs
}

// matrix is the queues of a task type by its last runs.
type matrix struct {
	Runs []runs.Record // the oldest first
	Rows []matrixRow
	Rest int // queues that are not shown
}

type matrixRow struct {
	QueueID string
	Cells   []mark // of each run; without a kind if the run had no such queue
}

const (
	matrixRuns   = 20
	matrixQueues = 256
)

// matrixOf returns the queues of the last runs, those with trouble first.
func (v *viewer) matrixOf(ctx context.Context, latest []runs.Record) (m matrix) {
	var slots []runs.BackfillSlot
	key := []string{"matrix"}
	for _, r := range latest {
		if n := r.Queues(); n == 0 || n > matrixQueues || len(slots) == matrixRuns {
			continue
		}
		m.Runs = append(m.Runs, r)
		slots = append(slots, runs.BackfillSlot{RunID: r.ID})
		key = append(key, r.ID)
	}
	slices.Reverse(m.Runs)
	if len(slots) < 2 {
		return matrix{}
	}
	cells := load(ctx, v, strings.Join(key, "\x00"), func(ctx context.Context) ([]runs.BackfillQueue, error) {
		return v.client.Backfills().Queues(ctx, slots)
	})
	column, row := map[string]int{}, map[string]int{}
	for i, r := range m.Runs {
		column[r.ID] = i
	}
	for _, c := range cells {
		i, ok := row[c.QueueID]
		if !ok {
			i = len(m.Rows)
			row[c.QueueID] = i
			m.Rows = append(m.Rows, matrixRow{c.QueueID, make([]mark, len(m.Runs))})
		}
		m.Rows[i].Cells[column[c.RunID]] = runMark(c.State, false)
	}
	slices.SortStableFunc(m.Rows, func(a, b matrixRow) int { return b.trouble() - a.trouble() })
	m.Rest = max(0, len(m.Rows)-rowsPerPage)
	m.Rows = m.Rows[:len(m.Rows)-m.Rest]
	return m
}

// trouble returns in how many runs the queue has failed.
func (r matrixRow) trouble() (n int) {
	for _, c := range r.Cells {
		n += count(c.Kind == "bad")
	}
	return n
}
