package manager_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
	"github.com/dutyrota/rota/processor"
)

// marker marks the rows of a table. Its Execute does not look at the state that Select saw.
type marker struct{ db *sql.DB }

func (m marker) Select(ctx context.Context, s processor.Selection) (ids []int64, err error) {
	found, err := m.db.QueryContext(ctx, `SELECT id FROM items WHERE done = 0 AND id % ? = ? ORDER BY id LIMIT ?`, s.Total, s.Queue.Index, s.Limit)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	for found.Next() {
		var id int64
		if err := found.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, found.Err()
}

func (m marker) Execute(ctx context.Context, ids []int64) error {
	return center.InTx(ctx, m.db, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE items SET done = 1, effects = effects + 1 WHERE id IN (`+
			strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ","), "[]")+`)`)
		return err
	})
}

// F7 L8: the connections of each process lead to all nodes of a Galera cluster, and the nodes lag. A select sees what the
// same process has committed on another node, so that no item is executed twice.
func TestGaleraBehindABalancerExecutesNothingTwice(t *testing.T) {
	t.Parallel()
	nodes := testdb.Galera(t)
	balanced, _ := testdb.Balanced(t, nodes[0].URL(), nodes[1].URL(), nodes[2].URL())
	c, err := center.Open(t.Context(), anydb.URL(balanced), center.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	checkSessions(t, c)
	checkClocks(t, nodes, balanced)
	n := 5_000
	if os.Getenv("ROTA_FAULTS") != "" { // a long run of tests
		n = 50_000
	}
	makeRows(t, c.DB(), n)
	endLag := lag(t, nodes[0])
	settings := manager.Settings{
		Queues: 8, ThreadNumber: 4, FetchNumber: 200, ExecuteNumber: 20, SleepTimeNoData: 100 * time.Millisecond,
		HeartbeatInterval: time.Second, JudgeDeadInterval: 20 * time.Second,
	}
	dealer := func(c *center.Center) processor.TaskDealer[int64] { return marker{c.DB()} }
	first := startProcess(t, balanced, dealer, settings)
	second := startProcess(t, balanced, dealer, settings)
	count := func(where string) (n int) {
		t.Helper()
		if err := c.DB().QueryRowContext(t.Context(), `SELECT COUNT(*) FROM items WHERE `+where).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for done := 0; done < n; { // each wait is for progress, because the whole takes long on a slow machine
		before := done
		until(t, "more items are done", func() bool { done = count(`done = 1`); return done > before })
	}
	first.stop()
	second.stop()
	if err := errors.Join(<-first.ended, <-second.ended); err != nil {
		t.Error(err)
	}
	endLag()
	if twice := count(`effects <> 1`); twice != 0 {
		t.Errorf("%d of %d items were executed twice, want none", twice, n)
	}
}

// checkSessions checks which sessions wait for the cluster, and what the doctor says of it.
func checkSessions(t *testing.T, c *center.Center) {
	t.Helper()
	db := c.Roster().DB
	for _, p := range []struct {
		name string
		pool *sql.DB
		want int
	}{{"store", db.Store, 3}, {"dealers", db.Dealers, 3}, {"heartbeat", db.Heartbeat, 0}} {
		var wait int
		if err := p.pool.QueryRowContext(t.Context(), `SELECT @@wsrep_sync_wait`).Scan(&wait); err != nil || wait != p.want {
			t.Errorf("wsrep_sync_wait of the pool %s is %d, want %d: %v", p.name, wait, p.want, err)
		}
	}
	var limit float64
	if err := c.DB().QueryRowContext(t.Context(), `SELECT @@max_statement_time`).Scan(&limit); err != nil || limit != 60 {
		t.Errorf("max_statement_time of dealers is %v s, want 60 s (F10): %v", limit, err)
	}
	wantFindings(t, c, "NOTE a Galera cluster: the fence writes its rows, so that the batches of a queue run one by one; wsrep_sync_wait = 3 on the connections",
		"OK the clocks of 3 of 3 nodes (n1, n2, n3) are within")
}

// checkClocks checks what the doctor says while the clock of one node is ahead: in the sessions of users without SUPER.
func checkClocks(t *testing.T, nodes []*testdb.Server, balanced string) {
	t.Helper()
	at := func(raw string, f func(*center.Center)) {
		t.Helper()
		c, err := center.Open(t.Context(), anydb.URL(raw), center.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		f(c)
	}
	run := func(statement string) func(*center.Center) {
		return func(c *center.Center) {
			if _, err := c.DB().ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	at(balanced, run(`GRANT ALL ON test.* TO app@'127.0.0.1' IDENTIFIED BY 'app'`))
	at(nodes[1].URL(), run(`SET GLOBAL init_connect = 'SET timestamp = UNIX_TIMESTAMP() + 4'`))
	at(strings.Replace(balanced, "root@", "app:app@", 1), func(c *center.Center) {
		wantFindings(t, c, "PROBLEM the clock of node n2 is ")
	})
}

// wantFindings checks that the doctor has a finding that begins with each text.
func wantFindings(t *testing.T, c *center.Center, wants ...string) {
	t.Helper()
	findings, err := doctor.Diagnose(t.Context(), ops.New(c), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range wants {
		if !slices.ContainsFunc(findings, func(f condition.Condition) bool { return strings.HasPrefix(f.Status+" "+f.Text, want) }) {
			t.Errorf("findings %+v, want one that begins with %q", findings, want)
		}
	}
}

// makeRows makes n items, and a table whose changes take the nodes long to apply.
func makeRows(t *testing.T, db *sql.DB, n int) {
	t.Helper()
	for _, statement := range []string{
		`CREATE TABLE items (id BIGINT NOT NULL PRIMARY KEY, done INT NOT NULL DEFAULT 0, effects INT NOT NULL DEFAULT 0, KEY (done, id))`,
		fmt.Sprintf(`INSERT INTO items (id) SELECT seq FROM seq_1_to_%d`, n),
		`CREATE TABLE ballast (id BIGINT NOT NULL PRIMARY KEY, n INT NOT NULL DEFAULT 0)`,
		`INSERT INTO ballast (id) SELECT seq FROM seq_1_to_5000`,
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// lag keeps the other nodes behind a node: each of its large transactions takes them as long to apply, and later
// transactions wait behind it. The caller calls end.
func lag(t *testing.T, node *testdb.Server) (end func()) {
	t.Helper()
	c, err := center.Open(t.Context(), anydb.URL(node.URL()), center.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		var err error
		for err == nil {
			_, err = c.DB().ExecContext(ctx, `UPDATE ballast SET n = n + 1`)
		}
		ended <- errors.Join(err, c.Close())
	}()
	return func() {
		t.Helper()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("keep the nodes behind: %v", err)
		}
	}
}
