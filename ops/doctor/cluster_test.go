package doctor

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/sqldb"
)

// L8: clocks of nodes that are further apart than the limit are a problem, unless the round trip explains it.
func TestClocksOfNodes(t *testing.T) {
	t.Parallel()
	node := func(name string, ahead, trip time.Duration) nodeReading {
		return nodeReading{Node: sqldb.Node{Name: name, Size: 3}, ahead: ahead, error: trip / 2}
	}
	const ms = time.Millisecond
	for _, c := range []struct {
		nodes []nodeReading
		want  string
	}{
		{
			[]nodeReading{node("n1", time.Hour, ms), node("n2", time.Hour-40*ms, ms), node("n3", time.Hour, ms)},
			"OK the clocks of 3 of 3 nodes (n1, n2, n3) are within 40ms of each other; at most 1s is allowed",
		},
		{
			[]nodeReading{node("n1", 0, ms), node("n2", 4*time.Second, ms), node("n3", ms, ms)},
			"PROBLEM the clock of node n2 is 4s ahead of that of node n1, and at most 1s is allowed: workers are taken for dead although they are healthy",
		},
		{
			[]nodeReading{node("n1", 0, ms), node("n2", 1200*ms, 600*ms), node("n3", 0, ms)},
			"OK the clocks of 3 of 3 nodes (n1, n2, n3) are within 1.2s of each other; at most 1s is allowed",
		},
		{
			[]nodeReading{node("n2", 4*time.Second, ms)},
			"NOTE the connections lead to 1 of 3 nodes (n2); the clocks of the nodes must be within 1s of each other",
		},
	} {
		d := new(diagnosis)
		clusterCheck{d}.nodeClocks(c.nodes, time.Second)
		if got := d.findings[0].Status + " " + d.findings[0].Text; got != c.want {
			t.Errorf("%v:\n got %s\nwant %s", c.nodes, got, c.want)
		}
	}
	if got := clockLimit(center.Settings{HeartbeatInterval: 2 * time.Second, JudgeDeadInterval: 10 * time.Second}); got != time.Second {
		t.Errorf("limit %s, want half of the margin", got)
	}
}
