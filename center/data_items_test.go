package center_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/schema"
)

// This file tests how a data database fences items whose queue has changed: after another number of queues, a split, a
// merge, and after the roster has lost any of these (F11).

// rosterTables are those that a promoted standby has as they were before.
var rosterTables = []string{
	"schedule_queue", "schedule_task_running", "schedule_event", "schedule_queue_setting", "schedule_backlog",
}

// save keeps the roster as it is now under a name.
func (f dataFixture) save(name string) {
	f.Helper()
	for _, table := range rosterTables {
		centertest.Exec(f.T, f.c, fmt.Sprintf("CREATE TABLE %s_%s AS SELECT * FROM %s", name, table, table))
	}
}

// lose is the promotion of a standby that lacks the commits since the roster was saved.
func (f dataFixture) lose(name string) {
	f.Helper()
	for _, table := range rosterTables {
		centertest.Exec(f.T, f.c, "DELETE FROM "+table, fmt.Sprintf("INSERT INTO %s SELECT * FROM %s_%s", table, name, table))
	}
}

// join registers a server, which gets its part of the queues.
func (f dataFixture) join(server string) {
	f.Helper()
	_, err := f.c.Roster().Register(f.Context(), roster.ServerInfo{
		UUID: server, TaskType: "settle", Host: "h", PID: 1, JudgeDeadInterval: 10 * time.Minute, HeartbeatToken: "t", Database: "orders",
	})
	must(f.T, err)
	f.plan(server)
}

func (f dataFixture) plan(server string) {
	f.Helper()
	_, err := f.c.Roster().Planner("settle", server).Rebalance(f.Context(), roster.RebalanceOptions{Always: true})
	must(f.T, err)
}

// owned is what the owner of a queue reads in its view.
func (f dataFixture) owned(server, queue string) center.Entry {
	f.Helper()
	v, err := f.c.Roster().Server("settle", server).View(f.Context())
	must(f.T, err)
	for _, q := range v.Queues {
		if q.ID == queue && q.Owner == server {
			return center.Entry{TaskType: "settle", Server: server, Queue: center.QueueEpoch{ID: queue, Epoch: q.Epoch}, Items: q.Items()}
		}
	}
	f.Fatalf("%s does not own queue %s: %+v", server, queue, v.Queues)
	return center.Entry{}
}

// works makes a server begin with a queue that it owns, and returns what its batches in flight are fenced with.
func (f dataFixture) works(server, queue string) center.Entry {
	f.Helper()
	e := f.owned(server, queue)
	f.enter(e)
	must(f.T, f.write(e))
	return e
}

// worksAfterLoss is works as the manager does it after a loss that nobody has noticed: an AheadError is a proof (H7),
// after which the epochs rise (H8).
func (f dataFixture) worksAfterLoss(server, queue string) center.Entry {
	f.Helper()
	for range 4 {
		e := f.owned(server, queue)
		_, err := f.d.Enter(f.Context(), e)
		if ahead, ok := errors.AsType[*roster.AheadError](err); ok {
			f.notice(server, ahead)
			continue
		}
		must(f.T, err)
		if err = f.write(e); !center.IsFenced(err) {
			must(f.T, err)
			return e
		}
	}
	f.Fatalf("%s cannot work queue %s", server, queue)
	return center.Entry{}
}

func (f dataFixture) notice(server string, ahead *roster.AheadError) {
	f.Helper()
	m := roster.NewMemory()
	m.Saw(ahead.Queue.ID, ahead.Found)
	centertest.Exec(f.T, f.c, "UPDATE schedule_environment SET lost_at = NULL") // an operator has acknowledged an earlier loss
	check, err := f.c.Roster().Planner("settle", server).CheckHistory(f.Context(), *m)
	must(f.T, err)
	if !check.Lost {
		f.Fatalf("%v proves nothing: %+v", ahead, check)
	}
	f.plan(server)
}

// mustBeLost checks that what an owner has in flight from a lost history does not commit, unless the same server has the
// same items under the same epoch again: then no other one had them in between.
func (f dataFixture) mustBeLost(lost, now center.Entry) {
	f.Helper()
	if lost != now {
		f.mustBeFenced("a write of the lost history", f.write(lost))
	}
	must(f.T, f.write(now))
}

