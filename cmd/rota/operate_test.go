package main

import (
	"database/sql"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

// Each command does what it prints, and records an event with its actor.
func TestOperate(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		state := func(uuid string) (state string) {
			s.must(s.c.DB().QueryRowContext(t.Context(), "SELECT state FROM schedule_server WHERE uuid = '"+uuid+"'").Scan(&state))
			return state
		}
		s.wantOutput("task pause settle", `^settle\$BASE: paused; `)
		s.wantOutput("task list", `(?m)^ settle +PAUSED`)
		s.wantOutput("task resume settle", `^settle\$BASE: resumed`)
		s.wantOutput("worker pause web2:2", `^web2:2:00000002 \(settle\): paused; `)
		if got := state(web2); got != ops.StatePaused {
			t.Errorf("web2 is %s", got)
		}
		s.wantOutput("worker resume "+web2, `may own queues again`)
		s.wantOutput("worker drain web1:1", `drained; its 4 queues go to 1 other worker as`)
		if got := state(web1); got != ops.StateDraining {
			t.Errorf("web1 is %s", got)
		}
		tx := fencedTx(t, s.c, web1)
		time.AfterFunc(300*time.Millisecond, func() { _ = tx.Rollback() }) // the command waits for it
		s.wantOutput("worker drain web1:1 --force", `drained; its 4 queues go to 1 other worker at once`)
		if n := count(t, s.c.DB(), "schedule_queue WHERE cur_server = '"+web2+"'"); n != 4 {
			t.Errorf("web2 has %d queues", n)
		}
		s.wantOutput("queue add regions west", `^queue west of regions\$BASE: added\n$`)
		s.wantOutput("queue remove regions south --yes", `^queue south of regions\$BASE: removed as soon as`)
		s.wantOutput("queue list regions", `(?s)north.*west`)
		s.must(failures.Of(s.c.Roster()).Save(t.Context(), "settle", []failures.Item{
			{Key: "a", QueueID: "0", State: ops.ItemDead, Attempts: 3}, {Key: "b", QueueID: "0", State: ops.ItemDead}, {Key: "c", QueueID: "0", State: ops.ItemDead},
		}))
		s.wantOutput("item retry settle a a", `^settle\$BASE: 1 failed item retried\n`)
		s.wantOutput("item list --state RETRY", `(?m) a +RETRY +0 `)
		s.wantError(2, "queue, order-key, state, error and match choose among all", "item drop settle b --state RETRY --yes")
		if got, note, _ := s.try("item drop settle b --yes"); got != "settle$BASE: 1 failed item forgotten\n" || !strings.Contains(note, "An item that a select still returns is executed again") {
			t.Errorf("item drop: %q and %q, want that an item may come again", got, note)
		}
		s.wantOutput("item retry settle --all --dry-run", `would be retried\nThey are executed at once, and begin with zero attempts\. settle has 2 failed items now\.\n$`)
		s.wantOutput("task set settle on_dead=PASS splittable=true", `changed`)
		s.wantOutput("item retry settle --all --dry-run", `on_dead is PASS: a dead item with an order key is executed out of order, because items behind it have gone on\.\n$`)
		s.wantOutput("item retry settle --all", `2 failed items retried`)
		s.wantError(1, "settle$BASE: no failed item has 1 of the 2 keys; 1 failed item forgotten", "item drop settle b c --yes")
		s.wantOutput("queue split settle 1 --dry-run", `^queue 1 of settle\$BASE: would be split as soon as its owner has drained it\nQueue 1 of 4 becomes queues 1, 5 of 8\. `)
		s.wantOutput("queue merge settle 1 --dry-run", `^queue 1 of settle\$BASE: would be merged as soon as the owners have drained the queues\nQueues 1, 3 become queue 1 of 2\. `)
		s.define("odd", center.Settings{Queues: 3, Splittable: true})
		s.wantError(2, "total is missing: the queue's total, 3, is odd and has no half: state a divisor of it", "queue merge odd 1")
		s.wantOutput("queue split settle 1", `^queue 1 of settle\$BASE: split as soon as its owner has drained it\n$`)
		s.wantOutput("queue split settle 1 --total 4 --dry-run", `^queue 1 of settle\$BASE: would be left as it is\n`)
		s.wantOutput("queue split settle 1 --total 4", `^queue 1 of settle\$BASE: left as it is\n$`)
		s.wantOutput("event list settle --kind RESIZING", `(?s) 1 +RESIZING .* the total 8 was requested instead of 4\n.* 1 +RESIZING .* the request for the total 8 was withdrawn\n`)
		s.wantOutput("item drop settle --all --dry-run --match a", `^all failed items of settle\$BASE that contain "a": would be forgotten\n`)
		s.wantOutput("item drop settle --all --yes --state dead", `0 failed items forgotten`)
		if got, note, _ := s.try("item drop settle --all --yes --match a"); got != "settle$BASE: 1 failed item forgotten\n" || !strings.Contains(note, "executed again") {
			t.Errorf("item drop --all: %q and %q, want that an item may come again", got, note)
		}

		me := cli.Actor()
		if !regexp.MustCompile(`^\w+@.+`).MatchString(me) {
			t.Errorf("the actor is %q", me)
		}
		for kind := range strings.FieldsSeq("PAUSED RESUMED DRAINING FORCED ADDED REMOVED ITEMS") {
			if count(t, s.c.DB(), "schedule_event WHERE kind = '"+kind+"' AND actor = '"+me+"'") == 0 {
				t.Errorf("no event %s by %s", kind, me)
			}
		}
		s.wantError(1, "delete settle$BASE: 2 live workers still serve it in BASE: stop all workers first", "task delete settle --yes")
		s.wantOutput("task delete regions --yes", `^regions: deleted\n$`)
		s.wantError(1, "regions: unknown task type", "task show regions")
	})
}

