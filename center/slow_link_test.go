package center_test

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
)

// N3: a split into many queues, and their merge, are a few statements. With some for each queue they would take longer
// than a transaction may over a slow link, and the queues that wait for them would stand still.
func TestSplitAndMergeOverASlowLink(t *testing.T) {
	t.Parallel()
	direct := testdb.URL(t, testdb.Postgres)
	near := centertest.Open(t, direct, center.Options{})
	centertest.Define(t, near, "settle", center.Settings{Queues: 1, Splittable: true})
	url, proxy := testdb.Through(t, direct)
	far := centertest.Open(t, url, center.Options{})
	proxy.Delay(60 * time.Millisecond)
	for _, total := range []int{512, 1} {
		must(t, far.Roster().Operator("test").ResizeAll(t.Context(), "settle", total, 0))
		n, err := center.Column[int](t.Context(), near.DB(), `SELECT COUNT(*) FROM schedule_queue`)
		if must(t, err); n[0] != total {
			t.Errorf("%d queues, want %d", n[0], total)
		}
	}
}
