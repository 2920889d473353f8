package centertest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
	"github.com/dutyrota/rota/runs"
)

// splittable is a task type whose queues can be split and merged.
var splittable = center.Settings{Queues: 2, Splittable: true}

// resize requests another total for a queue.
func (r queueSteps) resize(queue string, total int) {
	r.Helper()
	r.must(r.tryResize(queue, total))
}

// tryResize requests another total for a queue. It checks that who asks before gets the same answer.
func (r queueSteps) tryResize(queue string, total int) error {
	r.Helper()
	asked := r.c.Roster().MayResize(r.Context(), r.task, queue, total)
	err := r.c.Roster().Operator("test").Resize(r.Context(), r.task, queue, total)
	if fmt.Sprint(asked) != fmt.Sprint(err) {
		r.Errorf("the total %d for queue %s: error %v, and %v before", total, queue, err, asked)
	}
	return err
}

// finishChange ends the drain of a queue that its owner has, under the current epoch.
func (r queueSteps) finishChange(name, queue string) bool {
	r.Helper()
	return r.finishRemovalUnder(name, queue, r.epoch(queue))
}

// wantTotals checks the queues with their totals and owners: "0/4 A".
func (r queueSteps) wantTotals(want ...string) {
	r.Helper()
	got := r.readColumn(`SELECT CONCAT(queue_id, '/', COALESCE(queue_total, 0)) FROM schedule_queue
		WHERE task_type = '%s' AND own_sign = '%s' ORDER BY queue_index`, r.task, r.c.OwnSign())
	for i, owner := range r.owners() {
		got[i] += " " + owner
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.Fatalf("queues, totals and owners (-want +got):\n%s", diff)
	}
}

// changing returns the queues that a server drains to change them.
func (r queueSteps) changing(name string) (ids []string) {
	r.Helper()
	v, err := r.c.Roster().Server(r.task, r.uuid(name)).View(r.Context())
	r.must(err)
	for _, q := range v.Queues {
		if q.Changing {
			ids = append(ids, q.ID)
		}
	}
	return ids
}