// Without a terminal, a command that deletes needs --yes.
func TestDeletingNeedsYes(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	s.wantError(2, "remove queue north of regions$BASE, whose items are then no longer processed: not confirmed: add --yes", "queue remove regions north")
	s.wantError(2, "delete task type regions in all environments, with its settings, queues, failed items and triggers: not confirmed: add --yes", "task delete regions")
	s.wantError(2, "delete the records of all failed items of settle$BASE: not confirmed: add --yes", "item drop settle --all")
	s.wantError(1, "settle$BASE: there is no such failed item: 999999 (see rota item list)", "item drop settle 999999")
	if n := count(t, s.c.DB(), "schedule_queue"); n != 6 {
		t.Errorf("%d queues are left", n)
	}
}

func TestOwnSignOfCommands(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	other, err := center.Open(t.Context(), anydb.URL(s.url), center.Options{OwnSign: "TEST"})
	s.must(err)
	defer other.Close()
	_, err = ops.New(other).Tasks().Define(t.Context(), "settle", center.Settings{Queues: 4})
	s.must(err)
	s.wantOutput("task pause settle --own-sign TEST", `^settle\$TEST: paused`)
	if n := count(t, s.c.DB(), "schedule_task_running WHERE paused AND own_sign = 'BASE'"); n != 0 {
		t.Error("another environment was paused")
	}
	if got := s.run("worker list --own-sign TEST -o csv"); strings.Count(got, "\n") != 1 {
		t.Errorf("servers of another environment: %s", got)
	}
}

// fencedTx begins a transaction that a server has fenced for queue 0 of settle.
func fencedTx(t *testing.T, c *center.Center, uuid string) *sql.Tx {
	t.Helper()
	q := center.QueueEpoch{ID: "0"}
	if err := c.DB().QueryRowContext(t.Context(), "SELECT epoch FROM schedule_queue WHERE task_type = 'settle' AND queue_id = '0'").Scan(&q.Epoch); err != nil {
		t.Fatal(err)
	}
	ctx := c.Bind(t.Context(), center.Batch{Server: uuid, TaskType: "settle", Queue: q})
	tx, err := c.DB().BeginTx(ctx, nil)
	if err == nil {
		err = center.Fence(ctx, tx)
	}
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

// A dry run refuses another number of queues as the command does: the roster answers both.
func TestDryRunRefusesLikeTheRoster(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		s.define("orders", center.Settings{Queues: 4, Splittable: true})
		s.define("feed", center.Settings{Queues: 2})
		s.run("queue pin orders 1 zone=a")
		s.exec("UPDATE schedule_queue SET cursor_value = '17' WHERE task_type = 'feed' AND queue_id = '0'")
		for _, more := range []string{" --yes", " --dry-run"} {
			s.wantError(1, "cannot merge while their setting differs", "queue merge orders 3"+more)
			s.wantError(2, "cannot merge while their setting differs", "task set orders queues=2"+more)
			s.wantError(2, "apply feed$BASE: the queues have cursors", "task set feed queues=3"+more)
		}
		s.run("queue merge orders 0 --dry-run")
		s.run("task set orders queues=8 --dry-run")
	})
}

// Of a file with a change that the roster refuses, nothing is written.
func TestRefusedFileWritesNothing(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		s.define("feed", center.Settings{Queues: 2})
		s.define("early", center.Settings{Queues: 2})
		s.exec("UPDATE schedule_queue SET cursor_value = '17' WHERE task_type = 'feed' AND queue_id = '0'")
		writeFile(t, filepath.Join(s.dir, "rota.yaml"),
			"tasks:\n  early: {queues: 2, fetch_number: 77}\n  feed: {queues: 3}\n  new: {queues: 1}\n")
		for _, more := range []string{" --yes", " --dry-run"} {
			s.wantError(1, "apply feed$BASE: the queues have cursors", "task apply -f rota.yaml"+more)
		}
		s.wantError(1, "new: unknown task type", "task show new")
		if stdout := s.run("task show early -o yaml"); strings.Contains(stdout, "77") {
			t.Errorf("a setting of the file was written:\n%s", stdout)
		}
	})
}

// What a queue cannot become is refused before anything is asked or written, and a dry run says the same.
func TestQueueThatStays(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		s.serve("regions", "web3:3:00000004")
		s.exec("UPDATE schedule_queue SET queue_parameter = 'old' WHERE queue_id = 'south'")
		s.run("queue remove regions south --yes")
		const kept = `rota: add queue "south" to regions$BASE: the queue of that name is still there, and stays with its parameter, "old"`
		const last = `rota: remove queue "north" of regions$BASE: it is the last one`
		for _, more := range []string{" --yes", " --dry-run"} {
			s.wantError(1, kept, "queue add regions south --parameter new"+more)
			s.wantError(1, last, "queue remove regions north"+more)
		}
		s.wantOutput("queue add regions south --parameter old", `^queue south of regions\$BASE: added\n$`)
		s.run("queue remove regions north --yes --dry-run")
	})
}
