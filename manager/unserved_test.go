package manager_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/logtest"
	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/manager"
)

// S4: a task type whose workers are gone has no server of its own that can raise an alert. The servers of another task
// type raise it once, until a worker serves the task type or an operator pauses it. They raise none after an
// outage, when all servers look silent.
func TestTaskTypeWithoutWorkersRaisesAlert(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		alerts := new(alertLog)
		logger, log := logtest.New(slog.LevelWarn)
		slow := manager.Settings{Queues: 2, SleepTimeInterval: time.Minute, HeartbeatInterval: 10 * time.Second, JudgeDeadInterval: 50 * time.Second} // few heartbeats in hours
		serve := func(taskType string) *worker {
			m, err := manager.New(cl.c, manager.Config{Alerter: alerts, Logger: logger}, manager.Serve(taskType, new(failer), slow))
			if err != nil {
				cl.Fatal(err)
			}
			return cl.run(m)
		}
		serve("settle")
		report := serve("report")
		time.Sleep(10 * time.Minute)
		block, err := cl.c.DB().BeginTx(cl.Context(), nil) // it holds the only connection: no other statement gets an answer
		if err != nil {
			cl.Fatal(err)
		}
		if _, err := block.ExecContext(cl.Context(), "CREATE TRIGGER late BEFORE UPDATE OF beat_count ON schedule_server WHEN NEW.task_type = 'report' BEGIN SELECT RAISE(ABORT, 'no heartbeat'); END"); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if err := block.Commit(); err != nil { // settle's heartbeats succeed now, and report's five seconds later
			cl.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		cl.exec("DROP TRIGGER late")
		want := func(n int, when string) {
			cl.Helper()
			if kinds := alerts.kinds(); len(kinds) != n || slices.ContainsFunc(kinds, func(kind string) bool { return kind != condition.Unserved.Name }) {
				cl.Fatalf("alerts %v %s, want %d of %s", kinds, when, n, condition.Unserved.Name)
			}
		}
		time.Sleep(10 * time.Minute)
		want(0, "while both are served")
		if err := cl.leave(report); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		want(1, "two minutes after the end of the last worker")
		if a := alerts.all[0]; a.TaskType != "report" || a.Server != "" || !strings.HasPrefix(a.Text, "no worker has served the task type for longer than judge_dead_interval") {
			cl.Fatalf("the alert is %+v, want one about report", a)
		}
		if lines := log.Lines(); !slices.ContainsFunc(lines, func(l logtest.Line) bool {
			return l.Fields["alert"] == condition.Unserved.Name && l.Fields["task_type"] == "report"
		}) {
			cl.Fatalf("the log is %v, want the alert with the task type report", lines)
		}
		var about string
		cl.scan("SELECT MAX(task_type) FROM schedule_event WHERE kind = 'ALERT'", &about)
		if about != "report" {
			cl.Fatalf("the event is about %s, want report", about)
		}
		time.Sleep(time.Hour + time.Minute)
		want(1, "an hour later")
		if err := cl.c.Roster().Operator("test").Pause(cl.Context(), "report", true); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(65 * time.Minute)
		want(1, "since the pause")
		if err := cl.c.Roster().Operator("test").Pause(cl.Context(), "report", false); err != nil {
			cl.Fatal(err)
		}
		report = serve("report")
		time.Sleep(30 * time.Minute)
		want(1, "since a worker serves it")
		if err := cl.leave(report); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		want(2, "after the end of the last worker within two hours")
	})
}
