package mysql

import (
	"strings"
	"testing"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
)

// F8: a Group Replication with several primaries is refused by name. A share lock of one server holds nobody back on
// another. On a server that lags, a transaction commits under the fence of an owner that the other server has replaced.
func TestSeveralPrimariesAreRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute: make check runs it")
	}
	t.Parallel()
	g := testdb.SeveralPrimaries(t)
	const refusal = "several primaries (group_replication_single_primary_mode = OFF)"
	for _, node := range g.Nodes {
		_, err := probe(t.Context(), open(t, node.URL(), sqldb.RoleStore))
		if err == nil || !strings.Contains(err.Error(), refusal) {
			t.Errorf("got %v, want %q", err, refusal)
		}
	}
	here, there := open(t, g.Nodes[0].URL(), sqldb.RoleDealers), open(t, g.Nodes[1].URL(), sqldb.RoleStore)
	for _, statement := range []string{
		"SET SESSION group_replication_consistency = AFTER", // the other server has it, too
		"CREATE TABLE queues (id INT PRIMARY KEY, owner INT)", "CREATE TABLE items (id INT PRIMARY KEY)", "CREATE TABLE ballast (id INT PRIMARY KEY)",
		"INSERT INTO queues VALUES (1, 1)",
	} {
		here.SetMaxOpenConns(1)
		if _, err := here.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	tx, err := here.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	var owner int
	if err := tx.QueryRowContext(t.Context(), "SELECT q.owner FROM queues AS q WHERE q.id = 1"+dialect.Share).Scan(&owner); err != nil {
		t.Fatal(err)
	}
	// The first server lags: it waits for a table before it applies what the other one commits. Else it would end the
	// transaction when it applies the change of the owner.
	lagging, err := open(t, g.Nodes[0].URL(), sqldb.RoleDealers).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lagging.Close()
	if _, err := lagging.ExecContext(t.Context(), "LOCK TABLES ballast WRITE"); err != nil {
		t.Fatal(err)
	}
	if _, err := there.ExecContext(t.Context(), "INSERT INTO ballast VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	if _, err := there.ExecContext(t.Context(), "UPDATE queues SET owner = 2 WHERE id = 1"); err != nil {
		t.Fatalf("the other server waits for the share lock, want that it does not: %v", err)
	}
	if _, err := tx.ExecContext(t.Context(), "INSERT INTO items VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Errorf("the group has refused the commit: is a fence by share locks enough now? %v", err)
	}
}