// repartition gives the task type another number of queues, after its servers have drained.
func (f dataFixture) repartition(total int) {
	f.Helper()
	must(f.T, f.c.Roster().Operator("op").Repartition(f.Context(), "settle", total, 0))
	for _, server := range []string{"A", "B"} {
		v, err := f.c.Roster().Server("settle", server).View(f.Context())
		must(f.T, err)
		var drained []center.QueueEpoch
		for _, q := range v.Queues {
			drained = append(drained, center.QueueEpoch{ID: q.ID, Epoch: q.Epoch})
		}
		_, err = f.c.Roster().Server("settle", server).GiveUp(f.Context(), drained...)
		must(f.T, err)
	}
	if v, err := f.c.Roster().Server("settle", "A").View(f.Context()); err != nil || v.QueueTotal != total {
		f.Fatalf("there are %d queues, want %d: %v", v.QueueTotal, total, err)
	}
}

// resize splits a queue of A, or merges it with its other parts.
func (f dataFixture) resize(queue string, total int, drained ...string) {
	f.Helper()
	must(f.T, f.c.Roster().Operator("op").Resize(f.Context(), "settle", queue, total))
	for _, q := range drained {
		given, err := f.c.Roster().Server("settle", "A").GiveUp(f.Context(), f.owned("A", q).Queue)
		must(f.T, err)
		if len(given) == 0 {
			f.Fatalf("queue %s has not changed", q)
		}
	}
}

// itemsChange are the ways in which item 13 gets another queue. It is in queue 1 of 4 before all of them.
var itemsChange = map[string]struct {
	change func(dataFixture)
	queue  string // of item 13 afterwards
}{
	"another number of queues":          {func(f dataFixture) { f.repartition(8) }, "5"},
	"a number without a common divisor": {func(f dataFixture) { f.repartition(3) }, "1"},
	"a split":                           {func(f dataFixture) { f.resize("1", 8, "1") }, "5"},
	"a split into three":                {func(f dataFixture) { f.resize("1", 12, "1") }, "1"},
	"a merge": {func(f dataFixture) {
		f.resize("1", 2, "1", "3")
	}, "1"},
	"a split and a merge": {func(f dataFixture) {
		f.resize("1", 8, "1")
		f.resize("1", 4, "1", "5")
	}, "1"},
}

// eachItemsChange runs f for each way and for each kind of data database, with A as the owner of four queues.
func eachItemsChange(t *testing.T, run func(f dataFixture, change func(dataFixture), queue string)) {
	t.Helper()
	t.Parallel()
	for name, c := range itemsChange {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			eachData(t, func(t *testing.T, f dataFixture) {
				centertest.Exec(t, f.c, "UPDATE schedule_task_type SET splittable = TRUE")
				f.join("A")
				run(f, c.change, c.queue)
			})
		})
	}
}

// F11 N1 N3: what was selected before the items got another queue is rejected once its owner works.
func TestDataItemsChangeTheirQueue(t *testing.T) {
	eachItemsChange(t, func(f dataFixture, change func(dataFixture), queue string) {
		before := f.works("A", "1")
		change(f)
		after := f.works("A", queue)
		f.mustBeFenced("a write of the earlier queue of the item", f.write(before))
		must(f.T, f.write(after))
		_, err := f.d.Enter(f.Context(), before)
		f.mustBeFenced("a raise of the earlier queue of the item", err)
	})
}

// F11 N1 N3: an owner of an earlier queue of the items that raises its epoch for the first time comes too late.
func TestDataLateRaise(t *testing.T) {
	eachItemsChange(t, func(f dataFixture, change func(dataFixture), queue string) {
		late := f.owned("A", "1")
		change(f)
		after := f.works("A", queue)
		_, err := f.d.Enter(f.Context(), late)
		f.mustBeFenced("the first raise of the earlier queue of the item", err)
		must(f.T, f.write(after))
	})
}

// F11 H7 H8: if the roster loses the change, the queue that has the item again fences the one that had it meanwhile, or
// finds it ahead, which proves the loss. It does not matter how far the roster went on before.
func TestDataItemsChangeIsLost(t *testing.T) {
	for _, plans := range []int{0, 1, 5} {
		t.Run(fmt.Sprintf("after_%d_plans", plans), func(t *testing.T) {
			eachItemsChange(t, func(f dataFixture, change func(dataFixture), queue string) {
				f.works("A", "1")
				f.save("bak")
				change(f)
				lost := f.works("A", queue)
				f.lose("bak")
				centertest.Exec(f.T, f.c, fmt.Sprintf("UPDATE schedule_queue SET epoch = epoch + %d", plans))
				again := f.worksAfterLoss("A", "1")
				f.mustBeLost(lost, again)
			})
		})
	}
}

