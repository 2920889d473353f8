package demo

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
)

// history is what a flawless demo leaves: d joins a, b and c, and b is killed. beforeLeaving is the last event before
// the workers leave.
const beforeLeaving = 32

var history = []string{
	insertEvent(1, "JOINED", ""), insertEvent(2, "GRANTED", "3"), insertEvent(3, "GRANTED", "7"),
	insertEvent(20, "JOINED", ""),
	insertEvent(21, "REQUESTED", "3"), insertEvent(22, "REQUESTED", "7"),
	insertEvent(23, "RELEASED", "3"), insertEvent(24, "RELEASED", "7"),
	insertEvent(30, "EXPIRED", ""), insertEvent(31, "TAKEN_OVER", "1"), insertEvent(32, "TAKEN_OVER", "4"),
	insertServer("h:1:a", "LEFT"), insertServer("h:2:b", "EXPIRED"), insertServer("h:3:c", "LEFT"), insertServer("h:4:d", "LEFT"),
	insertEvent(40, "LEFT", ""), insertEvent(41, "RELEASED", "1"), insertEvent(42, "UNASSIGNED", "2"),
	`UPDATE orders SET state = 'SETTLED', effects = 1, settled_by = 'h:1:a'`,
}

func insertEvent(id int, kind, queue string) string {
	return fmt.Sprintf(`INSERT INTO schedule_event (event_id, event_time, task_type, own_sign, queue_id, kind, reason, actor)
		VALUES (%d, '2026-01-02 03:04:08.500000', 'settle', 'DEMO', NULLIF('%s', ''), '%s', '', '')`, id, queue, kind)
}

func insertServer(uuid, reason string) string {
	return fmt.Sprintf(`INSERT INTO schedule_server_history (uuid, task_type, own_sign, register_time, heartbeat_time, left_time, reason)
		VALUES ('%s', 'settle', 'DEMO', '2026-01-02 03:04:00.000000', '2026-01-02 03:04:05.000000', '2026-01-02 03:04:08.500000', '%s')`, uuid, reason)
}

// Each violation must be found on every database, by the claims that are made for it.
func TestProof(t *testing.T) {
	const (
		exactlyOnce = "each order took effect exactly once: "
		evicted     = "one worker was evicted: "
		left        = "the others left in order: "
		join        = "the join moved two queues, as few as possible: "
		crash       = "the crash moved two queues, as few as possible: "
		noOther     = "no other queue moved: "
	)
	violations := map[string]struct {
		change string // to the history
		want   []string
	}{
		"nothing":         {`DELETE FROM orders WHERE id = 0`, nil},
		"twice":           {`UPDATE orders SET effects = 2 WHERE id = 4711`, []string{exactlyOnce + "got 19999, want 20000"}},
		"not at all":      {`UPDATE orders SET effects = 0, state = 'NEW' WHERE id = 4711`, []string{exactlyOnce + "got 19999, want 20000"}},
		"half of it":      {`UPDATE orders SET state = 'NEW' WHERE id = 4711`, []string{exactlyOnce + "got 19999, want 20000"}},
		"effect undone":   {`UPDATE orders SET effects = 0 WHERE id = 4711`, []string{exactlyOnce + "got 19999, want 20000"}},
		"order deleted":   {`DELETE FROM orders WHERE id = 4711`, []string{exactlyOnce + "got 19999, want 20000"}},
		"no order":        {`DELETE FROM orders`, []string{exactlyOnce + "got 0, want 20000"}},
		"false eviction":  {`UPDATE schedule_server_history SET reason = 'EXPIRED' WHERE uuid = 'h:3:c'`, []string{evicted + "got 2, want 1", left + "got 2, want 3"}},
		"still there":     {`DELETE FROM schedule_server_history WHERE uuid = 'h:3:c'`, []string{left + "got 2, want 3"}},
		"too many moves":  {insertEvent(25, "RELEASED", "2"), []string{join + "got 3, want 2"}},
		"too few moves":   {`DELETE FROM schedule_event WHERE kind = 'TAKEN_OVER' AND queue_id = '4'`, []string{crash + "got 1, want 2"}},
		"moved by force":  {`UPDATE schedule_event SET kind = 'FORCED' WHERE event_id = 23`, []string{join + "got 1, want 2", noOther + "got 1, want 0"}},
		"owner was lost":  {`UPDATE schedule_event SET kind = 'UNASSIGNED' WHERE event_id = 22`, []string{noOther + "got 1, want 0"}},
		"granted instead": {`UPDATE schedule_event SET kind = 'GRANTED' WHERE kind = 'TAKEN_OVER'`, []string{crash + "got 0, want 2", noOther + "got 2, want 0"}},
	}
	testdb.Each(t, func(t *testing.T, url string) {
		db := roster(t, url, history...)
		for name, v := range violations {
			t.Run(name, func(t *testing.T) {
				tx, err := db.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer tx.Rollback() // the next violation starts from the same history
				do(t, tx, v.change)
				var got []string
				if err := proveHistory(t, sqldb.Reading{Queryer: tx, Dialect: db.Dialect}); err != nil {
					got = strings.Split(strings.ReplaceAll(err.Error(), "it is false that ", ""), "\n")
				}
				if diff := cmp.Diff(v.want, got); diff != "" {
					t.Error(diff)
				}
			})
		}
	})
}

// proveHistory returns the error of the proof, and checks that what it prints fits a terminal of 80 columns.
func proveHistory(t *testing.T, db sqldb.Eacher) error {
	t.Helper()
	var out strings.Builder
	err := prove(t.Context(), db, claims(beforeLeaving), &out, true)
	for line := range strings.Lines(out.String()) {
		if n := len([]rune(line)); n > 81 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	return err
}

// roster makes a database like the demo's, with a history.
func roster(t *testing.T, url string, history ...string) *database {
	t.Helper()
	c, err := center.Open(t.Context(), anydb.URL(url), center.Options{Schema: center.SchemaCreate})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	to := anydb.URL(url)
	db := &database{DB: c.DB(), Reading: sqldb.Reading{Queryer: c.DB(), Dialect: to.Dialect}}
	do(t, db, createOrders)
	if err := db.fillOrders(t.Context()); err != nil {
		t.Fatal(err)
	}
	do(t, db, history...)
	return db
}

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func do(t *testing.T, db execer, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// The SELECT of a false claim is printed, that of a true one is not.
func TestFalseClaim(t *testing.T) {
	db, err := openDatabase(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var out strings.Builder
	err = prove(t.Context(), db, []claim{{"none is left", "SELECT\n7", 0}, {"it is one", "SELECT 1", 1}}, &out, false)
	if want := "it is false that none is left: got 7, want 0"; err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
	const want = `Checked with SELECTs (--proof shows them):
FALSE  none is left
       SELECT
       7
       = 7
ok     it is one

The others evict a worker that is stopped for judge_dead_interval.
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
