package ops_test

import (
	"errors"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

// The count of a later epoch wins, and the count of a queue goes with the queue.
func TestSaveBacklogs(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		ctx, c := t.Context(), centertest.Open(t, url, center.Options{})
		if _, err := ops.New(c).Tasks().Define(ctx, "settle", center.Settings{QueueNames: []string{"a", "b"}}); err != nil {
			t.Fatal(err)
		}
		rate := -2.5
		save := func(list ...ops.QueueBacklog) {
			t.Helper()
			if err := ops.New(c).Queues().SaveBacklogs(ctx, "settle", list); err != nil {
				t.Fatal(err)
			}
		}
		save(ops.QueueBacklog{QueueID: "a", Epoch: 7, Items: 100, Oldest: time.Now().Add(-time.Hour), Age: time.Minute, Rate: &rate, Trend: ops.BacklogDraining},
			ops.QueueBacklog{QueueID: "b", Epoch: 7, Items: 3})
		save(ops.QueueBacklog{QueueID: "a", Epoch: 6, Items: 1}, // the late one of an earlier owner
			ops.QueueBacklog{QueueID: "b", Epoch: 7, Items: 5}, // the owner has counted it under two epochs
			ops.QueueBacklog{QueueID: "b", Epoch: 8, Items: 4})
		list := queuesOf(t, c)
		a, b := list[0], list[1]
		if *a.BacklogItems != 100 || *a.BacklogOldest < 3500 || *a.BacklogOldest > 3700 || *a.BacklogAge < 59 || *a.BacklogRate != rate || *a.BacklogTrend != ops.BacklogDraining {
			t.Errorf("queue a: %+v, want the count of epoch 7", a)
		}
		if eta := a.BacklogETA(); eta == nil || *eta != 40 {
			t.Errorf("queue a is done in %v s, want 40", eta)
		}
		if *b.BacklogItems != 4 || b.BacklogOldest != nil || b.BacklogRate != nil || b.BacklogETA() != nil {
			t.Errorf("queue b: %+v, want the second count", b)
		}
		if err := c.Roster().Operator("test").RemoveQueue(ctx, "settle", "b"); err != nil {
			t.Fatal(err)
		}
		if err := c.Roster().Operator("test").AddQueue(ctx, "settle", "b", ""); err != nil {
			t.Fatal(err)
		}
		if b := queuesOf(t, c)[1]; b.BacklogItems != nil {
			t.Errorf("queue b has %d items after it was removed and added, want none known", *b.BacklogItems)
		}
		if n, err := ops.New(c).Clean(ctx, 30*time.Second); err != nil || n != 1 {
			t.Errorf("clean deleted %d rows (%v), want the one of queue a", n, err)
		}
		save(ops.QueueBacklog{QueueID: "a", Epoch: 8, Items: 1})
		if err := ops.New(c).Tasks().Delete(ctx, "settle", "test"); err != nil {
			t.Fatal(err)
		}
		if n, err := center.Column[int](ctx, c.DB(), `SELECT COUNT(*) FROM schedule_backlog`); err != nil || n[0] != 0 {
			t.Errorf("%v rows (%v) after the task type was deleted, want none", n, err)
		}
	})
}

func queuesOf(t *testing.T, c *center.Center) []ops.QueueRecord {
	t.Helper()
	list, err := ops.New(c).Queues().List(t.Context(), ops.QueueFilter{TaskType: "settle"})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Another number of queues divides the items anew.
func TestBacklogsAfterRepartition(t *testing.T) {
	c := centertest.Open(t, "sqlite::memory:", center.Options{})
	ctx := t.Context()
	if _, err := ops.New(c).Tasks().Define(ctx, "settle", center.Settings{Queues: 2}); err != nil {
		t.Fatal(err)
	}
	if err := ops.New(c).Queues().SaveBacklogs(ctx, "settle", []ops.QueueBacklog{{QueueID: "0", Epoch: 1, Items: 5}}); err != nil {
		t.Fatal(err)
	}
	if err := c.Roster().Operator("test").Repartition(ctx, "settle", 4, 0); err != nil {
		t.Fatal(err)
	}
	if list := queuesOf(t, c); len(list) != 4 || list[0].BacklogItems != nil {
		t.Errorf("%d queues, backlog of the first %v, want 4 and none known", len(list), list[0].BacklogItems)
	}
}

// Only counts of the last minute tell how much is left.
func TestOldBacklogs(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		ctx, c := t.Context(), centertest.Served(t, url)
		count := func(queue string, items int64, age time.Duration) {
			t.Helper()
			must(t, ops.New(c).Queues().SaveBacklogs(ctx, "settle", []ops.QueueBacklog{{QueueID: queue, Epoch: 9, Items: items, Age: age}}))
		}
		count("0", 10, 0)
		scale := func() (ops.Scale, error) {
			list, err := ops.New(c).Tasks().List(ctx, "settle")
			must(t, err)
			return list[0].Scale(10)
		}
		if _, err := scale(); !errors.Is(err, ops.ErrOldBacklog) {
			t.Errorf("with one of four queues counted: %v, want ErrOldBacklog", err)
		}
		if list, err := ops.New(c).Tasks().List(ctx, "settle"); err != nil || !list[0].BacklogPartial() {
			t.Errorf("%+v, %v, want a backlog of which a part is known", list, err)
		}
		count("1", 30, 10*time.Second)
		count("2", 5_000, time.Hour)
		count("3", 5_000, 2*time.Minute)
		s, err := scale()
		if err != nil || s.Counted != 2 || s.Backlog != 80 || s.Age < 10 || s.Age > 60 {
			t.Errorf("with two of four queues counted within a minute: %+v, %v, want an estimate of 80 items", s, err)
		}
	})
}

// A dealer finds an item whose time no column holds: the counts of the other queues are recorded all the same.
func TestSaveBacklogsBeyondTheColumns(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		ctx, c := t.Context(), centertest.Open(t, url, center.Options{})
		_, err := ops.New(c).Tasks().Define(ctx, "settle", center.Settings{Queues: 3})
		must(t, err)
		must(t, ops.New(c).Queues().SaveBacklogs(ctx, "settle", []ops.QueueBacklog{
			{QueueID: "0", Epoch: 7, Items: 3, Oldest: time.Date(202, 12, 24, 0, 0, 0, 0, time.UTC)},
			{QueueID: "1", Epoch: 7, Items: 3, Oldest: time.Date(20_261, 12, 24, 0, 0, 0, 0, time.UTC)},
			{QueueID: "2", Epoch: 7, Items: 5},
		}))
		for _, q := range queuesOf(t, c) {
			if q.BacklogItems == nil || *q.BacklogItems < 3 {
				t.Errorf("queue %s: items %v, want what was counted", q.QueueID, q.BacklogItems)
			}
		}
	})
}
