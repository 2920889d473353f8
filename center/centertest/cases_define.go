package centertest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// testDefine checks that the first definition of a task type writes its settings and queues, and no later one does.
func testDefine(t *testing.T, c *center.Center) {
	t.Run("the first definition writes the settings", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 3, ExecuteNumber: 7, TaskParameter: "p"})
		want := center.Settings{Queues: 3, ExecuteNumber: 7, TaskParameter: "p"}.WithDefaults()
		row, err := ops.New(c).Tasks().Settings(t.Context(), r.task)
		r.must(err)
		if diff := cmp.Diff(want, row); diff != "" {
			t.Fatalf("settings (-want +got):\n%s", diff)
		}
		r.wantOwners("-", "-", "-")
	})
	t.Run("a later definition changes nothing", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 3, ThreadNumber: 2})
		given := center.Settings{Queues: 5, ThreadNumber: 2, HeartbeatInterval: time.Second}
		row := r.define(given)
		want := []runs.Difference{{Name: "queues", Given: "5", Row: "3"}, {Name: "heartbeat_interval", Given: "1s", Row: "2s"}}
		if diff := cmp.Diff(want, row.DiffersFrom(given.Given())); diff != "" {
			t.Fatalf("differences from the row (-want +got):\n%s", diff)
		}
	})
	t.Run("queues may have names", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{QueueNames: []string{"süd", "nord"}})
		row := r.define(center.Settings{QueueNames: []string{"other"}})
		if diff := cmp.Diff([]string{"süd", "nord"}, row.QueueNames); diff != "" {
			t.Fatalf("names of the queues (-want +got):\n%s", diff)
		}
	})
	t.Run("errors name an unknown task type", func(t *testing.T) {
		if _, err := ops.New(c).Tasks().Settings(t.Context(), "nobody"); !errors.Is(err, center.ErrUnknownTask) {
			t.Fatalf("read the settings: error %v, want ErrUnknownTask", err)
		}
		if _, err := c.Roster().Planner("nobody", "").Rebalance(t.Context(), roster.RebalanceOptions{}); !errors.Is(err, center.ErrUnknownTask) {
			t.Fatalf("rebalance: error %v, want ErrUnknownTask", err)
		}
	})
}

// testNewEpochs checks that queues that are made again use no epoch twice (H6).
func testNewEpochs(t *testing.T, c *center.Center) {
	t.Run("H6 new queues start above the highest epoch ever used", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		r.exec("DELETE FROM schedule_queue WHERE task_type = '%s'", r.task)
		r.exec("UPDATE schedule_task_running SET queue_total = 0, epoch_high = 41 WHERE task_type = '%s'", r.task)
		r.define(center.Settings{Queues: 1})
		if e := r.epoch("0"); e != 42 {
			t.Fatalf("queue 0 has epoch %d, want 42", e)
		}
	})
	t.Run("H6 a lock row that was deleted by hand is rebuilt", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.exec("UPDATE schedule_queue SET epoch = 41 WHERE task_type = '%s' AND queue_id = '1'", r.task)
		r.exec("INSERT INTO schedule_event (event_time, task_type, own_sign, kind, queue_id, epoch, reason) VALUES ('2020-01-01 00:00:00.000000', '%s', '%s', 'REMOVED', '7', 77, '')", r.task, c.OwnSign())
		r.must(failures.Of(c.Roster()).Save(t.Context(), r.task, []failures.Item{{Key: "7", QueueID: "1", Partition: 2, State: ops.ItemDead}}))
		r.exec("DELETE FROM schedule_task_running WHERE task_type = '%s'", r.task)
		r.define(center.Settings{Queues: 2})
		r.wantOwners("A", "A>B")
		for column, want := range map[string]int64{"queue_total": 2, "epoch_high": 77, "partition_version": 3} {
			if got := r.readInt("SELECT %s FROM schedule_task_running WHERE task_type = '%s'", column, r.task); got != want {
				t.Errorf("%s %d, want %d", column, got, want)
			}
		}
		newest := r.readInt("SELECT MAX(plan_version) FROM schedule_queue WHERE task_type = '%s'", r.task)
		r.drainServer("A", true)
		r.wantOwners("B", "B")
		if now := r.readInt("SELECT MIN(plan_version) FROM schedule_queue WHERE task_type = '%s'", r.task); now <= newest {
			t.Errorf("plan_version %d of the next plan, want more than %d", now, newest)
		}
	})
}

// testOwnSigns checks that each own_sign has its own queues and servers, and that a new one copies the queues of BASE.
func testOwnSigns(t *testing.T, _ *center.Center, url string) {
	base := newFixture(t, Open(t, url, center.Options{}), center.Settings{QueueNames: []string{"x", "y", "z"}})
	base.join("A")
	base.exec("UPDATE schedule_queue SET queue_parameter = 'p', cursor_value = '17' WHERE task_type = '%s' AND queue_id = 'y'", base.task)
	base.must(base.c.Roster().Operator("test").RemoveQueue(t.Context(), base.task, "z"))
	test := newFixture(t, Open(t, url, center.Options{OwnSign: "TEST"}), center.Settings{Queues: 9})
	row := test.define(center.Settings{Queues: 9})
	test.join("B")
	base.wantOwners("A", "A", "A")
	test.wantOwners("B", "B") // z is being removed
	v, err := test.c.Roster().Server(test.task, test.uuid("B")).View(t.Context())
	test.must(err)
	if q := v.Queues[1]; q.Parameter != "p" || q.Cursor != "" || q.Index != 1 || len(row.QueueNames) != 2 {
		t.Fatalf("queue %+v with settings %+v, want the parameter p of BASE, no cursor, and 2 queues", q, row)
	}
}

// testConcurrent checks that concurrent definitions and rebalances take effect once (L1).
func testConcurrent(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 1})
	task := r.task + "2"
	var g errgroup.Group
	for i := range 8 {
		g.Go(func() error {
			if _, err := ops.New(c).Tasks().Define(t.Context(), task, center.Settings{Queues: 6}); err != nil {
				return err
			}
			uuid := fmt.Sprintf("%s:%d", task, i)
			if _, err := c.Roster().Register(t.Context(), roster.ServerInfo{UUID: uuid, TaskType: task, JudgeDeadInterval: time.Minute}); err != nil {
				return err
			}
			_, err := c.Roster().Planner(task, uuid).Rebalance(t.Context(), roster.RebalanceOptions{})
			return err
		})
	}
	r.must(g.Wait())
	r.task = task
	if n := r.readInt("SELECT COUNT(*) FROM schedule_queue WHERE task_type = '%s' AND cur_server IS NOT NULL", task); n != 6 {
		t.Fatalf("%d queues have an owner, want 6: %v", n, r.owners())
	}
	if n := r.readInt("SELECT membership_version - planned_version FROM schedule_task_running WHERE task_type = '%s'", task); n != 0 {
		t.Fatalf("the plan is %d membership versions behind, want 0", n)
	}
}
