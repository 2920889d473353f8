package testdb

import "testing"

// A commit on the source waits for the replica, which has it after its promotion.
func TestSemiSyncIsPromoted(t *testing.T) {
	t.Parallel()
	source, replica := SemiSync(t)
	must(t, run(source, "CREATE TABLE test.orders (id INT PRIMARY KEY)", "INSERT INTO test.orders VALUES (1)"))
	must(t, source.Kill())
	must(t, Promote(replica))
	if got, err := answerOf(replica, "SELECT COUNT(*) FROM test.orders"); got != "1" {
		t.Errorf("the promoted replica has %s orders, want 1 (%v)", got, err)
	}
	must(t, run(replica, "INSERT INTO test.orders VALUES (2)"))
}

// A group elects another primary when its primary dies, and takes the old one back.
func TestGroupElectsAnotherPrimary(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute: make engine-group-replication runs it")
	}
	t.Parallel()
	g, url, _ := GroupReplication(t)
	db := connect(t, url)
	_, err := db.ExecContext(t.Context(), "CREATE TABLE test.orders (id INT PRIMARY KEY)")
	must(t, err)
	old := g.Primary()
	must(t, old.Kill())
	eventually(t, "there is another primary", func() bool { p := g.Primary(); return p != nil && p != old })
	eventually(t, "it takes writes", func() bool {
		_, err := db.ExecContext(t.Context(), "INSERT INTO test.orders VALUES (1)")
		return err == nil
	})
	must(t, old.Start())
	eventually(t, "the group is whole", func() bool { return g.Join(old) == nil && g.Whole() })
}
