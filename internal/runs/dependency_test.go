package runs_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/schema"
)

// R5: two operators each define one half of a cycle at the same time. A third transaction blocks both until both have read
// the dependencies or wait for the lock.
func TestCycleDefinedByTwo(t *testing.T) {
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
		many := one.Dialect() != schema.SQLite // SQLite has one writer: the second operator waits before it reads
		if many {
			if _, err := third.ExecContext(t.Context(), `INSERT INTO schedule_task_after (task_type, upstream, rule) VALUES ('a', 'b', 'SUCCESS'), ('b', 'a', 'SUCCESS')`); err != nil {
				t.Fatal(err)
			}
		}
		var both sync.WaitGroup
		var errA, errB error
		both.Go(func() { errA = one.Engine().Dependencies.Define(t.Context(), "a", center.After{Upstream: "b"}) })
		both.Go(func() { errB = two.Engine().Dependencies.Define(t.Context(), "b", center.After{Upstream: "a"}) })
		if many {
			for deadline := time.Now().Add(time.Minute); testdb.Waiting(t, url, one.DB()) < 2; time.Sleep(150 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("the two transactions do not both wait")
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
