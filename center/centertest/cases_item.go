package centertest

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/ops"
)

// itemSteps are what a case does with the failed items of its task type.
type itemSteps struct{ *taskType }

// wantItems compares the failed items of a queue, and whether workers look for them. It tolerates a minute in RetryIn,
// which shrinks as time passes.
func (r itemSteps) wantItems(queue string, want ...failures.Item) {
	r.Helper()
	items := failures.Of(r.c.Roster())
	got, err := items.Find(r.Context(), r.task, r.readColumn(`SELECT item_key FROM schedule_failed_item WHERE
		task_type = '%s' AND queue_id = '%s'`, r.task, queue))
	r.must(err)
	r.compareItems(got, want...)
	has, err := items.Any(r.Context(), r.task, queue)
	if r.must(err); has != (len(want) > 0) {
		r.Fatalf("queue %s may have failed items: %t, and has %d", queue, has, len(want))
	}
}

func (r itemSteps) compareItems(got []failures.Item, want ...failures.Item) {
	r.Helper()
	diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(failures.Item{}, "FirstFailed"),
		cmp.Comparer(func(a, b time.Duration) bool { return (a - b).Abs() < time.Minute }),
		cmpopts.SortSlices(func(a, b failures.Item) bool { return a.Key < b.Key }))
	if diff != "" {
		r.Fatalf("failed items (-want +got):\n%s", diff)
	}
}

// partition returns the partition_version of the roster.
func (r itemSteps) partition() int64 {
	r.Helper()
	return r.readInt("SELECT partition_version FROM schedule_task_running WHERE task_type = '%s'", r.task)
}

// testFailedItems checks the life of a failed item: saved, retried, forgotten, dropped.
func testFailedItems(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 2})
	r.join("A")
	save := func(items ...failures.Item) {
		t.Helper()
		r.must(failures.Of(c.Roster()).Save(t.Context(), r.task, items))
	}
	firsts := func() int64 {
		return r.readInt("SELECT COUNT(DISTINCT first_failed_at) FROM schedule_failed_item WHERE task_type = '%s'", r.task)
	}
	p := r.partition()
	a := failures.Item{
		Key: "a", OrderKey: "north/7", QueueID: "0", Partition: p, State: ops.ItemRetry, Attempts: 1, LastError: "no",
		RetryIn: time.Hour,
	}
	b := failures.Item{Key: "b b's", QueueID: "1", Partition: p, State: ops.ItemDead, Attempts: 25, LastError: "broken \xff\x00", RetryIn: -time.Hour}
	save(a, b)
	b.LastError = "broken \uFFFD"
	r.wantItems("0", a)
	r.wantItems("1", b)
	before, old := firsts(), a
	a.Attempts, a.LastError, a.RetryIn, a.OrderKey = 2, "no again", 2*time.Hour, "north/8"
	save(old, a) // a select has returned it twice
	r.wantItems("0", a)
	for key, want := range map[string]int{"north/7": 0, "north/8": 1} {
		list, err := ops.New(c).Items().List(t.Context(), ops.ItemFilter{TaskType: r.task, OrderKey: key}, 10)
		if err != nil || len(list) != want {
			t.Fatalf("%d items with the order key %s, want %d: %v", len(list), key, want, err)
		}
	}
	dead := failures.Item{Key: "c", OrderKey: "south", QueueID: "1", Partition: p, State: ops.ItemDead, Attempts: 25}
	save(dead)
	for onDead, want := range map[string]int64{center.OnDeadHold: 2, center.OnDeadPass: 1} {
		r.exec("UPDATE schedule_task_type SET on_dead = '%s' WHERE task_type = '%s'", onDead, r.task)
		list, err := ops.New(c).Tasks().List(t.Context(), r.task)
		if r.must(err); list[0].HeldKeys != want {
			t.Fatalf("with on_dead %s, failed items hold %d order keys, want %d", onDead, list[0].HeldKeys, want)
		}
	}
	r.must(failures.Of(c.Roster()).Forget(t.Context(), r.task, []string{"c"}))
	if firsts() != before {
		t.Fatal("the second failure changed first_failed_at")
	}

	reply, _ := r.heartbeat("A")
	n, err := ops.New(c).Items().Retry(t.Context(), r.task, "test", "b b's", "nobody")
	if err != nil || n != 1 {
		t.Fatalf("Retry changed %d items, want 1: %v", n, err)
	}
	b.State, b.Attempts, b.RetryIn = ops.ItemRetry, 0, 0
	r.wantItems("1", b)
	if p, _ := r.heartbeat("A"); p.Items.Version == reply.Items.Version {
		t.Fatal("Retry did not change the item version in the heartbeat reply")
	}
	r.must(failures.Of(c.Roster()).Forget(t.Context(), r.task, []string{"a"}))
	r.wantItems("0")
	r.wantItems("1", b)
	for _, want := range []int{1, 0} {
		if n, err = ops.New(c).Items().Drop(t.Context(), r.task, "test", "b b's"); err != nil || n != want {
			t.Fatalf("Drop deleted %d items, want %d: %v", n, want, err)
		}
	}
	r.wantItems("1")
	if err := failures.Of(c.Roster()).Save(t.Context(), r.task, []failures.Item{{QueueID: "0", State: ops.ItemRetry}}); err == nil {
		t.Error("an item without a key was saved, want an error")
	}
}