func testSplit(t *testing.T, c *center.Center) {
	t.Run("N3 at most a thousand queues wait to be split, and these fit", func(t *testing.T) {
		operator := c.Roster().Operator("test")
		r := newFixture(t, c, center.Settings{Queues: roster.MaxResizing + 1, Splittable: true})
		r.join("A")
		const doubled = 2 * (roster.MaxResizing + 1)
		asked := c.Roster().Ask(t.Context(), r.task, func(ctx context.Context, l *roster.LockTx) error {
			return l.MayResizeAll(ctx, doubled, 0)
		})
		err := operator.ResizeAll(t.Context(), r.task, doubled, 0)
		if fmt.Sprint(asked) != strings.TrimPrefix(fmt.Sprint(err), "split or merge the queues of ") {
			t.Errorf("error %v, and %v before", err, asked)
		}
		if err == nil || !strings.Contains(err.Error(), "at most 1000 queues may wait to be split or merged, not 1001") {
			t.Errorf("error %v, want the bound", err)
		}
		most := r.sibling("most")
		most.define(center.Settings{Queues: roster.MaxResizing, Splittable: true})
		most.join("A")
		most.must(operator.ResizeAll(t.Context(), most.task, 100*roster.MaxResizing, 0))
		if n := len(most.changes()); n < 12*roster.MaxResizing {
			t.Errorf("the requests have %d bytes, want those of %d queues", n, roster.MaxResizing)
		}
	})
	t.Run("N3 a queue is split by the owner that has drained it", func(t *testing.T) {
		r := newFixture(t, c, splittable)
		r.join("A", "B")
		r.release("A", r.handover("1", "B"))
		r.wantTotals("0/2 A", "1/2 B")
		r.must(c.Roster().Operator("test").PinQueue(t.Context(), r.task, "1", "host=web1|host2|localhost"))
		r.exec(`UPDATE schedule_queue SET cursor_value = 'c', queue_parameter = 'p', crash_count = 1
			WHERE task_type = '%s' AND queue_id = '1'`, r.task)
		before, _ := r.heartbeat("B")
		old := r.epoch("1")
		r.resize("1", 4)
		if after, _ := r.heartbeat("B"); after.PartitionVersion == before.PartitionVersion {
			t.Fatal("the heartbeat reply does not tell the owner to read its queues again")
		}
		if r.wantTotals("0/2 A", "1/2 B"); r.finishChange("A", "1") || r.finishRemovalUnder("B", "1", old-1) {
			t.Fatal("the queue was split by another server, or under an old epoch")
		}
		if ids := r.changing("B"); len(ids) != 1 || ids[0] != "1" {
			t.Fatalf("the owner drains %v, want queue 1", ids)
		}
		if !r.finishRemovalUnder("B", "1", old) || r.finishRemovalUnder("B", "1", old) {
			t.Fatal("the queue was not split exactly once")
		}
		if got := r.changes(); got != "" || r.epoch("1") != old+1 {
			t.Fatalf("after the split the requests are %q and the epoch is %d, want none and %d", got, r.epoch("1"), old+1)
		}
		inherited := r.readColumn(`SELECT CONCAT(q.cursor_value, q.queue_parameter, q.crash_count, p.labels) FROM schedule_queue q
			JOIN schedule_queue_setting p USING (task_type, own_sign, queue_id) WHERE q.task_type = '%s' ORDER BY queue_id`, r.task)
		if len(inherited) != 2 || inherited[0] != inherited[1] {
			t.Fatalf("cursor, parameter, crashes and pin of the two: %v, want the same for both", inherited)
		}
		if r.epoch("3") <= old {
			t.Fatalf("queue 3 has epoch %d, want one above that of the queue it was split from, %d", r.epoch("3"), old)
		}
		if all := r.readColumn("SELECT DISTINCT division FROM schedule_queue WHERE task_type = '%s'", r.task); len(all) != 1 || all[0] == "" {
			t.Fatalf("after the split the queues are of the divisions %q, want one", all)
		}
		if diff := cmp.Diff([]string{"RESIZING", "RESIZED"}, r.eventKinds("1")[len(r.eventKinds("1"))-2:]); diff != "" {
			t.Fatalf("last events of queue 1 (-want +got):\n%s", diff)
		}
		reasons := r.readColumn(`SELECT reason FROM schedule_event WHERE task_type = '%s' AND kind IN ('RESIZING', 'RESIZED') ORDER BY event_id`, r.task)
		if diff := cmp.Diff([]string{"the total 4 was requested instead of 2", "queue 1 of 2 became the queues 1, 3 of 4"}, reasons); diff != "" {
			t.Fatalf("reasons of the events (-want +got):\n%s", diff)
		}
	})
	t.Run("N3 both parts have an owner at once", func(t *testing.T) {
		r := newFixture(t, c, splittable)
		r.join("A", "B")
		r.release("A", r.handover("1", "B"))
		r.resize("1", 6)
		r.finishChange("B", "1")
		owners := r.owners() // of 0, 1, 3 and 5
		if owners[1] != "B" || strings.Contains(strings.Join(owners, ""), "-") || strings.Count(strings.Join(owners, ""), "A") != 2 {
			t.Fatalf("owners %v, want B for queue 1, and two queues for each server", owners)
		}
	})
	t.Run("N3 P16 the parts share the load and the backlog, and so does what they merge to", func(t *testing.T) {
		r := newFixture(t, c, splittable)
		r.join("A")
		load := 3.0
		r.must(ops.New(c).Queues().SaveBacklogs(t.Context(), r.task, []ops.QueueBacklog{
			{QueueID: "1", Epoch: r.epoch("1"), Items: 90, Trend: ops.BacklogGrowing, Demand: &load},
		}))
		backlogs := func() []string {
			return r.readColumn(`SELECT CONCAT(queue_id, ': ', items, ', ', demand) FROM schedule_backlog
				WHERE task_type = '%s' ORDER BY queue_id`, r.task)
		}
		whole := backlogs()
		r.resize("1", 6)
		r.finishChange("A", "1")
		parts := backlogs()
		if len(parts) != 3 || !strings.HasPrefix(parts[2], "5: 30, 1") {
			t.Fatalf("backlogs of the parts: %v, want a third of %v for each", parts, whole)
		}
		r.resize("1", 2)
		for range 3 {
			for _, q := range r.changing("A") {
				r.finishChange("A", q)
			}
		}
		if diff := cmp.Diff(whole, backlogs()); diff != "" {
			t.Fatalf("the backlog after the merge (-before +after):\n%s", diff)
		}
		r.must(ops.New(c).Queues().SaveBacklogs(t.Context(), r.task, []ops.QueueBacklog{ // counted before the merge
			{QueueID: "5", Epoch: r.epoch("1") - 1, Items: 30},
		}))
		r.resize("1", 6)
		r.finishChange("A", "1")
		if diff := cmp.Diff(parts, backlogs()); diff != "" {
			t.Fatalf("backlogs of the parts beside a late count (-want +got):\n%s", diff)
		}
	})
	t.Run("N3 F1 a batch of the whole queue is fenced after the split", func(t *testing.T) {
		r := newFixture(t, c, splittable)
		r.join("A")
		batch := r.batch("A", "1")
		r.resize("1", 4)
		r.finishChange("A", "1")
		tx, err := c.DB().BeginTx(t.Context(), nil)
		r.must(err)
		defer tx.Rollback()
		if err := center.Fence(batch, tx); err == nil {
			t.Fatal("a batch that was selected before the split passes the fence")
		}
	})
	t.Run("N3 a server drains one queue at a time", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 4, Splittable: true})
		r.join("A")
		r.must(c.Roster().Operator("test").ResizeAll(t.Context(), r.task, 8, 0))
		for _, next := range []string{"0", "1", "2", "3"} {
			if ids := r.changing("A"); len(ids) != 1 || ids[0] != next {
				t.Fatalf("the server drains %v, want queue %s", ids, next)
			}
			r.finishChange("A", next)
		}
		r.wantTotals("0/8 A", "1/8 A", "2/8 A", "3/8 A", "4/8 A", "5/8 A", "6/8 A", "7/8 A")
	})
	t.Run("N3 a queue without an owner is split at once", func(t *testing.T) {
		r := newFixture(t, c, splittable)
		r.resize("0", 4)
		r.wantTotals("0/4 -", "1/2 -", "2/4 -")
	})
	t.Run("N3 L5 a split does not wait for a transaction of the owner", func(t *testing.T) {
		if !needsRowLocks(t, c) {
			return
		}
		r := newFixture(t, c, splittable)
		r.join("A")
		tx := r.fence("A", "1")
		r.resize("1", 4)
		if r.finishChange("A", "1") {
			t.Fatal("the queue was split although a fenced transaction holds it")
		}
		r.must(tx.Rollback())
		if !r.finishChange("A", "1") {
			t.Fatal("the queue was not split after the transaction")
		}
	})
	t.Run("N3 L5 a split that skips a row is retried once per interval", func(t *testing.T) {
		if !needsRowLocks(t, c) {
			return
		}
		r := newFixture(t, c, center.Settings{Queues: 2, Splittable: true, MaxQueuesPerServer: 1})
		r.join("A")
		r.wantTotals("0/2 A", "1/2 -")
		tx, err := c.DB().BeginTx(t.Context(), nil)
		r.must(err)
		defer tx.Rollback()
		_, err = tx.ExecContext(t.Context(), "UPDATE schedule_queue SET gmt_modified = gmt_modified WHERE task_type = '"+r.task+"' AND queue_id = '1'")
		r.must(err)
		r.resize("1", 4)
		locks, elapsed := r.beatAndPlan(20, "A")
		if most := 2 + int64(elapsed/time.Second); locks > most {
			t.Fatalf("the lock row was taken %d times in %s, want at most %d", locks, elapsed, most)
		}
		r.must(tx.Rollback())
		r.backdatePlan("'2020-01-01 00:00:00.000000'")
		r.beatAndPlan(1, "A")
		r.wantTotals("0/2 A", "1/4 -", "3/4 -")
	})
	t.Run("N3 the events say first what was withdrawn", func(t *testing.T) {
		const queues = 20
		r := newFixture(t, c, center.Settings{Queues: queues, Splittable: true})
		r.join("A")
		for _, total := range []int{2 * queues, 4 * queues} {
			r.must(c.Roster().Operator("test").ResizeAll(t.Context(), r.task, total, 0))
		}
		reasons := r.readColumn(`SELECT reason FROM schedule_event WHERE task_type = '%s' AND kind = 'RESIZING'
			ORDER BY queue_id, event_id`, r.task)
		want := slices.Repeat([]string{
			"the total 40 was requested instead of 20", "the request for the total 40 was withdrawn",
			"the total 80 was requested instead of 20",
		}, queues)
		if diff := cmp.Diff(want, reasons); diff != "" {
			t.Fatalf("reasons of the events (-want +got):\n%s", diff)
		}
	})
	t.Run("N3 a request is withdrawn with the present total", func(t *testing.T) {
		r := newFixture(t, c, splittable)
		r.join("A")
		old := r.epoch("1")
		r.resize("1", 4)
		r.resize("1", 2)
		if ids := r.changing("A"); len(ids) > 0 || r.finishRemovalUnder("A", "1", old) {
			t.Fatalf("after the withdrawal the owner drains %v, want none, and splits none", ids)
		}
		r.wantTotals("0/2 A", "1/2 A")
	})
}