// F11 H7 H8: the same the other way round, and twice.
func TestDataItemsChangeIsLostTwice(t *testing.T) {
	eachItemsChange(t, func(f dataFixture, change func(dataFixture), queue string) {
		f.save("first")
		change(f)
		lost := f.works("A", queue)
		f.save("second")
		f.lose("first")
		again := f.worksAfterLoss("A", "1")
		f.mustBeLost(lost, again)
		f.lose("second") // the other side of a split brain wins after all
		third := f.worksAfterLoss("A", queue)
		f.mustBeLost(again, third)
	})
}

// F11: any change after a loss of any other one.
func TestDataItemsChangeAfterALoss(t *testing.T) {
	t.Parallel()
	for name, lost := range itemsChange {
		t.Run("lost_"+strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			eachItemsChange(t, func(f dataFixture, change func(dataFixture), queue string) {
				f.works("A", "1")
				f.save("bak")
				lost.change(f)
				before := f.works("A", lost.queue)
				f.lose("bak")
				change(f)
				after := f.worksAfterLoss("A", queue)
				f.mustBeLost(before, after)
			})
		})
	}
}

// F11: each data database fences the items that it has, whatever the others know.
func TestDataItemsInTwoDatabases(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		f := newDataFixture(t, url)
		other := f
		other.d = openData(t, f.c, "billing", testdb.URL(t, testdb.SQLite))
		f.join("A")
		before, elsewhere := f.works("A", "1"), f.owned("A", "1")
		other.enter(elsewhere)
		f.save("bak")
		f.repartition(8)
		lost := f.works("A", "5")
		f.mustBeFenced("a write of the earlier queue", f.write(before))
		if _, err := other.d.Enter(t.Context(), f.owned("A", "5")); err != nil {
			t.Fatal(err)
		}
		f.lose("bak")
		f.worksAfterLoss("A", "1")
		f.mustBeFenced("a write of the lost history", f.write(lost))
		again := other.worksAfterLoss("A", "1")
		must(t, f.write(again)) // the epochs of one roster are those of all its databases
	})
}

// F11: a queue that keeps its items is fenced by no change of others, and its raise looks at no other row.
func TestDataOtherItemsGoOn(t *testing.T) {
	eachData(t, func(t *testing.T, f dataFixture) {
		centertest.Exec(t, f.c, "UPDATE schedule_task_type SET splittable = TRUE")
		f.join("A")
		stays := f.works("A", "2")
		f.works("A", "1")
		f.resize("1", 8, "1")
		f.works("A", "5")
		f.works("A", "1")
		must(t, f.write(stays))
	})
}

// F11 N3: whatever the order in which the servers raise, a part and the whole never both have an owner.
func TestDataRaisesAtOnce(t *testing.T) {
	eachData(t, func(t *testing.T, f dataFixture) {
		whole := f.own("A", "1", 7)
		f.enter(whole)
		parts := []center.Entry{}
		for i, id := range []string{"1", "5", "9"} {
			part := f.own(id, id, int64(20+i))
			part.Items = roster.Items{Division: whole.Items.Division, Index: 1 + 4*i, Total: 12}
			parts = append(parts, part)
		}
		merged := f.own("M", "1", 22)
		merged.Items = roster.Items{Division: whole.Items.Division, Index: 1, Total: 2}
		errs := make(chan error)
		all := append(parts, merged)
		for _, e := range all {
			go func() {
				_, err := f.d.Enter(t.Context(), e)
				errs <- err
			}()
		}
		for range all {
			t.Log(<-errs) // some come too late
		}
		rows, err := f.d.DB().QueryContext(t.Context(), "SELECT queue_id, queue_index, queue_total FROM rota_fence WHERE division IS NOT NULL")
		must(t, err)
		defer rows.Close()
		has := map[int]string{}
		for rows.Next() {
			var id string
			var index, total int
			must(t, rows.Scan(&id, &index, &total))
			for item := index; item < 24; item += total {
				if has[item] != "" {
					t.Errorf("item %d is in queue %s and in queue %s", item, has[item], id)
				}
				has[item] = id
			}
		}
		must(t, rows.Err())
	})
}

// F11: a cursor belongs to the items that its queue had.
func TestDataItemsChangeNeedsNoCursors(t *testing.T) {
	eachItemsChange(t, func(f dataFixture, change func(dataFixture), queue string) {
		cursor := "42"
		before := f.works("A", "1")
		must(f.T, f.d.InTx(f.batch(before, &center.CursorMove{To: cursor}), func(*sql.Tx) error { return nil }))
		change(f)
		after := f.owned("A", queue)
		if after.Items == before.Items { // the parts of the queue have merged again, and no server has read them
			f.works("A", queue)
			return
		}
		if _, err := f.d.Enter(f.Context(), after); !errors.Is(err, roster.ErrDataCursors) {
			f.Fatalf("a raise beside a cursor of the earlier division: got %v, want ErrDataCursors", err)
		}
		f.exec("UPDATE rota_fence SET cursor_value = ''")
		f.works("A", queue)
	})
}

