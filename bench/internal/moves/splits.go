package moves

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/bench/internal/report"
	"github.com/dutyrota/rota/bench/internal/stage"
)

// SplitOptions are the sizes of the benchmark of splits.
type SplitOptions struct {
	Options
	Rounds int
	Rows   int           // each is an item
	Window time.Duration // for which the rate is measured where nothing changes
}

// `make bench` runs FullSplits, the tests run ShortSplits.
var (
	FullSplits = SplitOptions{
		Options: Options{Workers: 8, Queues: 64, Item: 80 * time.Millisecond, Calm: 5 * time.Second},
		Rounds:  5, Rows: 16_000, Window: 3 * time.Second,
	}
	ShortSplits = SplitOptions{
		Options: Options{Workers: 2, Queues: 4, Item: 5 * time.Millisecond, Calm: 300 * time.Millisecond, Heartbeat: 200 * time.Millisecond},
		Rounds:  1, Rows: 2_000, Window: 300 * time.Millisecond,
	}
)

// The ways to get twice as many queues.
const (
	wayNone    = "no change"
	waySplit   = "split"
	wayBarrier = "barrier"
)

// SplitResult is what one way costs in one round.
type SplitResult struct {
	Database, Way string
	Calm, During  float64       // items per second before the change, and from the request to its end
	Took          time.Duration // from the request until an item of each new queue has begun
	Pause         time.Duration // the longest time for which no item of a part was in work meanwhile
	Twice, Lost   int64         // items
}

// RunSplits doubles the number of queues under load, by splits and by a barrier.
func RunSplits(ctx context.Context, servers []*stage.Server, o SplitOptions) (report.Part, error) {
	o.parts = 2 * o.Queues
	var results []*SplitResult
	for _, s := range servers {
		for round := range o.Rounds {
			for _, way := range []string{wayNone, waySplit, wayBarrier} {
				o.splittable = way == waySplit
				r := &SplitResult{Database: stage.Name(s.Kind), Way: way}
				stage.Progress("split: %s, round %d: %s", r.Database, round+1, way)
				if err := onRows(ctx, s, o, func(c *fleet) error { return c.playSplit(r, o.Window) }); err != nil {
					return report.Part{}, fmt.Errorf("%s on %s: %w", way, r.Database, err)
				}
				results = append(results, r)
			}
		}
	}
	return condenseSplits(results, o), nil
}

// onRows calls play with the workers of a new database with rows.
func onRows(ctx context.Context, s *stage.Server, o SplitOptions, play func(*fleet) error) error {
	db, err := s.Fresh(ctx)
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	if err := insertRows(ctx, db, o.Rows, o.parts); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &fleet{ctx: ctx, db: db, o: o.Options}
	defer c.dismiss()
	return play(c)
}

// playSplit lets the workers work, changes the number of queues, and waits until all rows are done.
func (c *fleet) playSplit(r *SplitResult, window time.Duration) error {
	if err := errors.Join(c.begin(), c.work(0)); err != nil {
		return err
	}
	calm := time.Now()
	time.Sleep(c.o.Calm)
	from := time.Now()
	to, err := c.change(r.Way, window)
	if err != nil {
		return err
	}
	left, err := c.db.Number(c.ctx, `SELECT COUNT(*) FROM item WHERE done = 0`)
	if err == nil && left == 0 {
		err = errors.New("all rows are done before the change is")
	}
	if err != nil {
		return err
	}
	if err := c.drainRows(); err != nil {
		return err
	}
	if err := c.finish(); err != nil {
		return err
	}
	r.Took, r.Pause = to.Sub(from), c.longestPause(from, to)
	r.Calm, r.During = rate(c.done, calm, from), rate(c.done, from, to)
	if r.Lost, err = c.db.Number(c.ctx, `SELECT COUNT(*) FROM item WHERE done = 0`); err != nil {
		return err
	}
	r.Twice, err = c.db.Number(c.ctx, `SELECT COUNT(*) FROM item WHERE done > 1`)
	return err
}