func testMerge(t *testing.T, c *center.Center) {
	// split4 has queues 0 and 2 of 4 with A, and 1 and 3 of 4 with B.
	split4 := func(t *testing.T) *fixture {
		r := newFixture(t, c, center.Settings{Queues: 4, Splittable: true})
		r.join("A", "B")
		for _, q := range []string{"1", "3"} {
			if r.owners()[int(q[0]-'0')] != "B" {
				r.release("A", r.handover(q, "B"))
			}
		}
		return r
	}
	t.Run("N3 H6 queues merge when all of their owners have drained them", func(t *testing.T) {
		r := split4(t)
		r.wantTotals("0/4 A", "1/4 B", "2/4 A", "3/4 B")
		r.resize("3", 2)
		old := max(r.epoch("1"), r.epoch("3"))
		if !r.finishChange("B", "3") {
			t.Fatal("the owner did not give up queue 3")
		}
		r.rebalance("A")
		r.wantTotals("0/4 A", "1/4 B", "2/4 A", "3/4 -")
		if !r.finishChange("B", "1") {
			t.Fatal("the owner did not give up queue 1")
		}
		owners := r.owners()
		r.wantTotals("0/4 A", "1/2 "+owners[1], "2/4 A")
		if owners[1] == "-" || r.epoch("1") <= old+1 {
			t.Fatalf("queue 1 has owner %s and epoch %d, want one, above %d", owners[1], r.epoch("1"), old+1)
		}
		r.resize("1", 4)
		r.finishChange(owners[1], "1")
		if r.epoch("3") <= old+1 {
			t.Fatalf("queue 3 came back with epoch %d, want one above %d", r.epoch("3"), old+1)
		}
	})
	t.Run("N3 H6 the epoch of a merged queue is above all others", func(t *testing.T) {
		r := split4(t)
		r.exec("UPDATE schedule_queue SET epoch = 500 WHERE task_type = '%s' AND queue_id = '0'", r.task)
		r.exec("UPDATE schedule_queue SET epoch = 300 WHERE task_type = '%s' AND queue_id = '3'", r.task)
		r.resize("1", 2)
		r.finishChange("B", "1")
		r.finishChange("B", "3")
		if epoch := r.epoch("1"); epoch <= 500 {
			t.Fatalf("the merged queue has epoch %d, want one above 500", epoch)
		}
	})
	t.Run("N3 H7 an owner learns who has a queue that it has changed", func(t *testing.T) {
		r := split4(t)
		r.resize("0", 8)
		r.resize("1", 2)
		for _, q := range []struct{ owner, id, given string }{{"A", "0", r.uuid("A")}, {"B", "1", ""}} {
			epoch := r.epoch(q.id)
			given, err := c.Roster().Server(r.task, r.uuid(q.owner)).GiveUp(t.Context(), roster.QueueEpoch{ID: q.id, Epoch: epoch})
			r.must(err)
			want := []roster.Handover{{QueueID: q.id, Epoch: epoch, Requester: q.given}}
			if diff := cmp.Diff(want, given); diff != "" {
				t.Fatalf("queues given up (-want +got):\n%s", diff)
			}
		}
	})
	t.Run("N3 a queue of a dead owner merges when it expires", func(t *testing.T) {
		r := split4(t)
		r.resize("1", 2)
		r.finishChange("B", "1")
		r.makeSilent("B")
		r.rebalanceExpiring("A")
		r.finishChange("A", "3")
		r.wantTotals("0/4 A", "1/2 A", "2/4 A")
	})
	t.Run("N3 a queue that was to merge is worked again after a withdrawal", func(t *testing.T) {
		r := split4(t)
		r.resize("1", 2)
		r.finishChange("B", "1")
		r.resize("3", 4)
		if got := r.changes(); got != "" {
			t.Fatalf("after the withdrawal the requests are %q, want none", got)
		}
		r.rebalance("A")
		if owner := r.owners()[1]; owner == "-" {
			t.Fatal("queue 1 has no owner after the withdrawal")
		}
	})
	t.Run("N1 N3 a barrier that is withdrawn leaves no queue idle that was to merge", func(t *testing.T) {
		r := split4(t)
		r.resize("1", 2)
		r.finishChange("B", "1")
		r.rebalance("A")
		for _, total := range []int{3, 4} {
			r.repartition(total)
		}
		r.rebalance("A")
		if owner := r.owners()[1]; owner == "-" {
			t.Fatal("queue 1 has no owner after the withdrawal")
		}
	})
	t.Run("N3 queues with different cursors do not merge", func(t *testing.T) {
		r := split4(t)
		r.resize("1", 2)
		r.exec("UPDATE schedule_queue SET cursor_value = 'x' WHERE task_type = '%s' AND queue_id = '3'", r.task)
		r.finishChange("B", "1")
		r.finishChange("B", "3")
		r.wantTotals(append([]string{"0/4 A"}, "1/4 "+r.owners()[1], "2/4 A", "3/4 "+r.owners()[3])...)
		if got := r.changes(); got != "" || strings.Contains(strings.Join(r.owners(), ""), "-") && !planDue(r) {
			t.Fatalf("after the withdrawal the requests are %q and the owners %v, want none, and a plan due", got, r.owners())
		}
		wantErrors(t, map[string]error{
			"queues 1 and 3 cannot merge while their cursor_value differs": r.tryResize("1", 2),
		})
	})
	t.Run("N3 a request is withdrawn if the task type is not splittable any more", func(t *testing.T) {
		r := newFixture(t, c, splittable)
		r.join("A")
		r.resize("1", 4)
		r.exec("UPDATE schedule_task_type SET splittable = FALSE WHERE task_type = '%s'", r.task)
		r.finishChange("A", "1")
		r.rebalance("A")
		r.wantTotals("0/2 A", "1/2 A")
		if got := r.changes(); got != "" {
			t.Fatalf("after the withdrawal the requests are %q, want none", got)
		}
	})
	t.Run("N3 parts of parts merge together", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1, Splittable: true})
		r.join("A")
		for _, split := range []struct {
			queue string
			total int
		}{{"0", 2}, {"1", 6}, {"0", 4}} {
			r.resize(split.queue, split.total)
			r.finishChange("A", split.queue)
			r.rebalance("A")
		}
		r.wantTotals("0/4 A", "1/6 A", "2/4 A", "3/6 A", "5/6 A")
		r.must(c.Roster().Operator("test").ResizeAll(t.Context(), r.task, 1, 0))
		for range 5 {
			for _, id := range r.changing("A") {
				r.finishChange("A", id)
			}
		}
		r.wantTotals("0/1 A")
	})
}

