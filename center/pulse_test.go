package center_test

import (
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
)

// Each step of a run changes the pulse: workers take these steps without an event.
func TestPulseOfRuns(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		c := centertest.Open(t, url, center.Options{})
		last := center.Pulse{}
		changes := func(what string, want bool) {
			t.Helper()
			now, err := c.Pulse(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			now.Events = 0
			if (now != last) != want {
				t.Errorf("%s: the pulse changes: %t, want %t: %+v", what, now != last, want, now)
			}
			last = now
		}
		if _, err := c.Tasks().Define(t.Context(), "report", center.Settings{Queues: 2, Mode: center.ModeRun}); err != nil {
			t.Fatal(err)
		}
		changes("a task type is defined", true)
		id, _, err := c.Runs().Submit(t.Context(), "report", "k1", "")
		if err != nil {
			t.Fatal(err)
		}
		changes("a run is submitted", true)
		changes("nothing", false)
		if _, err := c.Engine().Scheduler.Tick(t.Context(), "report"); err != nil {
			t.Fatal(err)
		}
		changes("it is opened", true)
		if err := c.Runs().Cancel(t.Context(), id, "test"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Engine().Scheduler.Tick(t.Context(), "report"); err != nil {
			t.Fatal(err)
		}
		changes("it is cancelled", true)
	})
}
