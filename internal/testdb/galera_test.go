package testdb

import (
	"database/sql"
	"net/url"
	"testing"
)

// A balancer leads the connections of one pool to all nodes of a cluster, and a node that was killed comes back.
func TestGaleraBehindABalancer(t *testing.T) {
	t.Parallel()
	nodes := Galera(t)
	balanced, _ := Balanced(t, nodes[0].URL(), nodes[1].URL(), nodes[2].URL())
	if got := nodeNames(t, balanced); len(got) != 3 {
		t.Fatalf("connections lead to the nodes %v, want three", got)
	}
	if err := nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	if got := nodeNames(t, balanced); len(got) != 2 {
		t.Fatalf("with one node killed, connections lead to the nodes %v, want two", got)
	}
	if err := nodes[0].Start(); err != nil {
		t.Fatal(err)
	}
	if got := nodeNames(t, balanced); len(got) != 3 {
		t.Fatalf("with all nodes started, connections lead to the nodes %v, want three", got)
	}
}

// nodeNames returns how many of six connections lead to each node.
func nodeNames(t *testing.T, raw string) map[string]int {
	t.Helper()
	names := map[string]int{}
	for range 6 {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		db, err := open(u)
		if err != nil {
			t.Fatal(err)
		}
		names[nodeName(t, db)]++
	}
	return names
}

func nodeName(t *testing.T, db *sql.DB) (name string) {
	t.Helper()
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), "SELECT @@wsrep_node_name").Scan(&name); err != nil {
		t.Fatal(err)
	}
	return name
}