// change requests the change, and returns when an item of the last new queue has begun.
func (c *fleet) change(way string, window time.Duration) (end time.Time, err error) {
	operator := c.db.Roster().Operator("bench")
	switch way {
	case wayNone:
		time.Sleep(window)
		return time.Now(), nil
	case waySplit:
		err = operator.ResizeAll(c.ctx, taskType, c.o.parts, 0)
	case wayBarrier:
		err = operator.Repartition(c.ctx, taskType, c.o.parts, 0)
	}
	for deadline := time.Now().Add(patience); err == nil; time.Sleep(20 * time.Millisecond) {
		if end, ok := c.allChanged(); ok {
			return end, nil
		}
		if time.Now().After(deadline) {
			err = fmt.Errorf("not all queues have the new total within %s", patience)
		}
	}
	return end, err
}

// allChanged returns when the first item of the last queue of the new total began, if each has had one.
func (c *fleet) allChanged() (end time.Time, all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := map[int]time.Time{}
	for _, s := range c.done {
		if at, found := first[s.queue]; s.total == c.o.parts && (!found || s.begin.Before(at)) {
			first[s.queue] = s.begin
		}
	}
	for _, at := range first {
		if at.After(end) {
			end = at
		}
	}
	return end, len(first) == c.o.parts
}

// drainRows waits until the workers have done all rows, or have done none for a while.
func (c *fleet) drainRows() error {
	for left, since := int64(-1), time.Now(); ; time.Sleep(100 * time.Millisecond) {
		n, err := c.db.Number(c.ctx, `SELECT COUNT(*) FROM item WHERE done = 0`)
		if err != nil || n == 0 {
			return err
		}
		if n != left {
			left, since = n, time.Now()
		}
		if time.Since(since) > patience/2 {
			return nil // they are lost
		}
	}
}

// longestPause returns the longest time without an item of a part in work that overlaps the time of the change.
func (c *fleet) longestPause(from, to time.Time) (longest time.Duration) {
	slices.SortFunc(c.done, func(a, b span) int { return a.begin.Compare(b.begin) })
	last := map[int]time.Time{}
	for _, s := range c.done {
		end, found := last[s.queue]
		if found && end.Before(to) && s.begin.After(from) {
			longest = max(longest, s.begin.Sub(end))
		}
		if s.end.After(end) {
			last[s.queue] = s.end
		}
	}
	return longest
}

// kept is the rate during the change, in percent of the rate before.
func (r *SplitResult) kept() float64 { return 100 * r.During / r.Calm }

// condenseSplits returns the table and goals for the results.
func condenseSplits(results []*SplitResult, o SplitOptions) report.Part {
	part := report.Part{Name: "split", Data: results, About: fmt.Sprintf(`%d worker processes share %d queues of %d rows; an item is %s and an UPDATE of its row. After %s, each queue
is split in two, or a barrier makes twice as many queues; where nothing changes, the rate is that of the next %s. The change ends when an item of each new queue has begun. A pause is the time in which
no item is in work of those that will be one queue. Each figure is the median of %d rounds.`, o.Workers, o.Queues, o.Rows, o.Item, o.Calm, o.Window, o.Rounds)}
	t := report.Table{Title: "Twice as many queues", Columns: []string{
		"database", "way", "items/s before", "during", "kept", "lowest and highest kept", "longest pause", "until done", "done twice", "lost",
	}}
	for i := 0; i < len(results); {
		database := results[i].Database
		for _, way := range []string{wayNone, waySplit, wayBarrier} {
			var calm, during, kept, pause, took []float64
			var twice, lost int64
			for _, r := range results {
				if r.Database != database || r.Way != way {
					continue
				}
				i++
				calm, during, kept = append(calm, r.Calm), append(during, r.During), append(kept, r.kept())
				pause, took = append(pause, report.Millis(r.Pause)...), append(took, r.Took.Seconds())
				twice, lost = twice+r.Twice, lost+r.Lost
			}
			t.Add(database, way, fmt.Sprintf("%.0f", report.Median(calm)), fmt.Sprintf("%.0f", report.Median(during)),
				fmt.Sprintf("%.0f %%", report.Median(kept)), fmt.Sprintf("%.0f to %.0f %%", slices.Min(kept), slices.Max(kept)),
				report.MS(0, report.Median(pause)), fmt.Sprintf("%.1f s", report.Median(took)), twice, lost)
			if way == waySplit {
				part.Goals = append(part.Goals, report.AtLeast(database+": rate kept while each queue is split", "%.0f %%", 95, report.Median(kept)))
			}
			part.Goals = append(part.Goals, report.Exactly(database+", "+way+": items that were done twice or lost", "%.0f", 0, float64(twice+lost)))
		}
	}
	part.Tables = append(part.Tables, t)
	return part
}
