package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// work adds items, which are executed at once.
func (e *exertion) work() error {
	if !e.always() {
		return nil
	}
	n := 20 + e.rng.IntN(20)
	return e.executed(n, [...]string{fateFine, fateOnce}[e.rng.IntN(2)], 10*time.Second)
}

// flood adds items for many pages of each queue, for one executor in each process, or for a few that wait for a rate.
// While a queue has some left, its turn comes again and again, whatever the others have.
func (e *exertion) flood() error {
	if !e.always() || e.w.h.has("queue_set") { // a weight may let a turn last for long
		return nil
	}
	n, rate, threads, limit := 100+e.rng.IntN(200), 0, 1, 20*time.Second
	if e.rng.IntN(3) > 0 {
		rate, threads = 10+e.rng.IntN(20), 4
		limit += time.Duration(n/rate+1) * 2 * time.Second
	}
	done, err := e.operate("task_set", fmt.Sprint("thread_number=", threads), fmt.Sprint("rate_per_second=", rate))
	if err != nil || !done {
		return err
	}
	if err := e.executed(n, fateFine, limit); err != nil || len(e.w.broken) > 0 {
		return err
	}
	_, err = e.operate("task_set", "rate_per_second=0", fmt.Sprint("thread_number=", max(1, e.task.settings.ThreadNumber)))
	return err
}

// longest is how long an item takes at most if it has a page and a batch of its own.
func (e *exertion) longest() time.Duration {
	return e.task.takes*11/10 + e.task.settings.SleepTimeInterval + 250*time.Millisecond
}

// executed adds items and gives the last one the fate. It checks that a call begins at once, and that the processes do
// all items within the time that one executor needs for them, and a bit more. No queue with items waits for its turn
// while the processes execute those of others.
func (e *exertion) executed(n int, fate string, more time.Duration) error {
	missing, err := e.missing(e.task)
	if err != nil || len(missing) > 0 { // some of the items have no queue
		return err
	}
	before := e.w.callsOf(e.task)
	if err := e.w.addItems([]string{e.task.name, strconv.Itoa(n), fate}); err != nil {
		return err
	}
	err = e.soon("begun", 4*time.Second, func() (string, error) {
		if e.w.callsOf(e.task) > before {
			return "", nil
		}
		return "no call has begun", nil
	})
	if err != nil || len(e.w.broken) > 0 {
		return err
	}
	began := time.Now()
	all, err := e.undone(e.task) // another exercise may have left some
	if err != nil {
		return err
	}
	return e.soon("done", time.Duration(max(n, len(all)))*e.longest()+more, func() (string, error) {
		undone, err := e.undone(e.task)
		if err != nil || len(undone) == 0 {
			return "", err
		}
		return fmt.Sprintf("items %v are left", undone), e.turns(undone, began)
	})
}

// turns checks that no queue with items waits for its turn: each of the others has one in between, or two.
func (e *exertion) turns(undone []string, began time.Time) error {
	queues := map[string]string{} // their parts of the items
	err := e.each(e.w.oracle.center.DB(), `SELECT queue_id, COALESCE(queue_index || ' ' || queue_total, queue_id)
		FROM schedule_queue WHERE task_type = ?`, func(id, part string) { queues[id] = part }, e.task.name)
	if err != nil {
		return err
	}
	limit := 5*time.Second + time.Duration(2*len(queues))*(e.longest()+time.Second)
	for id, part := range queues {
		left := slices.DeleteFunc(slices.Clone(undone), func(item string) bool { return !e.task.isOf(number(item), part) })
		turn := e.w.lastTurn(e.task, id)
		if turn.Before(began) {
			turn = began
		}
		if waits := time.Since(turn); len(left) > 0 && waits > limit {
			e.w.breaks("turn: queue %s of %s has the items %s, and waits for its turn for %s: longer than %s", id, e.task.name,
				strings.Join(left, ", "), waits, limit)
			return nil
		}
	}
	return nil
}

// lastTurn returns when the last call for a queue began.
func (w *world) lastTurn(t *task, queue string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.turns[t.name+" "+queue]
}