// F11: the cursors of one task type do not stop the others.
func TestDataCursorsOfOneTaskType(t *testing.T) {
	eachData(t, func(t *testing.T, f dataFixture) {
		cursor := "42"
		a := f.own("A", "0", 7)
		f.enter(a)
		must(t, f.d.InTx(f.batch(a, &center.CursorMove{To: cursor}), func(*sql.Tx) error { return nil }))
		if got, err := f.d.Cursor(t.Context(), "settle", "A", a.Queue); err != nil || got != cursor {
			t.Fatalf("the cursor: got %q, %v", got, err)
		}
		if n := centertest.CountRows(t, f.c, "SELECT 1 FROM schedule_queue WHERE cursor_value <> ''"); n != 0 {
			t.Errorf("%d cursors are in the roster, want none", n)
		}
		must(t, center.SaveCursor(f.batch(a, &center.CursorMove{From: cursor, To: "43"})))
		stale := f.batch(a, &center.CursorMove{From: cursor, To: "44"})
		if err := f.d.InTx(stale, func(*sql.Tx) error { return nil }); !errors.Is(err, center.ErrFenced) {
			t.Fatalf("F4: a batch that begins where the cursor does not stand: got %v, want ErrFenced", err)
		}
		f.enter(a)
		f.enter(f.own("B", "0", 8)) // the next owner goes on behind the cursor
		b := f.own("B", "1", 10)
		b.Items.Division = "next"
		if _, err := f.d.Enter(t.Context(), b); !errors.Is(err, roster.ErrDataCursors) {
			t.Fatalf("a raise for another division beside a cursor: got %v, want ErrDataCursors", err)
		}
		if problem, _ := f.d.State("settle"); problem.Err == nil {
			t.Error("nothing says why the queues are not worked")
		}
		other := f.own("B", "2", 10) // of another task type
		other.TaskType = "invoice"
		f.enter(other)
		if problem, _ := f.d.State("invoice"); problem.Err != nil {
			t.Errorf("another task type has the problem %v", problem)
		}
		f.exec("UPDATE rota_fence SET cursor_value = ''")
		f.enter(b)
		if problem, _ := f.d.State("settle"); problem.Err != nil {
			t.Errorf("the problem remains: %v", problem)
		}
	})
}

// F11 N2: a named queue that was removed and added again has another index and the same items: its owner goes on behind
// the cursor, and the name that has its old index has other items.
func TestDataNameIsAddedAgain(t *testing.T) {
	eachData(t, func(t *testing.T, f dataFixture) {
		named := func(server, queue string, epoch int64, index int) center.Entry {
			e := f.own(server, queue, epoch)
			e.Items = roster.Items{Division: "names", Index: index}
			return e
		}
		cursor := "42"
		before := named("A", "1", 7, 1)
		f.enter(before)
		must(t, f.d.InTx(f.batch(before, &center.CursorMove{To: cursor}), func(*sql.Tx) error { return nil }))
		again := named("B", "1", 9, 3)
		f.enter(again)
		if got, err := f.d.Cursor(t.Context(), "settle", "B", again.Queue); err != nil || got != cursor {
			t.Errorf("the cursor: got %q, %v", got, err)
		}
		must(t, f.write(again))
		f.mustBeFenced("a write of the queue that was removed", f.write(before))
		f.enter(named("B", "1", 10, 3))
		f.enter(named("A", "2", 8, 1))
		f.enter(named("B", "1", 11, 3))
	})
}

// F11 N2: a task type that is deleted and defined anew divides the items in another way, also if its queues have the
// same ids.
func TestDataTaskTypeIsDefinedAnew(t *testing.T) {
	for name, anew := range map[string]center.Settings{
		"numbers": {Queues: 4, Database: "orders"},
		"names":   {QueueNames: []string{"1", "west"}, Database: "orders"},
	} {
		t.Run(name, func(t *testing.T) {
			eachData(t, func(t *testing.T, f dataFixture) {
				f.join("A")
				cursor := "42"
				before, other := f.works("A", "1"), f.works("A", "2")
				must(t, f.d.InTx(f.batch(before, &center.CursorMove{To: cursor}), func(*sql.Tx) error { return nil }))
				must(t, f.c.Roster().Server("settle", "A").Leave(t.Context(), nil, roster.Reservation{}))
				must(t, ops.New(f.c).Tasks().Delete(t.Context(), "settle", "me"))
				centertest.Define(t, f.c, "settle", anew)
				f.join("B")
				if _, err := f.d.Enter(t.Context(), f.owned("B", "1")); !errors.Is(err, roster.ErrDataCursors) {
					t.Fatalf("a raise beside a cursor of the deleted task type: got %v, want ErrDataCursors", err)
				}
				f.exec("UPDATE rota_fence SET cursor_value = ''")
				f.works("B", "1")
				f.mustBeFenced("a write of the deleted queue of the same name", f.write(before))
				f.mustBeFenced("a write of another deleted queue", f.write(other))
			})
		})
	}
}

