package centertest

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/ops"
)

// saveItems records n dead items of queue 0.
func (r itemSteps) saveItems(n int) {
	r.Helper()
	items := make([]failures.Item, n)
	for i := range items {
		items[i] = failures.Item{Key: fmt.Sprint("item ", i), QueueID: "0", State: ops.ItemDead, Attempts: 25}
	}
	r.must(failures.Of(r.c.Roster()).Save(r.Context(), r.task, items))
}

// testItemChunks checks that operators change many failed items in several transactions, so that the lock row is free
// in between, and that they learn of the progress.
func testItemChunks(t *testing.T, c *center.Center) {
	const many, chunk = 11_000, 5_000
	var progress []int
	report := func(items int) { progress = append(progress, items) }
	wantProgress := func(t *testing.T, want ...int) {
		t.Helper()
		if diff := cmp.Diff(want, progress); diff != "" {
			t.Errorf("progress (-want +got):\n%s", diff)
		}
		progress = nil
	}
	t.Run("page and drop", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.saveItems(2_500)
		r.must(failures.Of(r.c.Roster()).Save(t.Context(), r.task, []failures.Item{{Key: "other", QueueID: "1", State: ops.ItemRetry, Attempts: 1}}))
		pages, seen := 0, map[string]bool{}
		for next := ""; pages == 0 || next != ""; pages++ {
			var page []ops.ItemRecord
			var err error
			page, next, err = ops.New(c).Items().Page(t.Context(), ops.ItemFilter{TaskType: r.task, QueueID: "0", State: ops.ItemDead}, next)
			r.must(err)
			var keys []string
			for _, item := range page {
				keys = append(keys, item.ItemKey)
				seen[item.ItemKey] = true
			}
			for what, change := range map[string]func(context.Context, string, string, ...string) (int, error){"retried": ops.New(c).Items().Retry, "dropped": ops.New(c).Items().Drop} {
				if n, err := change(t.Context(), r.task, "test"); err != nil || n != 0 {
					t.Fatalf("page %d: %d items were %s without keys, want 0: %v", pages, n, what, err)
				}
			}
			if n, err := ops.New(c).Items().Drop(t.Context(), r.task, "test", keys...); err != nil || n != len(keys) {
				t.Fatalf("page %d: %d items were dropped, want %d: %v", pages, n, len(keys), err)
			}
		}
		if pages != 3 || len(seen) != 2_500 {
			t.Errorf("there are %d items on %d pages, want 2500 on 3", len(seen), pages)
		}
		if left := r.readColumn("SELECT item_key FROM schedule_failed_item WHERE task_type = '%s'", r.task); !cmp.Equal(left, []string{"other"}) {
			t.Errorf("items %q are left, want the one of the other queue", left)
		}
		if _, _, err := ops.New(c).Items().Page(t.Context(), ops.ItemFilter{}, ""); err == nil {
			t.Error("Page takes a filter without a task type")
		}
	})
	t.Run("many keys", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		r.saveItems(2_500)
		keys := r.readColumn("SELECT item_key FROM schedule_failed_item WHERE task_type = '%s'", r.task)
		if n, err := ops.New(c).Items().Retry(t.Context(), r.task, "test", keys...); err != nil || n != len(keys) {
			t.Fatalf("Retry changed %d items, want %d: %v", n, len(keys), err)
		}
		if n := r.readInt("SELECT COUNT(*) FROM schedule_failed_item WHERE task_type = '%s' AND state = 'RETRY' AND attempts = 0", r.task); n != 2_500 {
			t.Errorf("%d items are to be retried, want 2500", n)
		}
		want := []string{"1000 failed items were retried", "1000 failed items were retried", "500 failed items were retried"}
		got := r.readColumn("SELECT reason FROM schedule_event WHERE task_type = '%s' AND kind = 'ITEMS' ORDER BY event_id", r.task)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
	t.Run("delete a task type", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		r.join("A")
		r.saveItems(many)
		count := func() int64 {
			return r.readInt("SELECT COUNT(*) FROM schedule_failed_item WHERE task_type = '%s'", r.task)
		}
		if err := ops.New(c).Tasks().WithProgress(report).Delete(t.Context(), r.task, "test"); err == nil || count() != many {
			t.Errorf("a delete that is refused (%v) left %d items, want %d", err, count(), many)
		}
		wantProgress(t)
		r.makeSilent("A")
		r.must(ops.New(c).Tasks().WithProgress(report).Delete(t.Context(), r.task, "test"))
		wantProgress(t, chunk, 2*chunk)
		if n := count(); n != 0 {
			t.Errorf("the deleted task type has %d failed items, want 0", n)
		}
	})
}