// planDue reports whether the next heartbeat reply says that a plan is due.
func planDue(r *fixture) bool {
	p, _ := r.heartbeat("A")
	return p.PlanDue
}

func testResizeRequests(t *testing.T, c *center.Center) {
	t.Run("N3 refusals name the rule", func(t *testing.T) {
		r := newFixture(t, c, splittable)
		fixed, names, data := r.sibling("fixed"), r.sibling("names"), r.sibling("data")
		fixed.define(center.Settings{Queues: 2})
		names.define(center.Settings{QueueNames: []string{"x"}, Splittable: true})
		data.define(splittable)
		data.exec("UPDATE schedule_task_type SET data_database = 'd{{queue}}' WHERE task_type = '%s'", data.task)
		resize := func(r *fixture, queue string, total int) error { return r.tryResize(queue, total) }
		wantErrors(t, map[string]error{
			"splittable is not set":                                resize(fixed, "0", 4),
			"the queues have names":                                resize(names, "x", 4),
			"its items are in several data databases":              resize(data, "0", 4),
			"there is no queue of that name":                       resize(r, "2", 4),
			"must become a multiple or a divisor of itself":        resize(r, "1", 3),
			"at most 1000000000: 0 is not":                         resize(r, "1", 0),
			"there would be 1000000 queues; the maximum is 100000": resize(r, "1", 1_999_998),
		})
		r.join("A")
		r.repartition(4)
		wantErrors(t, map[string]error{"another number of queues is requested (4)": resize(r, "1", 4)})
	})
	t.Run("N1 N3 a barrier ends the requests, and gives all queues one total", func(t *testing.T) {
		r := newFixture(t, c, splittable)
		r.join("A")
		r.resize("1", 4)
		r.finishChange("A", "1")
		r.resize("0", 4)
		r.repartition(3)
		r.wantChanges(`{"all":3}`)
		r.drainAll("A")
		r.wantTotals("0/3 A", "1/3 A", "2/3 A")
	})
	t.Run("N1 N3 a requested barrier is withdrawn or replaced, and no split waits for it", func(t *testing.T) {
		r := newFixture(t, c, splittable)
		r.join("A")
		for _, queues := range []int{3, 2, 3, 4} {
			diff, err := ops.New(c).Tasks().Compare(t.Context(), r.task, center.Settings{Queues: queues, Splittable: true})
			r.must(err)
			r.must(ops.New(c).Tasks().Apply(t.Context(), diff, "test"))
			want := fmt.Sprintf(`{"all":%d}`, queues)
			if queues == 2 {
				want = ""
			}
			r.wantChanges(want)
		}
	})
	t.Run("N1 N3 a requested barrier is withdrawn although a queue was split", func(t *testing.T) {
		r := newFixture(t, c, splittable)
		r.join("A")
		r.resize("1", 4)
		r.finishChange("A", "1")
		r.repartition(5)
		findings, err := doctor.Diagnose(t.Context(), ops.New(c), r.task)
		if r.must(err); !strings.Contains(fmt.Sprint(findings), "to withdraw: rota task set "+r.task+" queues=2") {
			t.Errorf("the findings %+v advise nothing that withdraws the request", findings)
		}
		r.repartition(2)
		r.wantChanges("")
		r.wantTotals("0/2 A", "1/4 A", "3/4 A")
	})
	t.Run("N1 N3 the present number withdraws merges although a queue was split", func(t *testing.T) {
		r := newFixture(t, c, splittable)
		r.join("A")
		r.resize("1", 4)
		r.finishChange("A", "1")
		r.must(c.Roster().Operator("test").ResizeAll(t.Context(), r.task, 1, 0))
		r.repartition(2)
		r.wantChanges("")
		r.wantTotals("0/2 A", "1/4 A", "3/4 A")
	})
	t.Run("N3 another number of queues splits or merges each", func(t *testing.T) {
		r := newFixture(t, c, splittable)
		r.join("A")
		apply := func(queues int) ops.SettingsDiff {
			t.Helper()
			d, err := ops.New(c).Tasks().CompareGiven(t.Context(), r.task, center.Settings{Queues: queues}, []string{"queues"})
			r.must(err)
			r.must(ops.New(c).Tasks().Apply(t.Context(), d, "test"))
			return d
		}
		if d := apply(4); !d.Resizes || d.Total != 2 {
			t.Fatalf("the change to 4 queues is %+v, want splits of 2", d)
		}
		if d := apply(4); !d.Same() || d.Waiting != 4 {
			t.Fatalf("the second change to 4 queues is %+v, want nothing to do", d)
		}
		r.finishChange("A", "0")
		if d := apply(2); d.Same() {
			t.Fatal("the withdrawal has nothing to do, want a merge of what was split")
		}
		r.finishChange("A", "0")
		r.finishChange("A", "2")
		r.wantTotals("0/2 A", "1/2 A")
		r.resize("1", 4)
		r.finishChange("A", "1")
		if d := apply(2); !d.Same() {
			t.Fatalf("with one of 2 queues split, the change to 2 queues is %+v, want nothing to do", d)
		}
		if d := apply(3); d.Resizes {
			t.Fatalf("the change to 3 queues is %+v, want a barrier", d)
		}
	})
	t.Run("S13 N3 requests that were edited by hand do not count", func(t *testing.T) {
		for i, edited := range []string{
			`{}`, `{"1":"4"}`, `{"1":3}`, `{"1":2}`, `{"9":4}`, `{"1":-4}`, `{"0":1}`,
			`{"0":"remove"}`, `{"9":"remove"}`, `{"1":0}`, `{"all":0}`, `{"all":"remove"}`, `{"all":4,"1":"4"}`,
		} {
			r := newFixture(t, c, splittable).sibling(fmt.Sprint(i))
			r.define(splittable)
			r.join("A")
			r.exec(`UPDATE schedule_task_running SET queue_changes = '%s' WHERE task_type = '%s'`, edited, r.task)
			r.heartbeat("A")
			for _, q := range []string{"0", "1"} {
				r.finishChange("A", q)
			}
			r.rebalanceAlways("A")
			r.rebalanceAlways("A")
			r.wantTotals("0/2 A", "1/2 A")
		}
	})
}