// F11: of two raises for items that they share, the one that gets the lock of the items later looks again.
func TestDataRaisesWaitForTheLock(t *testing.T) {
	eachData(t, func(t *testing.T, f dataFixture) {
		waiting := map[schema.Dialect]string{
			schema.Postgres: "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
			schema.MySQL:    "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE 'UPDATE rota_fence SET gmt_modified%'",
		}[f.d.Dialect().Family()]
		if waiting == "" {
			return // it has one lock for all writers
		}
		f.enter(f.own("A", "3", 7))
		tx, err := f.d.DB().BeginTx(t.Context(), nil)
		must(t, err)
		defer tx.Rollback()
		_, err = tx.ExecContext(t.Context(), "UPDATE rota_fence SET gmt_modified = gmt_modified WHERE task_type = 'settle' AND own_sign = 'BASE' AND queue_id = ''")
		must(t, err)
		whole := f.own("A", "1", 7)
		part := f.own("B", "5", 9)
		part.Items = roster.Items{Division: whole.Items.Division, Index: 5, Total: 8}
		done := make(chan error, 2)
		for _, e := range []center.Entry{whole, part} {
			go func() {
				_, err := f.d.Enter(t.Context(), e)
				done <- err
			}()
		}
		for both := 0; both < 2 && len(done) == 0; {
			must(t, f.d.DB().QueryRowContext(t.Context(), waiting).Scan(&both))
		}
		must(t, tx.Rollback())
		for range 2 {
			t.Log(<-done) // one comes too late
		}
		var n int
		must(t, f.d.DB().QueryRowContext(t.Context(), "SELECT COUNT(*) FROM rota_fence WHERE queue_id IN ('1', '5') AND division IS NOT NULL").Scan(&n))
		if n != 1 {
			t.Errorf("%d queues have the items that both may have, want 1", n)
		}
	})
}

// L5 F11: a raise that waits for the transactions of one queue holds no row of another one.
func TestDataRaiseHoldsNoOtherRow(t *testing.T) {
	for what, items := range map[string]func(roster.Items) roster.Items{
		"the same items": func(i roster.Items) roster.Items { return i },
		"other items":    func(i roster.Items) roster.Items { return roster.Items{Division: i.Division, Index: 0, Total: 8} },
	} {
		t.Run(strings.ReplaceAll(what, " ", "_"), func(t *testing.T) { raiseHoldsNoOtherRow(t, items) })
	}
}

func raiseHoldsNoOtherRow(t *testing.T, items func(roster.Items) roster.Items) {
	t.Helper()
	eachData(t, func(t *testing.T, f dataFixture) {
		if f.d.Dialect() == schema.SQLite {
			return // it has one lock for all writers
		}
		a := f.own("A", "0", 7)
		f.enter(a)
		f.enter(f.own("A", "1", 7))
		tx, err := f.d.DB().BeginTx(t.Context(), nil)
		must(t, err)
		defer tx.Rollback()
		must(t, f.d.Fence(f.batch(a, nil), tx))
		b := f.own("B", "0", 8)
		b.Items = items(b.Items)
		waited := make(chan error)
		go func() {
			_, err := f.d.Enter(t.Context(), b)
			waited <- err
		}()
		for {
			select {
			case err := <-waited:
				if _, held := errors.AsType[*roster.HeldError](err); !held {
					t.Fatalf("the raise of queue 0: got %v, want a HeldError", err)
				}
				return
			default:
			}
			for _, row := range []string{"", "1"} {
				probe, err := f.d.DB().BeginTx(t.Context(), nil)
				must(t, err)
				_, err = probe.ExecContext(t.Context(), "SELECT epoch FROM rota_fence WHERE task_type = 'settle' AND own_sign = 'BASE' AND queue_id = '"+row+"' FOR UPDATE NOWAIT")
				must(t, probe.Rollback())
				if err != nil {
					t.Fatalf("the row of queue %q while the raise of queue 0 waits: %v", row, err)
				}
			}
		}
	})
}
