package sim

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/dutyrota/rota/ops/verbs"
)

// queueNames are the names that queues may have. Each item of a task with named queues is of one of them, whether there
// is such a queue or not. A change of all numbered queues stands under the name all in the lock row (N1).
var queueNames = []string{"all", "east", "north", "west"}

// named reports whether the queues of the task have names.
func (t *task) named() bool { return len(t.settings.QueueNames) > 0 }

// dividedBy is the column of an item by which the items are divided among the queues.
func (t *task) dividedBy() string {
	if t.offers.Ordered {
		return "order_key"
	}
	return "id"
}

// isOf reports whether an item belongs to a queue: a name, or an index and a total.
func (t *task) isOf(item int64, queue string) bool {
	if t.offers.Ordered {
		item %= 7
	}
	index, total, numbered := strings.Cut(queue, " ")
	if numbered {
		return item%number(total) == number(index)
	}
	return queueNames[item%int64(len(queueNames))] == queue
}

// nameSQL is an expression for the name of the queue to which an item belongs.
func (t *task) nameSQL() string {
	var cases strings.Builder
	for i, name := range queueNames {
		fmt.Fprintf(&cases, " WHEN %d THEN '%s'", i, name)
	}
	return fmt.Sprintf("CASE %s %% %d%s END", t.dividedBy(), len(queueNames), &cases)
}

// forgetCursors makes the items of a named queue count again when its row goes with its cursor: a queue of the name
// that is added later reads its source from the beginning. The cursors of a data database stay.
func (w *world) forgetCursors() error {
	for _, t := range w.tasks {
		if !t.named() || !t.offers.Cursored || t.inRuns() || t.settings.Database != "" {
			continue
		}
		_, err := w.oracle.center.DB().ExecContext(w.t.Context(), fmt.Sprintf(`CREATE TRIGGER sim_anew_%[1]s
			AFTER DELETE ON schedule_queue WHEN OLD.task_type = '%[1]s' BEGIN
				UPDATE sim_item SET effects = 0, turn = NULL WHERE task = '%[1]s' AND %[2]s = OLD.queue_id;
			END`, t.name, t.nameSQL()))
		if err != nil {
			return err
		}
	}
	return nil
}

// want notes what an operator has done to the named queues of a task, or has tried to do.
func (w *world) want(tried verbs.Operation, failed error) error {
	switch o := tried.(type) {
	case verbs.AddQueue:
		if failed == nil {
			w.wanted[o.TaskType+" "+o.Queue] = true
		}
	case verbs.RemoveQueue:
		if failed == nil {
			w.wanted[o.TaskType+" "+o.Queue] = false
		}
	case verbs.SetTask:
		if o.Settings["queues"] != "" { // it may have done a part
			return w.wantWhatIsOf(w.taskNamed(o.TaskType))
		}
	}
	return nil
}

