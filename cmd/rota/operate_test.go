package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/testdb"
)

// What operators do is done, is told, and stands in the events with who did it.
func TestOperate(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newStage(t, url)
		state := func(uuid string) (state string) {
			s.must(s.c.DB().QueryRowContext(t.Context(), "SELECT state FROM schedule_server WHERE uuid = '"+uuid+"'").Scan(&state))
			return state
		}
		s.says("task pause settle", `^settle\$BASE: paused; `)
		s.says("task list", `(?m)^ settle +PAUSED`)
		s.says("task resume settle", `^settle\$BASE: goes on`)
		s.says("server pause web2:2", `^web2:2:00000002 \(settle\): paused; `)
		if got := state(web2); got != center.StatePaused {
			t.Errorf("web2 is %s", got)
		}
		s.says("server resume "+web2, `may have queues again`)
		s.says("server drain web1:1", `its 4 queues go to others`)
		if got := state(web1); got != center.StateDraining {
			t.Errorf("web1 is %s", got)
		}
		s.says("server drain web1:1 --force", `its 4 queues were taken away`)
		if n := count(t, s.c.DB(), "schedule_queue WHERE cur_server = '"+web2+"'"); n != 4 {
			t.Errorf("web2 has %d queues", n)
		}
		s.says("queue add regions west", `queue west added`)
		s.says("queue remove regions south --yes", `queue south goes`)
		s.says("queue list regions", `(?s)north.*west`)
		s.must(s.c.SaveFailedItems(t.Context(), "settle", []center.FailedItem{
			{Key: "a", QueueID: "0", State: center.ItemDead, Attempts: 3}, {Key: "b", QueueID: "0", State: center.ItemDead}, {Key: "c", QueueID: "0", State: center.ItemDead},
		}))
		s.says("item retry settle a", `1 item is to be tried again`)
		s.says("item list --state RETRY", `(?m) a +RETRY +0 `)
		s.says("item drop settle b --yes", `1 item is forgotten`)
		s.says("item retry settle --all", `2 items are to be tried again`)
		s.refused(1, "settle$BASE: 1 of 2 items have not failed; 1 is forgotten", "item drop settle b c --yes")
		s.says("item drop settle --all --yes", `1 item is forgotten`)

		who := actor()
		if !regexp.MustCompile(`^\w+@.+`).MatchString(who) {
			t.Errorf("the actor is %q", who)
		}
		for kind := range strings.FieldsSeq("PAUSED RESUMED DRAINING FORCED ADDED REMOVED ITEMS") {
			if count(t, s.c.DB(), "schedule_event WHERE kind = '"+kind+"' AND actor = '"+who+"'") == 0 {
				t.Errorf("no event %s by %s", kind, who)
			}
		}
		s.refused(1, "delete settle$BASE: servers that live serve it in own_sign BASE (2): stop them first", "task delete settle --yes")
		s.says("task delete regions --yes", `^regions: deleted\n$`)
		s.refused(1, "regions: unknown task type", "task show regions")
	})
}

// What deletes asks first, and without a terminal there is nobody to ask.
func TestDeletingWantsYes(t *testing.T) {
	t.Parallel()
	s := newStage(t, testdb.URL(t, testdb.SQLite))
	s.refused(2, "this will remove queue north of regions$BASE: its items are not processed any more: say --yes", "queue remove regions north")
	s.refused(2, "this will delete the task type regions in all environments, its settings, queues, failed items and triggers: say --yes", "task delete regions")
	s.refused(2, "this will delete the records of all failed items of settle: say --yes", "item drop settle --all")
	if n := count(t, s.c.DB(), "schedule_queue"); n != 6 {
		t.Errorf("%d queues are left", n)
	}
}

func TestOwnSignOfCommands(t *testing.T) {
	t.Parallel()
	s := newStage(t, testdb.URL(t, testdb.SQLite))
	other, err := center.Open(t.Context(), anydb.URL(s.url), center.Options{OwnSign: "TEST"})
	s.must(err)
	defer other.Close()
	_, err = other.Define(t.Context(), "settle", center.Settings{Queues: 4})
	s.must(err)
	s.says("task pause settle --own-sign TEST", `^settle\$TEST: paused`)
	if n := count(t, s.c.DB(), "schedule_task_running WHERE paused AND own_sign = 'BASE'"); n != 0 {
		t.Error("another environment was paused")
	}
	if got := s.run("server list --own-sign TEST -o csv"); strings.Count(got, "\n") != 1 {
		t.Errorf("servers of another environment: %s", got)
	}
}
