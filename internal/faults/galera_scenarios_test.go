//go:build linux

package faults

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"sync"
	"time"

	"github.com/dutyrota/rota/internal/testdb"
)

// galeraScenarios have a cluster of three MariaDB servers, which all accept writes. A balancer leads each connection
// of a worker to the next node. They are skipped where Galera is not installed.
var galeraScenarios = []scenario{
	{name: "galera-nodes-lag", play: nodesLag, kinds: galeraKinds, galera: true, slow: true},
	{name: "galera-node-freezes", play: nodeFreezes, kinds: galeraKinds, galera: true, slow: true},
	{name: "galera-node-dies", play: nodeDies, kinds: galeraKinds, galera: true, slow: true},
}

var galeraKinds = []string{testdb.MariaDB}

// nodesLag: large transactions keep the nodes behind each other, while a worker dies and others start and leave.
func nodesLag(s *stage) {
	s.exec(`CREATE TABLE ballast (id BIGINT NOT NULL PRIMARY KEY, n INT NOT NULL DEFAULT 0)`,
		`INSERT INTO ballast (id) SELECT seq FROM seq_1_to_5000`)
	ctx, cancel := context.WithCancel(s.t.Context())
	var lagging sync.WaitGroup
	defer lagging.Wait()
	defer cancel()
	lagging.Go(func() {
		for ctx.Err() == nil {
			_, _ = s.c.DB().ExecContext(ctx, `UPDATE ballast SET n = n + 1`) // a conflict with another node does no harm
		}
	})
	s.works(100)
	kill(s)
	for _, w := range s.live() {
		s.start(1)
		s.leave(w)
	}
	s.works(20)
}

// nodeFreezes: a node is frozen for longer than reply_timeout, which is a minute on a cluster. It still takes
// connections. Each queue goes on over the other nodes while the node is frozen. The balancer may lead several
// connections of a worker in a row to the frozen node: then its heartbeats are late, and it expires.
func nodeFreezes(s *stage) {
	node := s.nodes[s.IntN(len(s.nodes))]
	from := time.Now()
	s.must(node.Freeze())
	s.sleep(75 * time.Second)
	s.eachQueueGoesOn()
	s.must(node.Thaw())
	s.awaitNodes()
	for _, w := range s.live() {
		s.addWindow(w, Silence, from)
	}
	s.works(50)
	s.awaitBalance()
}

// awaitNodes waits until all nodes are in the cluster and up to date, as each of them says: one that was frozen says so
// for a moment although the others have gone on without it. Until it has joined again it refuses all statements, and the
// reads of the history would fail.
func (s *stage) awaitNodes() {
	s.t.Helper()
	for _, node := range s.nodes {
		u, err := url.Parse(node.URL())
		s.must(err)
		db, err := sql.Open("mysql", u.User.Username()+"@tcp("+u.Host+")/")
		s.must(err)
		defer db.Close()
		s.until("the node is in the cluster again", func() bool {
			var members, synced bool
			err := db.QueryRowContext(s.t.Context(), `SELECT
				MAX(variable_name = 'WSREP_CLUSTER_SIZE' AND variable_value = ?),
				MAX(variable_name = 'WSREP_LOCAL_STATE_COMMENT' AND variable_value = 'Synced')
				FROM information_schema.global_status`, len(s.nodes)).Scan(&members, &synced)
			return err == nil && members && synced
		})
	}
}

// nodeDies: a node dies, the others go on without it, and it comes back.
func nodeDies(s *stage) {
	for range 2 {
		node := s.nodes[s.IntN(len(s.nodes))]
		s.killServers(node)
		s.works(50)
		s.start(1)
		s.leave(s.live()[0])
		s.must(node.Start())
		s.works(50)
		s.awaitBalance()
	}
}

// killServers kills servers, and waits until the others take writes.
func (s *stage) killServers(servers ...*testdb.Server) {
	s.t.Helper()
	from := time.Now()
	for _, server := range servers {
		s.must(server.Kill())
	}
	s.awaitWrites(from)
}

// awaitWrites waits until the database takes writes, which it may not since a moment. The window of trouble ends with the
// last write that it refused: a worker can be faster than the scenario.
func (s *stage) awaitWrites(from time.Time) {
	s.t.Helper()
	refused := from
	s.until("the database takes writes", func() bool {
		at := time.Now()
		_, err := s.c.DB().ExecContext(s.t.Context(), `UPDATE cures SET id = id + 1`)
		if err != nil {
			refused = at
		}
		return err == nil
	})
	s.windows = append(s.windows, Window{Kind: Partition, From: from, To: refused})
}

// crashAll kills all servers of a cluster, and starts them together: a cluster waits for its members.
func (s *stage) crashAll() {
	s.t.Helper()
	from := time.Now()
	for _, node := range s.nodes {
		s.must(node.Kill())
	}
	s.addWindow(nil, Partition, from)
	errs := make([]error, len(s.nodes))
	var starting sync.WaitGroup
	for i, node := range s.nodes {
		starting.Go(func() { errs[i] = node.Start() })
	}
	starting.Wait()
	s.must(errors.Join(errs...))
}
