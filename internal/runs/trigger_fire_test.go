package runs_test

import (
	"errors"
	"fmt"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
)

// R2: if an operator edits a trigger by hand while it fires, the transaction is repeated.
func TestTriggerEditedWhileItFires(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Open(t, url, center.Options{})
		runRoster(t, c, "settle")
		defineTriggers(t, c, 2, "settle")
		if err := c.Engine().Scheduler.FireEdited(t.Context(), "settle"); !errors.Is(err, sqldb.ErrRaced) {
			t.Fatal(err)
		}
	})
}

// defineTriggers makes triggers that are all due since one minute ago.
func defineTriggers(t testing.TB, c *center.Center, n int, tasks ...string) {
	t.Helper()
	for i := range n {
		_, err := c.Engine().Triggers.Define(t.Context(), center.Trigger{
			Name: fmt.Sprintf("t%04d", i), Target: tasks[i%len(tasks)], Kind: center.TriggerEvery, Expression: "1h", StartAt: time.Now().Add(-time.Minute),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	makeDue(t, c)
}

func makeDue(t testing.TB, c *center.Center) {
	t.Helper()
	if _, err := c.DB().ExecContext(t.Context(), `UPDATE schedule_trigger SET next_fire_at = start_at, status = 'ACTIVE'`); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkFire measures 1,000 triggers that are due at the same time, for one task type or for ten. Four workers tick until
// nothing is due, and each trigger fires once. On PostgreSQL a proxy counts the statements.
func BenchmarkFire(b *testing.B) {
	const triggers, workers = 1_000, 4
	for _, kind := range []string{testdb.Postgres, testdb.MySQL, testdb.SQLite} {
		for _, targets := range []int{1, 10} {
			b.Run(fmt.Sprintf("%s/targets=%d", kind, targets), func(b *testing.B) {
				url := testdb.URL(b, kind)
				listen := func(f func()) []byte { f(); return nil }
				if kind == testdb.Postgres {
					through, proxy := testdb.Through(b, url)
					url, listen = through, proxy.Listen
				}
				var tasks []string
				for i := range targets {
					tasks = append(tasks, fmt.Sprintf("task%d", i))
				}
				var centers []*center.Center
				for range workers {
					centers = append(centers, centertest.Open(b, url, center.Options{}))
				}
				runRoster(b, centers[0], tasks...)
				defineTriggers(b, centers[0], triggers, tasks...)
				statements, fired := 0, 0
				for b.Loop() {
					b.StopTimer()
					for _, query := range []string{`DELETE FROM schedule_run`, `UPDATE schedule_trigger SET fires = 0`} {
						if _, err := centers[0].DB().ExecContext(b.Context(), query); err != nil {
							b.Fatal(err)
						}
					}
					makeDue(b, centers[0])
					b.StartTimer()
					sent := listen(func() { fireAll(b, centers, tasks) })
					b.StopTimer()
					statements += len(sentStatement.FindAllIndex(sent, -1))
					var n, most int
					err := centers[0].DB().QueryRowContext(b.Context(), `SELECT SUM(fires), MAX(fires) FROM schedule_trigger`).Scan(&n, &most)
					if err != nil || n != triggers || most != 1 {
						b.Fatal(n, most, err)
					}
					fired += n
					b.StartTimer()
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(fired), "µs/firing")
				if statements > 0 {
					b.ReportMetric(float64(statements)/float64(fired), "statements/firing")
				}
			})
		}
	}
}

// fireAll makes all workers tick, for all task types, until nothing is due.
func fireAll(b *testing.B, centers []*center.Center, tasks []string) {
	var all sync.WaitGroup
	for i, c := range centers {
		all.Go(func() {
			for j := range tasks {
				for more := true; more; {
					ticked, err := c.Engine().Scheduler.Tick(b.Context(), tasks[(i*len(tasks)/len(centers)+j)%len(tasks)])
					if err != nil {
						b.Error(err)
					}
					more = ticked.More
				}
			}
		})
	}
	all.Wait()
}

// sentStatement matches the start of a statement in the interleaved bytes of several connections. The bytes of another
// connection may cut a statement in two; its start is still counted once.
var sentStatement = regexp.MustCompile(`(?s)P.{2,4}\x00\s*(SELECT|UPDATE|INSERT|DELETE)|Q.{2,4}(BEGIN|COMMIT|ROLLBACK)`)