func testResizeInRun(t *testing.T, c *center.Center) {
	r := newRunFixture(t, c, 2)
	r.exec("UPDATE schedule_task_type SET splittable = TRUE WHERE task_type = '%s'", r.task)
	id := r.submitAndOpen("k")
	r.finishAll("A", "1")
	wantErrors(t, map[string]error{
		"run " + id + " has not finished queue 0": r.tryResize("0", 4),
	})
	r.resize("1", 4)
	r.finishChange("A", "1")
	r.wantQueueStates(id, "0 PENDING", "1 DONE")
	if s := r.claimOne("A", "0"); s.QueueTotal != 2 {
		t.Fatalf("claimed %+v, want a sweep of the total 2", s)
	}
	r.finishAll("A", "0")
	r.wantState(id, runs.Success)
	r.resize("0", 4)
	next := r.submit("next")
	if r.tick(); r.run(next).State != runs.Ready {
		t.Fatalf("while a queue is to be split, a run is %s, want READY", r.run(next).State)
	}
	r.finishChange("A", "0")
	r.rebalance("A")
	r.tick()
	r.wantQueueStates(next, "0 PENDING", "1 PENDING", "2 PENDING", "3 PENDING")
	if s := r.claimOne("A", "3"); s.QueueTotal != 4 {
		t.Fatalf("claimed %+v, want a sweep of the total 4", s)
	}
	r.finishAll("A", "0", "1", "2")
	rerun := func(want ...string) {
		t.Helper()
		r.wantState(next, runs.Failed)
		r.must(c.Engine().Runs.Rerun(t.Context(), next, "test"))
		r.tick()
		r.wantQueueStates(next, want...)
	}
	r.failAll("A", "test", "3")
	rerun("0 DONE", "1 DONE", "2 DONE", "3 PENDING")
	r.failAll("A", "test", "3")
	r.resize("3", 8)
	r.finishChange("A", "3")
	rerun("0 PENDING", "1 PENDING", "2 PENDING", "3 PENDING", "7 PENDING")
}
