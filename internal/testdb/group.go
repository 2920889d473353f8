package testdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// replicating are the options of each MySQL server that replicates.
const replicating = "--log-bin=binlog --gtid-mode=ON --enforce-gtid-consistency=ON --sync-binlog=1 --server-id=%d"

// startReplicating starts the i-th MySQL server of several, with more options.
func startReplicating(t testing.TB, i int, options ...string) *Server {
	t.Helper()
	serve := append([]string{fmt.Sprintf(replicating, i+1)}, options...)
	server, err := start(planOf(MySQL, "SERVE="+strings.Join(serve, " ")))
	return kept(t, server, err)
}

// SemiSync returns two MySQL servers. Each commit on the source waits until the replica has it, however long that takes.
// The replica takes no writes before [Promote]. They end with the test.
func SemiSync(t testing.TB) (source, replica *Server) {
	t.Helper()
	skipUnwanted(t, MySQL)
	plugins := []string{"--plugin-load-add=semisync_source.so", "--plugin-load-add=semisync_replica.so"}
	source = startReplicating(t, 0, append(plugins, "--rpl-semi-sync-source-enabled=ON",
		"--rpl-semi-sync-source-timeout=4294967295")...)
	replica = startReplicating(t, 1, append(plugins, "--rpl-semi-sync-replica-enabled=ON", "--super-read-only=ON")...)
	u, err := url.Parse(source.URL())
	if err != nil {
		t.Fatal(err)
	}
	must(t, run(replica, "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = "+u.Port()+
		", SOURCE_USER = 'root', SOURCE_AUTO_POSITION = 1, SOURCE_CONNECT_RETRY = 1, GET_SOURCE_PUBLIC_KEY = 1", "START REPLICA"))
	await(t, source, "a semi-synchronous replica", `SELECT variable_value FROM performance_schema.global_status
		WHERE variable_name = 'Rpl_semi_sync_source_clients'`, "1")
	return source, replica
}

// Promote makes a replica of [SemiSync] the server that takes writes, after what it has received.
func Promote(replica *Server) error {
	return run(replica, "STOP REPLICA IO_THREAD", `SELECT WAIT_FOR_EXECUTED_GTID_SET((SELECT received_transaction_set
		FROM performance_schema.replication_connection_status WHERE channel_name = ''))`,
		"STOP REPLICA", "RESET REPLICA ALL", "SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF")
}

// Group is three MySQL servers of a Group Replication. One of them is the primary, and the others take no writes.
type Group struct{ Nodes []*Server }

// GroupReplication returns a group on this host, and the URL of a balancer that leads to its primary. They end with the
// test.
func GroupReplication(t testing.TB) (g *Group, url string, balancer *Proxy) {
	t.Helper()
	g = startGroup(t, 3, true)
	var urls []string
	for _, node := range g.Nodes {
		urls = append(urls, node.URL())
	}
	url, balancer = Through(t, urls[0])
	// Many connections come at once after a fail-over, one after the other: as a router, the balancer asks now and then.
	var primary *Server
	var asked time.Time
	balancer.targets.serves = func(host string) bool {
		if time.Since(asked) > time.Second {
			primary, asked = g.Primary(), time.Now()
		}
		return primary != nil && strings.Contains(primary.URL(), host)
	}
	must(t, balancer.Redirect(urls...))
	return g, url, balancer
}

// SeveralPrimaries returns a group of two servers that both take writes. They end with the test.
func SeveralPrimaries(t testing.TB) *Group {
	t.Helper()
	return startGroup(t, 2, false)
}

// startGroup starts the servers of a group, and returns when all are members.
func startGroup(t testing.TB, nodes int, singlePrimary bool) *Group {
	t.Helper()
	skipUnwanted(t, MySQL)
	members := make([]string, nodes)
	for i := range members {
		port, err := freePort()
		must(t, err)
		members[i] = fmt.Sprintf("127.0.0.1:%d", port)
	}
	g := &Group{}
	for i, member := range members {
		node := startReplicating(t, i, groupOptions(member, members, singlePrimary)...)
		must(t, run(node, "CHANGE REPLICATION SOURCE TO SOURCE_USER = 'root' FOR CHANNEL 'group_replication_recovery'"))
		if i == 0 {
			must(t, bootstrap(node))
		} else {
			must(t, run(node, "START GROUP_REPLICATION"))
		}
		g.Nodes = append(g.Nodes, node)
	}
	for deadline := time.Now().Add(2 * time.Minute); !g.Whole(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the group is not whole after two minutes")
		}
	}
	return g
}

