package runs_test

import (
	"fmt"
	"regexp"
	"sync"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
)

// BenchmarkFire measures how four workers fire 1,000 triggers that are due at the same time, for one task type or for
// ten: they tick until nothing is due. Each trigger must fire once.
func BenchmarkFire(b *testing.B) {
	for _, kind := range []string{testdb.Postgres, testdb.MySQL, testdb.SQLite} {
		for _, targets := range []int{1, 10} {
			b.Run(fmt.Sprintf("%s/targets=%d", kind, targets), func(b *testing.B) { newFireBench(b, kind, targets).run() })
		}
	}
}

const benchTriggers, benchWorkers = 1_000, 4

type fireBench struct {
	*testing.B
	tasks   []string
	workers []*center.Center
	listen  func(f func()) []byte // runs f and returns what the workers send; nothing except on PostgreSQL
}

func newFireBench(b *testing.B, kind string, targets int) *fireBench {
	url := testdb.URL(b, kind)
	f := &fireBench{B: b, listen: func(do func()) []byte { do(); return nil }}
	if kind == testdb.Postgres {
		through, proxy := testdb.Through(b, url)
		url, f.listen = through, proxy.Listen
	}
	for i := range targets {
		f.tasks = append(f.tasks, fmt.Sprintf("task%d", i))
	}
	for range benchWorkers {
		f.workers = append(f.workers, centertest.Open(b, url, center.Options{}))
	}
	defineRunTasks(b, f.workers[0], f.tasks...)
	defineTriggers(b, f.workers[0], benchTriggers, f.tasks...)
	return f
}

func (f *fireBench) run() {
	statements, fired := 0, 0
	for f.Loop() {
		f.StopTimer()
		centertest.Exec(f, f.workers[0], `DELETE FROM schedule_run`, `UPDATE schedule_trigger SET fires = 0`)
		makeDue(f, f.workers[0])
		f.StartTimer()
		sent := f.listen(f.fireAll)
		f.StopTimer()
		statements += len(sentStatement.FindAllIndex(sent, -1))
		fired += benchTriggers
		f.checkFires()
		f.StartTimer()
	}
	f.ReportMetric(float64(f.Elapsed().Microseconds())/float64(fired), "µs/firing")
	if statements > 0 {
		f.ReportMetric(float64(statements)/float64(fired), "statements/firing")
	}
}

// checkFires checks that each trigger has made one run.
func (f *fireBench) checkFires() {
	f.Helper()
	var total, triggers int
	must(f, f.workers[0].DB().QueryRowContext(f.Context(), `SELECT COUNT(trigger_name), COUNT(DISTINCT trigger_name)
		FROM schedule_run`).Scan(&total, &triggers))
	if total != benchTriggers || triggers != benchTriggers {
		f.Fatalf("runs: got %d of %d triggers, want one of each of %d", total, triggers, benchTriggers)
	}
}

// fireAll ticks in all workers, for all task types, until nothing is due. Each worker begins with another task type.
func (f *fireBench) fireAll() {
	var all sync.WaitGroup
	for i, c := range f.workers {
		all.Go(func() {
			for j := range f.tasks {
				for more := true; more; {
					ticked, err := c.Engine().Scheduler.Tick(f.Context(), f.tasks[(i*len(f.tasks)/len(f.workers)+j)%len(f.tasks)])
					if err != nil {
						f.Error(err)
					}
					more = ticked.More
				}
			}
		})
	}
	all.Wait()
}

// sentStatement matches the beginning of a statement in the interleaved bytes of several connections. It does not match
// the whole text, because another connection's bytes may interrupt it.
var sentStatement = regexp.MustCompile(`(?s)P.{2,4}\x00\s*(SELECT|UPDATE|INSERT|DELETE)|Q.{2,4}(BEGIN|COMMIT|ROLLBACK)`)