// testItemKeys checks that keys of any length and bytes name different items, and that an operator finds, retries and
// deletes each item by its key.
func testItemKeys(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 2})
	long := strings.Repeat("x", 200_000)
	keys := []string{"a", "A", "a ", " a", "ä", "a\u0308", long, long + "y", strings.Repeat("😀", 300), "it's \\ \"%_?\n", "{now}"}
	var items []failures.Item
	for i, key := range keys {
		items = append(items, failures.Item{Key: key, QueueID: "0", Partition: r.partition(), State: ops.ItemDead, Attempts: i + 1})
	}
	r.must(failures.Of(c.Roster()).Save(t.Context(), r.task, items))
	r.wantItems("0", items...)
	for i, key := range keys {
		found, err := failures.Of(c.Roster()).Find(t.Context(), r.task, []string{key, "none"})
		r.must(err)
		r.compareItems(found, items[i])
		list, err := ops.New(c).Items().List(t.Context(), ops.ItemFilter{TaskType: r.task, Text: key}, len(keys))
		r.must(err)
		for _, other := range keys[i:] { // the keys before it are forgotten
			listed := slices.ContainsFunc(list, func(l ops.ItemRecord) bool { return l.ItemKey == other })
			if listed != strings.Contains(other, key) {
				t.Fatalf("item %.20q among those that contain %.20q: %t", other, key, listed)
			}
		}
		if n, err := ops.New(c).Items().Retry(t.Context(), r.task, "test", key); err != nil || n != 1 {
			t.Fatalf("Retry of %.20q changed %d items, want 1: %v", key, n, err)
		}
		r.must(failures.Of(c.Roster()).Forget(t.Context(), r.task, []string{key}))
		r.wantItems("0", items[i+1:]...)
	}
}

// testItemRetention checks that Clean deletes failed items that are past the retention, a thousand at a time, and that
// a retry keeps an item.
func testItemRetention(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 1})
	const old, chunk = 1_100, 1_000
	var items []failures.Item
	for i := range old {
		state := []string{ops.ItemDead, ops.ItemRetry}[i%2]
		items = append(items, failures.Item{Key: fmt.Sprint("old ", i), QueueID: "0", Partition: r.partition(), State: state, RetryIn: -48 * time.Hour})
	}
	young := []failures.Item{
		{Key: "young", QueueID: "0", Partition: r.partition(), State: ops.ItemDead, RetryIn: -time.Hour},
		{Key: "later", QueueID: "0", Partition: r.partition(), State: ops.ItemRetry, RetryIn: time.Hour},
	}
	r.must(failures.Of(c.Roster()).Save(t.Context(), r.task, append(items, young...)))
	if n, err := ops.New(c).Items().Retry(t.Context(), r.task, "test", items[0].Key); err != nil || n != 1 {
		t.Fatalf("Retry changed %d items, want 1: %v", n, err)
	}
	for _, want := range []int{chunk, old - 1 - chunk, 0} {
		if n, err := ops.New(c).Items().Clean(t.Context(), 24*time.Hour); err != nil || n != want {
			t.Fatalf("Clean deleted %d items, want %d: %v", n, want, err)
		}
	}
	retried := items[0]
	retried.State, retried.RetryIn = ops.ItemRetry, 0
	r.wantItems("0", append(young, retried)...)
}