// groupOptions returns the options of a member of a group. A member that is silent is expelled after five seconds.
func groupOptions(member string, members []string, singlePrimary bool) []string {
	single := map[bool]string{true: "ON", false: "OFF"}[singlePrimary]
	return []string{
		"--plugin-load-add=group_replication.so", "--report-host=127.0.0.1", "--relay-log-recovery=ON",
		"--group-replication-group-name=5e5b8f3e-7a50-4c5c-9b3e-6d6f7c0a9f11", "--group-replication-start-on-boot=OFF",
		"--group-replication-local-address=" + member, "--group-replication-group-seeds=" + strings.Join(members, ","),
		"--group-replication-ip-allowlist=127.0.0.1", "--group-replication-recovery-get-public-key=ON",
		"--group-replication-member-expel-timeout=0", "--replica-parallel-workers=1",
		"--group-replication-single-primary-mode=" + single,
		"--group-replication-enforce-update-everywhere-checks=" + map[bool]string{true: "OFF", false: "ON"}[singlePrimary],
	}
}

// bootstrap makes a server the first of a group.
func bootstrap(node *Server) error {
	return run(node, "SET GLOBAL group_replication_bootstrap_group = ON", "START GROUP_REPLICATION",
		"SET GLOBAL group_replication_bootstrap_group = OFF")
}

// Join makes a server that has started again a member of its group. A server that is a member stays one.
func (g *Group) Join(node *Server) error {
	if state, _ := answerOf(node, ownState); state == "ONLINE" || state == "RECOVERING" {
		return nil
	}
	return run(node, "STOP GROUP_REPLICATION", "START GROUP_REPLICATION")
}

const ownState = `SELECT member_state FROM performance_schema.replication_group_members WHERE member_id = @@server_uuid`

// Primary returns the node that is the primary according to itself, or nil while there is none. It asks all nodes at
// once, because one may be frozen.
func (g *Group) Primary() *Server {
	leads := make([]bool, len(g.Nodes))
	var asking sync.WaitGroup
	for i, node := range g.Nodes {
		asking.Go(func() { leads[i] = leadsGroup(node) })
	}
	asking.Wait()
	if i := slices.Index(leads, true); i >= 0 {
		return g.Nodes[i]
	}
	return nil
}

// Whole reports whether all nodes say that all of them are online.
func (g *Group) Whole() bool {
	for _, node := range g.Nodes {
		n, _ := answerOf(node, `SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE member_state = 'ONLINE'`)
		if n != fmt.Sprint(len(g.Nodes)) {
			return false
		}
	}
	return true
}

// leadsGroup reports whether a node is the primary and takes writes: one that has lost the others is not.
func leadsGroup(node *Server) bool {
	leads, _ := answerOf(node, `SELECT MAX(member_id = @@server_uuid AND member_state = 'ONLINE' AND member_role = 'PRIMARY')
		AND 2 * SUM(member_state = 'ONLINE') > COUNT(*) FROM performance_schema.replication_group_members`)
	return leads == "1"
}

// answerOf returns the answer of a server to a query, within a second: a server may be frozen.
func answerOf(server *Server, query string) (text string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err = withServer(server.URL(), func(db *sql.DB) error { return db.QueryRowContext(ctx, query).Scan(&text) })
	return text, err
}

// run runs statements on a connection to a server.
func run(server *Server, statements ...string) error {
	return withServer(server.URL(), func(db *sql.DB) (err error) {
		for _, statement := range statements {
			if _, one := db.Exec(statement); one != nil {
				err = errors.Join(err, fmt.Errorf("%s: %w", statement, one))
			}
		}
		return err
	})
}

// await waits until a server answers a query as wanted.
func await(t testing.TB, server *Server, what, query, want string) {
	t.Helper()
	got, err := "", error(nil)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if got, err = answerOf(server, query); err == nil && got == want {
			return
		}
	}
	t.Fatalf("no %s after a minute: %q, %v", what, got, err)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
