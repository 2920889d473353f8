package doctor

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/sqldb"
)

// clusterCheck checks a cluster whose nodes all accept writes.
type clusterCheck struct{ *diagnosis }

// nodeConnections is how many connections clusterCheck opens to find the nodes behind a balancer.
const nodeConnections = 9

// nodes reports what the roster does on a cluster whose nodes all accept writes, and compares the clocks of its nodes.
func (d clusterCheck) nodes(ctx context.Context) error {
	if !d.db.WriteFence {
		return nil
	}
	const hint = "let all workers write through one node where possible"
	const fence = "a Galera cluster: the fence writes its rows, so that the batches of a queue run one by one"
	const cluster = "cluster" // another subject than that of the finding about the database
	ask := d.db.Database.Node
	if ask == nil {
		d.note(condition.Database, hint, fence).Subject = cluster
		return nil
	}
	nodes, err := d.readNodes(ctx, ask)
	if err != nil {
		return err
	}
	note := d.note(condition.Database, hint, "%s; wsrep_sync_wait = %s on the connections of transactions and dealers, "+
		"so that they see what other nodes have committed; heartbeats do not wait", fence, nodes[0].SyncWait)
	note.Subject = cluster
	limit, err := d.nodeClockLimit(ctx)
	if err != nil {
		return err
	}
	d.nodeClocks(nodes, limit)
	return nil
}

// nodeReading is the answer of a node.
type nodeReading struct {
	sqldb.Node
	ahead time.Duration // how far its clock is ahead of this host's
	error time.Duration // the largest error of ahead
}

// readNodes asks the nodes behind several connections and returns them by name. It holds the connections until the
// end, so that a balancer gives it different nodes.
func (d clusterCheck) readNodes(ctx context.Context,
	ask func(context.Context, *sql.Conn) (sqldb.Node, error),
) ([]nodeReading, error) {
	nodes := map[string]nodeReading{}
	for range nodeConnections {
		conn, err := d.db.Dealers.Conn(ctx)
		if err != nil {
			return nil, fmt.Errorf("connect to a node: %w", err)
		}
		defer conn.Close()
		n, err := ask(ctx, conn)
		if err != nil {
			return nil, err
		}
		if nodes[n.Name], err = d.readNodeClock(ctx, conn, n); err != nil {
			return nil, err
		}
	}
	return slices.SortedFunc(maps.Values(nodes), func(a, b nodeReading) int { return cmp.Compare(a.Name, b.Name) }), nil
}

// readNodeClock compares this host's clock with a node's. The shortest of a few round trips has the smallest error.
func (d clusterCheck) readNodeClock(ctx context.Context, conn *sql.Conn, n sqldb.Node) (best nodeReading, err error) {
	for i := range 5 {
		before := time.Now()
		now, err := sqldb.Value[time.Time](ctx, d.db.On(conn), "SELECT {now}")
		if err != nil {
			return best, fmt.Errorf("ask node %s for the time: %w", n.Name, err)
		}
		trip := time.Since(before)
		if i == 0 || trip/2 < best.error {
			best = nodeReading{Node: n, ahead: now.Sub(before.Add(trip / 2)), error: trip / 2}
		}
	}
	return best, nil
}

// nodeClockLimit returns how far the clocks of nodes may be apart: half of the smallest margin of a lease (L8). A task
// type whose row of settings is gone is left to rosterCheck.
func (d clusterCheck) nodeClockLimit(ctx context.Context) (time.Duration, error) {
	tasks, err := d.c.Tasks().List(ctx, "")
	if err != nil {
		return 0, err
	}
	var limits []time.Duration
	for _, task := range tasks {
		s, err := d.c.Tasks().Settings(ctx, task.TaskType)
		switch {
		case errors.Is(err, center.ErrUnknownTask):
		case err != nil:
			return 0, err
		default:
			limits = append(limits, clockLimit(s))
		}
	}
	if len(limits) == 0 {
		return clockLimit(center.Settings{}.WithDefaults()), nil
	}
	return slices.Min(limits), nil
}

// clockLimit returns half of the margin of the lease (S5).
func clockLimit(s center.Settings) time.Duration {
	return max(s.HeartbeatInterval, s.JudgeDeadInterval*15/100) / 2
}

// nodeClocks compares the clocks of the nodes.
func (d clusterCheck) nodeClocks(nodes []nodeReading, limit time.Duration) {
	slowest := slices.MinFunc(nodes, func(a, b nodeReading) int { return cmp.Compare(a.ahead, b.ahead) })
	fastest := slices.MaxFunc(nodes, func(a, b nodeReading) int { return cmp.Compare(a.ahead, b.ahead) })
	apart := (fastest.ahead - slowest.ahead).Round(time.Millisecond)
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	seen := fmt.Sprintf("%d of %d nodes (%s)", len(nodes), nodes[0].Size, strings.Join(names, ", "))
	switch {
	case apart > limit+slowest.error+fastest.error:
		d.advise(condition.Clock, "synchronise the clocks of the nodes (NTP); until then let all workers write through one "+
			"node",
			"the clock of node %s is %s ahead of that of node %s, and at most %s is allowed: "+
				"workers are taken for dead although they are healthy", fastest.Name, apart, slowest.Name, limit)
	case len(nodes) < nodes[0].Size:
		d.note(condition.Clock, "compare the clocks of all nodes: run this command through the address of each node, "+
			"or through a balancer",
			"the connections lead to %s; the clocks of the nodes must be within %s of each other", seen, limit)
	default:
		d.ok(condition.Clock, "the clocks of %s are within %s of each other; at most %s is allowed", seen,
			max(apart, time.Millisecond), limit)
	}
}