// testManyFailedItems checks lists of items that take several statements.
func testManyFailedItems(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 1})
	var many []failures.Item
	var keys []string
	for i := range 1200 {
		keys = append(keys, fmt.Sprint(i))
		many = append(many, failures.Item{Key: keys[i], QueueID: "0", State: ops.ItemRetry})
	}
	r.must(failures.Of(c.Roster()).Save(t.Context(), r.task, many))
	if found, err := failures.Of(c.Roster()).Find(t.Context(), r.task, append(keys, "none")); err != nil || len(found) != 1200 {
		t.Fatalf("found %d items, want 1200: %v", len(found), err)
	}
	ofPage := func(want int, when string) {
		t.Helper()
		found, err := failures.Of(c.Roster()).OfPage(t.Context(), r.task, "0", append(keys[1100:], "none", "1", "11"))
		if err != nil || len(found) != want {
			t.Errorf("found %d items of a page of 102 %s, want %d: %v", len(found), when, want, err)
		}
	}
	ofPage(102, "among 1,200")
	r.must(failures.Of(c.Roster()).Forget(t.Context(), r.task, keys[:600]))
	ofPage(100, "among 600")
	if n, err := ops.New(c).Items().Drop(t.Context(), r.task, "test", keys...); err != nil || n != 600 {
		t.Fatalf("Drop deleted %d items, want 600: %v", n, err)
	}
	ofPage(0, "without records")
	few := append([]failures.Item{many[1], many[11]}, many[1190:]...)
	few[0].QueueID = "1"
	r.must(failures.Of(c.Roster()).Save(t.Context(), r.task, few))
	ofPage(12, "among 12 from before the queues changed")
	for i := range few {
		few[i].Partition = r.partition()
	}
	r.must(failures.Of(c.Roster()).Save(t.Context(), r.task, few))
	ofPage(11, "among 11 of the queue and one of another")
}

// testCursor checks that the fence saves a cursor, and that SaveCursor saves it without a fenced transaction (F4).
func testCursor(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 2})
	r.join("A")
	bind := func(from, to string) center.Batch {
		return center.Batch{Server: r.uuid("A"), TaskType: r.task, Queue: center.QueueEpoch{ID: "0", Epoch: r.epoch("0")}, Cursor: &center.CursorMove{From: from, To: to}}
	}
	want := func(want string) {
		t.Helper()
		got, err := c.Roster().Server(r.task, r.uuid("A")).Fence().Cursor(t.Context(), center.QueueEpoch{ID: "0", Epoch: r.epoch("0")})
		if err != nil || got != want {
			t.Fatalf("cursor %q, want %q: %v", got, want, err)
		}
	}
	r.must(center.SaveCursor(c.Bind(t.Context(), bind("", "17"))))
	want("17")

	ctx := c.Bind(t.Context(), bind("17", "18"))
	boom := errors.New("boom")
	if err := center.InTx(ctx, c.DB(), func(*sql.Tx) error { return boom }); !errors.Is(err, boom) {
		t.Fatalf("a function that fails: error %v, want its own", err)
	}
	want("17")
	r.must(center.SaveCursor(ctx)) // the dealer has taken the failure for success
	want("18")

	ctx = c.Bind(t.Context(), bind("18", "19"))
	r.must(center.InTx(ctx, c.DB(), func(*sql.Tx) error { return nil }))
	r.exec("UPDATE schedule_queue SET cursor_value = '99' WHERE task_type = '%s'", r.task)
	r.must(center.SaveCursor(ctx)) // the transaction has saved the cursor, so SaveCursor writes nothing
	want("99")

	ctx = c.Bind(t.Context(), bind("99", "18"))
	tx, err := c.DB().BeginTx(t.Context(), nil)
	r.must(err)
	defer tx.Rollback()
	r.must(center.Fence(ctx, tx))
	r.must(tx.Commit())
	r.must(center.SaveCursor(ctx)) // nobody has told whether the transaction was committed
	want("18")
	r.exec("UPDATE schedule_queue SET cursor_value = '99' WHERE task_type = '%s'", r.task)

	if err := center.SaveCursor(c.Bind(t.Context(), bind("18", "19"))); !center.IsFenced(err) {
		t.Fatalf("save a cursor from where it does not stand: error %v, want ErrFenced", err)
	}
	want("99")
	r.must(center.SaveCursor(r.batch("A", "0"))) // a batch without a cursor
	if err := center.SaveCursor(t.Context()); err == nil {
		t.Fatal("save a cursor without a batch: no error, want one")
	}
	late := c.Bind(t.Context(), bind("99", "20"))
	r.exec("UPDATE schedule_queue SET epoch = epoch + 1 WHERE task_type = '%s'", r.task)
	if err := center.SaveCursor(late); !center.IsFenced(err) {
		t.Fatalf("save a cursor under an old epoch: error %v, want ErrFenced", err)
	}
	if _, err := c.Roster().Server(r.task, r.uuid("A")).Fence().Cursor(t.Context(), center.QueueEpoch{ID: "0", Epoch: r.epoch("0") - 1}); !center.IsFenced(err) {
		t.Fatalf("read a cursor under an old epoch: error %v, want ErrFenced", err)
	}
}
