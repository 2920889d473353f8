package runs_test

import (
	"errors"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
)

// R7: a server reads the candidates of an open run. Before it claims, an operator cancels and reruns the run: its queue is
// PENDING again, but the run is not open, and another run may be.
func TestClaimOfARunThatIsNoLongerOpen(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Open(t, url, center.Options{})
		runRoster(t, c, "settle")
		id, _, err := c.Engine().Runs.Submit(t.Context(), "settle", "k", "")
		if err == nil {
			_, err = c.Engine().Scheduler.Tick(t.Context(), "settle")
		}
		err = errors.Join(err, c.Engine().Runs.Cancel(t.Context(), id, "test"), c.Engine().Runs.Rerun(t.Context(), id, "test"))
		claimed, errClaim := c.Engine().Sweeps.ClaimAsReadBefore(t.Context(), "settle", "server", id, center.QueueEpoch{ID: "0", Epoch: 7})
		if err := errors.Join(err, errClaim); err != nil || claimed {
			t.Fatalf("claimed: %t, %v", claimed, err)
		}
	})
}
