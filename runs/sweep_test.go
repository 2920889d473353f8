package runs_test

import (
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/runs"
)

// R7: between a server's read and its claim, the open run was cancelled and rerun. Its queue is PENDING again, but
// the run is not open: another run may be.
func TestClaimOfARunThatIsNoLongerOpen(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Open(t, url, center.Options{})
		defineRunTasks(t, c, "settle")
		id, _, err := c.Engine().Runs.Submit(t.Context(), "settle", runs.Submission{Key: "k"})
		must(t, err)
		_, err = c.Engine().Scheduler.Tick(t.Context(), "settle")
		must(t, err)
		must(t, c.Engine().Runs.Cancel(t.Context(), id, "test"))
		must(t, c.Engine().Runs.Rerun(t.Context(), id, "test"))
		claimed, err := c.Engine().Sweeps.ClaimStaleRead(t.Context(), "settle", "server", id,
			center.QueueEpoch{ID: "0", Epoch: 7})
		if err != nil || claimed {
			t.Fatalf("claim: got %t, %v, want false", claimed, err)
		}
	})
}
