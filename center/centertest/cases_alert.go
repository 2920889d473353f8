package centertest

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/ops"
)

// alerts tells the roster of conditions, as servers do.
type alerts struct {
	*fixture
	c *center.Center
}

// begins tells of a condition and checks whether an episode begins with that.
func (a alerts) begins(want bool, c condition.Condition, gap time.Duration, why string) {
	a.Helper()
	c.TaskType = a.task
	got, err := a.c.Roster().Alert(a.Context(), c, gap)
	a.must(err)
	if got != want {
		a.Errorf("alert %s (%s): an episode begins: %t, want %t", c.Kind, why, got, want)
	}
}

func (a alerts) ends(c condition.Condition, ago time.Duration) {
	a.Helper()
	c.TaskType = a.task
	a.must(a.c.Roster().EndAlert(a.Context(), c, ago))
}

// testAlert checks that one of many servers that see a condition raises the alert, and that a condition has one alert
// (S9, S16).
func testAlert(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 2})
	r.join("A")
	a := alerts{r, c}
	standby := condition.Condition{Kind: condition.Standby.Name, Text: "1 of 3 servers"}
	stalled := condition.Condition{Kind: condition.Stalled.Name, Server: r.uuid("A"), QueueID: "1", Text: "for 5m"}
	fetch := condition.Condition{Kind: "NO_FETCH", Text: "x"}
	for _, one := range []condition.Condition{standby, stalled, fetch} {
		a.begins(true, one, time.Hour, "for the first time")
		a.begins(false, one, time.Hour, "for the second time")
	}
	other := stalled
	other.QueueID = "0"
	a.begins(true, other, time.Hour, "of another queue")
	a.begins(true, condition.Condition{Kind: "NOXFETCH", Text: "x"}, time.Hour, "of another kind")
	about := condition.Condition{Kind: condition.RunFailed.Name, Subject: "run 50%_!", Text: "x"}
	same, elsewhere := about, about
	same.Text, elsewhere.Subject = "y", "run 50xx!"
	a.begins(true, about, time.Hour, "with a subject")
	a.begins(false, same, time.Hour, "with another text")
	a.begins(true, elsewhere, time.Hour, "with another subject")
	r.join("B")
	r.heartbeat("A") // SERVING; B has not sent a heartbeat
	servers, idle, queues, err := c.Roster().Standby(t.Context(), r.task)
	if err != nil || servers != 2 || idle != 1 || queues != 2 {
		t.Fatalf("%d servers, %d of them stand by, and %d queues; want 2, 1 and 2: %v", servers, idle, queues, err)
	}
}

// testEpisodes checks when a condition counts as another episode (S16).
func testEpisodes(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 1})
	r.join("A")
	a := alerts{r, c}
	failing := condition.Condition{Kind: condition.Failing.Name, Text: "x"}
	since := func(age time.Duration) condition.Condition {
		c := failing
		c.Since = time.Now().Add(-age)
		return c
	}
	a.begins(true, since(time.Hour), time.Minute, "for the first time")
	a.begins(false, since(0), time.Minute, "of a process that has started while it lasts")
	a.ends(failing, 10*time.Minute)
	a.begins(true, since(5*time.Minute), time.Minute, "that began after the end")
	a.ends(failing, 0)
	a.begins(false, since(time.Hour), time.Minute, "of a server for which it has never ended")
	a.ends(failing, 0)
	a.begins(true, failing, time.Hour, "after the end, without a beginning")
	a.begins(false, failing, time.Hour, "for the second time")

	r.exec("UPDATE schedule_event SET open_until = '2020-01-01 00:00:00.000000' WHERE task_type = '%s'", r.task)
	a.begins(true, since(time.Hour), time.Minute, "that no server has told for longer than the gap")
	a.begins(false, since(time.Hour), time.Hour, "for the second time")
	open, err := ops.New(c).Events().List(t.Context(), ops.EventFilter{TaskType: r.task, Kind: ops.EventAlert, Open: true}, 10)
	r.must(err)
	if len(open) != 1 || *open[0].Alert != condition.Failing.Name || open[0].Subject != nil || open[0].OpenUntil.Sub(open[0].EventTime) < 50*time.Minute {
		t.Errorf("open alerts: %+v, want one that the last telling has put off by an hour", open)
	}
	a.ends(condition.Condition{Kind: condition.Stalled.Name}, 0) // no server has told it

	killer := condition.Condition{Kind: condition.Killer.Name, Subject: "item 7", Text: "x"}
	a.begins(true, killer, 0, "without a gap")
	a.begins(true, killer, 0, "without a gap, for the second time")
}

// testCrashAlertEnds checks that a queue whose page was executed has a new episode when its owners crash again (S14, S16).
func testCrashAlertEnds(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 2})
	r.join("A")
	a := alerts{r, c}
	crashes := func(queue string) condition.Condition {
		return condition.Condition{Kind: condition.Crashes.Name, QueueID: queue, Text: "x"}
	}
	r.exec("UPDATE schedule_queue SET crash_count = 3 WHERE task_type = '%s'", r.task)
	a.begins(true, crashes("0"), time.Hour, "for the first time")
	a.begins(true, crashes("1"), time.Hour, "of another queue")
	r.must(c.Roster().Server(r.task, r.uuid("A")).ResetCrashes(t.Context(), []center.QueueEpoch{{ID: "0", Epoch: r.epoch("0")}}))
	a.begins(true, crashes("0"), time.Hour, "after a page was executed")
	a.begins(false, crashes("1"), time.Hour, "that lasts")
}