// wantWhatIs notes which named queues each task has in the roster, less those that are to be removed. A task without
// any gets those of its settings.
func (w *world) wantWhatIs() error {
	for _, t := range w.tasks {
		if err := w.wantWhatIsOf(t); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) wantWhatIsOf(t *task) error {
	if !t.named() {
		return nil
	}
	there, err := w.queuesOf(t)
	if err != nil {
		return err
	}
	if len(there) == 0 {
		there = t.settings.QueueNames
	}
	for _, name := range queueNames {
		w.wanted[t.name+" "+name] = slices.Contains(there, name)
	}
	return eachRow(w.t.Context(), w.oracle.center.DB(), `SELECT key, value
		FROM schedule_task_running, json_each(queue_changes) WHERE task_type = ?`,
		func(queue, _ string) { w.wanted[t.name+" "+queue] = false }, t.name)
}

// queuesOf returns the queues of a task.
func (w *world) queuesOf(t *task) (ids []string, err error) {
	err = eachRow(w.t.Context(), w.oracle.center.DB(), `SELECT queue_id, '' FROM schedule_queue WHERE task_type = ?
		ORDER BY queue_id`, func(id, _ string) { ids = append(ids, id) }, t.name)
	return ids, err
}

// unwanted says which changes of queues wait, and where the named queues are others than operators want.
func (o *oracle) unwanted() (list []string, err error) {
	err = o.each(o.w.oracle.center.DB(), `SELECT task_type, queue_changes FROM schedule_task_running
		WHERE queue_changes IS NOT NULL`, func(task, changes string) {
		list = append(list, fmt.Sprintf("waits: the change %s of the queues of %s", changes, task))
	})
	if err != nil {
		return nil, err
	}
	for _, t := range o.w.tasks {
		if !t.named() {
			continue
		}
		there, err := o.w.queuesOf(t)
		if err != nil {
			return nil, err
		}
		for _, name := range queueNames {
			if wanted := o.w.wanted[t.name+" "+name]; wanted != slices.Contains(there, name) {
				list = append(list, fmt.Sprintf("wanted: %s has the queues %s, and an operator wants %s: %t",
					t.name, there, name, wanted))
			}
		}
	}
	return list, nil
}

// missing returns the named queues that a task does not have, once nothing waits.
func (o *oracle) missing(t *task) (names []string, err error) {
	if !t.named() {
		return nil, nil
	}
	there, err := o.w.queuesOf(t)
	if len(there) == 0 { // no process has defined the task
		return nil, err
	}
	is := func(name string) bool { return slices.Contains(there, name) }
	return slices.DeleteFunc(slices.Clone(queueNames), is), err
}

// sampleFree checks that a queue stays without an owner from when its owner has given it up until its change is made or
// withdrawn, which raises partition_version (N1).
func (o *oracle) sampleFree() error {
	free := map[string]string{}
	err := o.each(o.w.oracle.center.DB(), `SELECT task_type || ' ' || queue_id || ' of ' || own_sign,
			partition_version || ' ' || COALESCE(cur_server, '')
		FROM schedule_task_running JOIN schedule_queue q USING (task_type, own_sign) JOIN json_each(queue_changes) c
		ON c.key = 'all' AND c.type = 'integer' OR c.key = queue_id AND (c.value = 'remove' OR c.value < q.queue_total)`,
		func(queue, text string) {
			version, owner, _ := strings.Cut(text, " ")
			if owner == "" {
				free[queue] = version
			} else if o.free[queue] == version {
				o.w.breaks("free: queue %s waits for its change, had no owner, and now has %s", queue, owner)
			}
		})
	o.free = free
	return err
}

// sampleQueues checks that all queues of a task are of one division, and that numbered ones have each item once: their
// parts of the items are disjoint, and together they are all.
func (o *oracle) sampleQueues() error {
	tasks := map[string][]part{}
	err := o.each(o.w.oracle.center.DB(), `SELECT task_type || ' of ' || own_sign,
		division || ' ' || queue_index || ' ' || COALESCE(queue_total, 0)
		FROM schedule_queue`, func(task, text string) {
		words := strings.Fields(text)
		tasks[task] = append(tasks[task], part{words[0], number(words[1]), number(words[2])})
	})
	for task, parts := range tasks {
		if why := wrong(parts); why != "" {
			o.w.breaks("divided: the queues of %s are %v: %s", task, parts, why)
		}
	}
	return err
}

// part is what a queue has of the items. A named queue has the total 0.
type part struct {
	division     string
	index, total int64
}

// wrong says what is wrong with the division of the items among queues.
func wrong(parts []part) string {
	all := new(big.Rat)
	for i, p := range parts {
		if p.division != parts[0].division {
			return "they are of two divisions"
		}
		if p.total == 0 {
			continue
		}
		all.Add(all, big.NewRat(1, p.total))
		for _, other := range parts[:i] {
			if (p.index-other.index)%divisor(p.total, other.total) == 0 {
				return "two of them share items"
			}
		}
	}
	if parts[0].total > 0 && all.Cmp(big.NewRat(1, 1)) != 0 {
		return "they do not have all items"
	}
	return ""
}

func divisor(a, b int64) int64 {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}
