package center_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/schema"
)

// runRoster is task types of mode RUN with one queue each, owned by "server".
func runRoster(t testing.TB, c *center.Center, tasks ...string) {
	t.Helper()
	for _, task := range tasks {
		if _, err := c.Tasks().Define(t.Context(), task, center.Settings{Mode: center.ModeRun, Queues: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.DB().ExecContext(t.Context(), `UPDATE schedule_queue SET cur_server = 'server', epoch = 7`); err != nil {
		t.Fatal(err)
	}
}

// R7: a run that was open when its queues were looked for was cancelled and rerun since. Its queue is PENDING again,
// but the run is not open: another one may be.
func TestClaimOfARunThatIsNoLongerOpen(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Open(t, url, center.Options{})
		runRoster(t, c, "settle")
		id, err := c.Engine().Submit(t.Context(), "settle", "k", "")
		if err == nil {
			_, err = c.Engine().Tick(t.Context(), "settle")
		}
		err = errors.Join(err, c.Engine().CancelRun(t.Context(), id, "test"), c.Engine().Rerun(t.Context(), id, "test"))
		claimed, errClaim := c.ClaimAsReadBefore(t.Context(), "settle", "server", id, center.QueueEpoch{ID: "0", Epoch: 7})
		if err := errors.Join(err, errClaim); err != nil || claimed {
			t.Fatalf("claimed: %t, %v", claimed, err)
		}
	})
}

// R2: a trigger that was edited by hand while it fires is read again.
func TestTriggerEditedWhileItFires(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Open(t, url, center.Options{})
		runRoster(t, c, "settle")
		defineTriggers(t, c, 2, "settle")
		if err := c.FireEdited(t.Context(), "settle"); !errors.Is(err, sqldb.ErrRaced) {
			t.Fatal(err)
		}
	})
}

// R5: two who draw the two halves of a cycle at once. A third lets nobody write before both have looked, or wait to look.
func TestCycleDrawnByTwo(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		one, two := centertest.Open(t, url, center.Options{}), centertest.Open(t, url, center.Options{})
		runRoster(t, one, "a", "b")
		third, err := one.DB().BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer third.Rollback()
		many := one.Dialect() != schema.SQLite // there only one can look
		if many {
			if _, err := third.ExecContext(t.Context(), `INSERT INTO schedule_task_after (task_type, upstream, rule) VALUES ('a', 'b', 'SUCCESS'), ('b', 'a', 'SUCCESS')`); err != nil {
				t.Fatal(err)
			}
		}
		var both sync.WaitGroup
		var errA, errB error
		both.Go(func() { errA = one.Engine().DefineAfter(t.Context(), "a", center.After{Upstream: "b"}) })
		both.Go(func() { errB = two.Engine().DefineAfter(t.Context(), "b", center.After{Upstream: "a"}) })
		if many {
			for deadline := time.Now().Add(time.Minute); testdb.Waiting(t, url, one.DB()) < 2; time.Sleep(150 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("they do not both wait")
				}
			}
		}
		if err := third.Rollback(); err != nil {
			t.Error(err)
		}
		both.Wait()
		if (errA == nil) == (errB == nil) || !strings.Contains(errors.Join(errA, errB).Error(), "a cycle: ") {
			t.Fatalf("%v; %v", errA, errB)
		}
	})
}

// A tick is one statement when nothing is due, and a claim, too; a page of triggers is a handful.
func TestStatementsOfRuns(t *testing.T) {
	t.Parallel()
	url, proxy := testdb.Through(t, testdb.URL(t, testdb.Postgres))
	c := centertest.Open(t, url, center.Options{})
	runRoster(t, c, "settle")
	for i := range 50 {
		if _, err := c.Engine().Submit(t.Context(), "settle", fmt.Sprint(i), ""); err != nil {
			t.Fatal(err)
		}
	}
	tick := func() {
		if _, err := c.Engine().Tick(t.Context(), "settle"); err != nil {
			t.Error(err)
		}
	}
	tick() // opens one; 49 wait
	claim := func() {
		if _, err := c.Engine().Claim(t.Context(), "settle", "server", []center.QueueEpoch{{ID: "0", Epoch: 6}}, 1); err != nil {
			t.Error(err)
		}
	}
	sent := map[string][]string{"tick": statementsOf(proxy.Listen(tick)), "claim": statementsOf(proxy.Listen(claim))}
	if n := len(sent["tick"]); n != 1 {
		t.Errorf("a tick with nothing to do takes %d statements:\n%s", n, strings.Join(sent["tick"], "\n"))
	}
	defineTriggers(t, c, 100, "settle")
	sent["fire"] = statementsOf(proxy.Listen(tick))
	if n := len(sent["fire"]); n > 25 {
		t.Errorf("100 triggers take %d statements:\n%s", n, strings.Join(sent["fire"], "\n"))
	}
	t.Logf("100 triggers take %d statements", len(sent["fire"]))
}

// defineTriggers makes triggers that are all due at one instant which has just passed.
func defineTriggers(t testing.TB, c *center.Center, n int, tasks ...string) {
	t.Helper()
	for i := range n {
		_, err := c.Engine().DefineTrigger(t.Context(), center.Trigger{
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

// BenchmarkFire is 1,000 triggers that are due in one second, for one task type or for ten, and four workers that
// tick until nothing is due. Each fires once. On PostgreSQL the statements are counted, on their way.
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

// fireAll ticks in all workers, for all task types, until nothing is due.
func fireAll(b *testing.B, centers []*center.Center, tasks []string) {
	var all sync.WaitGroup
	for i, c := range centers {
		all.Go(func() {
			for j := range tasks {
				for more := true; more; {
					ticked, err := c.Engine().Tick(b.Context(), tasks[(i*len(tasks)/len(centers)+j)%len(tasks)])
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

// sentStatement finds statements in what several connections have sent through each other. A text that is cut in two by
// another connection's is found by its beginning.
var sentStatement = regexp.MustCompile(`(?s)P.{2,4}\x00\s*(SELECT|UPDATE|INSERT|DELETE)|Q.{2,4}(BEGIN|COMMIT|ROLLBACK)`)
