package manager_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/schema"
)

// hostileValues are what no program writes, as SQL. Zero is in the bounds of most numbers.
var hostileValues = map[schema.Kind][]string{
	schema.Text:     {"''", `'{"=,;'`},
	schema.Number:   {"0", "-1", "9223372036854775807", "'many'"},
	schema.Fraction: {"-1e300", "1e300"},
	schema.Flag:     {"2", "'yes'"},
	schema.Time:     {"'soon'", "'infinity'", "'9999-12-31 23:59:59.000000'"},
}

// S13: a process serves a healthy task type beside others, each of which has something hostile in its rows. The healthy
// one never stands still, and a process that starts then serves it, too. A short test writes one value into each column.
func TestHostileRowsStopNoOtherTask(t *testing.T) {
	racetest.Skip(t)
	for _, table := range []string{"schedule_task_type", "schedule_task_running", "schedule_server", "schedule_queue"} {
		t.Run(table, func(t *testing.T) { inBubble(t, func(cl *cluster) { cl.workBesideHostileRows(table) }) })
	}
}

func (cl *cluster) workBesideHostileRows(table string) {
	edits := hostileEdits(table)
	tasks := []manager.Task{manager.Serve("healthy", &work{cl: cl, name: "healthy", takes: 100 * time.Millisecond}, fast)}
	for name := range edits {
		tasks = append(tasks, manager.Serve(name, idle{}, manager.Settings{Queues: 1}))
	}
	start := func() *worker {
		m, err := manager.New(cl.c, manager.Config{Grace: time.Second, Logger: cl.logger()}, tasks...)
		if err != nil {
			cl.Fatal(err)
		}
		defer time.Sleep(20 * time.Second)
		return cl.run(m)
	}
	w := start()
	cl.exec("PRAGMA ignore_check_constraints = ON") // of the one connection
	for name, edit := range edits {
		cl.exec(edit + " WHERE task_type = '" + name + "'")
	}
	cl.exec("UPDATE schedule_task_type SET version = version + 1 WHERE typeof(version) = 'integer' AND version < 1000")
	cl.expectSteady("healthy", 40)
	w.stop()
	<-w.done // it may say that the hostile task types have not left
	w = start()
	cl.expectSteady("healthy", 10)
	w.stop()
	<-w.done
}

// expectSteady expects that a dealer executes about 50 items in each of the next seconds.
func (cl *cluster) expectSteady(name string, seconds int) {
	cl.Helper()
	for second := range seconds {
		before := cl.executed(name)
		time.Sleep(time.Second)
		if n := cl.executed(name) - before; n < 30 {
			cl.Fatalf("%d items of the task type %s in second %d, want about 50", n, name, second)
		}
	}
}

// hostileEdits returns an edit of the row for each task type with something hostile, by the name of the task type.
func hostileEdits(table string) map[string]string {
	edits := map[string]string{}
	for n, column := range schema.Columns() {
		if column.Table != table || column.Key {
			continue
		}
		values := hostileValues[column.Kind]
		if testing.Short() {
			values = values[n%len(values):][:1]
		}
		for i, value := range values {
			edits[fmt.Sprintf("%s%d", column.Name, i)] = fmt.Sprintf("UPDATE %s SET %s = %s", table, column.Name, value)
		}
	}
	return edits
}
