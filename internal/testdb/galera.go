package testdb

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// galeraNodes is the number of nodes of a cluster: with three, the others have the majority when one fails.
const galeraNodes = 3

// Galera returns the nodes of a private Galera cluster of MariaDB servers on this host. They end with the test. Without
// the packages galera-4, rsync and mariadb-server, and without MariaDB among the wanted databases, it skips the test.
func Galera(t testing.TB) []*Server {
	t.Helper()
	skipUnwanted(t, MariaDB)
	provider, err := galeraProvider()
	if err != nil {
		t.Skipf("no Galera cluster here: %v (on Debian: apt-get install mariadb-server galera-4 rsync)", err)
	}
	members, err := galeraMembers(provider)
	if err != nil {
		t.Fatal(err)
	}
	nodes := make([]*Server, len(members))
	for i, env := range members { // a cluster takes in one node after the other
		server, err := start(plan{
			kind: MariaDB, role: galera, env: env,
			url: func(port int) string { return fmt.Sprintf(engines[MariaDB].url, port) },
		})
		nodes[i] = kept(t, server, err)
	}
	return nodes
}

// galeraProvider returns the path of the library with which MariaDB replicates.
func galeraProvider() (string, error) {
	if !Installed(MariaDB) {
		return "", fmt.Errorf("%s is not installed", engines[MariaDB].daemon)
	}
	if _, err := exec.LookPath("rsync"); err != nil {
		return "", err
	}
	for _, pattern := range []string{
		"/usr/lib/galera/libgalera_smm.so", "/usr/lib*/galera-4/libgalera_smm.so",
		"/usr/lib/*/libgalera_smm.so",
	} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 { // fails only for a malformed pattern
			return found[0], nil
		}
	}
	return "", fmt.Errorf("galera-4 is not installed")
}

// galeraMembers returns the environments of the keepers of the nodes.
func galeraMembers(provider string) ([][]string, error) {
	ports := make([][3]int, galeraNodes) // of the group, of incremental and of full copies of the data
	group := make([]string, galeraNodes)
	for i := range ports {
		for j := range ports[i] {
			port, err := freePort()
			if err != nil {
				return nil, err
			}
			ports[i][j] = port
		}
		group[i] = fmt.Sprintf("127.0.0.1:%d", ports[i][0])
	}
	members := make([][]string, galeraNodes)
	for i, p := range ports {
		members[i] = []string{"SERVE=" + strings.Join([]string{
			"--wsrep-on=ON", "--wsrep-provider=" + provider, "--wsrep-cluster-name=rota",
			"--wsrep-cluster-address=gcomm://" + strings.Join(group, ","),
			fmt.Sprintf("--wsrep-node-name=n%d", i+1), "--wsrep-node-address=127.0.0.1",
			"--wsrep-sst-method=rsync", fmt.Sprintf("--wsrep-sst-receive-address=127.0.0.1:%d", p[2]),
			"--binlog-format=ROW", "--innodb-autoinc-lock-mode=2",
			fmt.Sprintf("--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:%d;ist.recv_addr=127.0.0.1:%d;"+
				"gcache.size=32M;evs.keepalive_period=PT0.5S;evs.suspect_timeout=PT3S;evs.inactive_timeout=PT8S;"+
				"evs.inactive_check_period=PT0.5S;evs.install_timeout=PT8S", p[0], p[1]),
		}, " ")}
	}
	members[0] = append(members[0], "FIRST=--wsrep-new-cluster")
	return members, nil
}
