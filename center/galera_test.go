package center_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
)

// The suite passes on one node of a Galera cluster, and while each session may be on another node.
func TestConformanceOnGalera(t *testing.T) {
	if os.Getenv("ROTA_FAULTS") != "all" {
		t.Skip("takes minutes: make engine-galera runs it")
	}
	nodes := testdb.Galera(t)
	t.Run("node", func(t *testing.T) { centertest.Run(t, nodes[0].URL()) })
	t.Run("nodes", func(t *testing.T) {
		url, remove, err := testdb.Create(t.Context(), nodes[0].URL())
		must(t, err)
		t.Cleanup(func() { must(t, remove(context.Background())) })
		for _, node := range nodes[1:] { // a node that lags does not know the database, and refuses a connection to it
			_, err := openNode(t, node).DB().ExecContext(t.Context(), "SET STATEMENT wsrep_sync_wait = 1 FOR SELECT 1")
			must(t, err)
		}
		url, _ = testdb.Balanced(t, url, nodes[1].URL(), nodes[2].URL())
		centertest.RunOnNodes(t, url)
	})
}

// F3: a node of Galera that lags does not know yet that a queue has another owner. It lets a transaction commit whose
// fence has only read the row, and not one whose fence has written it, because the cluster compares what is written.
func TestAFenceOnANodeOfGaleraThatLags(t *testing.T) {
	t.Parallel()
	if os.Getenv("ROTA_FAULTS") == "" {
		t.Skip("takes a cluster of its own: make engine-galera runs it")
	}
	nodes := testdb.Galera(t)
	near, far := openNode(t, nodes[0]), openNode(t, nodes[1])
	centertest.Define(t, near, "settle", center.Settings{Queues: 1})
	owner := center.Batch{Server: "web1:1:00000001", TaskType: "settle", Queue: center.QueueEpoch{ID: "0"}}
	_, err := near.Roster().Register(t.Context(), roster.ServerInfo{
		UUID: owner.Server, TaskType: "settle", Host: "web1", JudgeDeadInterval: time.Minute,
	})
	must(t, err)
	_, err = near.Roster().Planner("settle", owner.Server).Rebalance(t.Context(), roster.RebalanceOptions{})
	must(t, err)
	must(t, near.DB().QueryRow(`SELECT epoch FROM schedule_queue`).Scan(&owner.Queue.Epoch))
	centertest.Exec(t, near,
		`CREATE TABLE items (id BIGINT NOT NULL PRIMARY KEY, n INT NOT NULL)`,
		`INSERT INTO items VALUES (1, 0)`,
		`CREATE TABLE ballast (id BIGINT NOT NULL PRIMARY KEY, n INT NOT NULL)`,
		`INSERT INTO ballast SELECT seq, 0 FROM seq_1_to_200000`)

	ctx := near.Bind(t.Context(), owner)
	tx, err := near.DB().BeginTx(ctx, nil)
	must(t, err)
	defer func() { _ = tx.Rollback() }() // fails after the commit
	must(t, center.Fence(ctx, tx))
	_, err = tx.ExecContext(ctx, `UPDATE items SET n = n + 1`)
	must(t, err)
	// The near node applies the new owner behind the ballast, which takes it about as long as the far one.
	centertest.Exec(t, far,
		`UPDATE ballast SET n = 1`,
		`UPDATE schedule_queue SET cur_server = 'web2:2:00000002', epoch = epoch + 1`)
	if err := tx.Commit(); err == nil {
		t.Error("the near node has committed for the former owner, behind the change of owner")
	}
	var n int
	if must(t, near.DB().QueryRow(`SELECT n FROM items`).Scan(&n)); n != 0 { // waits until the node has caught up
		t.Errorf("the row has %d effects of the former owner, want none", n)
	}
}

// openNode opens the roster on one node.
func openNode(t *testing.T, node *testdb.Server) *center.Center {
	t.Helper()
	c, err := center.Open(t.Context(), anydb.URL(node.URL()), center.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}
