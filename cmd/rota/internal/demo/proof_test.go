package demo

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
)

// history is what a flawless demo leaves: d joins a, b and c, and b is killed.
var history = []string{
	insertEvent(1, "JOINED", ""), insertEvent(2, "GRANTED", "3"), insertEvent(3, "GRANTED", "7"),
	insertEvent(20, "JOINED", ""),
	insertEvent(21, "REQUESTED", "3"), insertEvent(22, "REQUESTED", "7"),
	insertEvent(23, "RELEASED", "3"), insertEvent(24, "RELEASED", "7"),
	insertEvent(30, "EXPIRED", ""), insertEvent(31, "TAKEN_OVER", "1"), insertEvent(32, "TAKEN_OVER", "4"),
	insertServer("h:1:a", "LEFT"), insertServer("h:2:b", "EXPIRED"), insertServer("h:3:c", "LEFT"), insertServer("h:4:d", "LEFT"),
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

// Each violation must be found on every database, by the check that is made for it.
func TestProof(t *testing.T) {
	checks := []check{ordersCheck, workersCheck, movesCheck}
	violations := map[string]struct {
		change string // to the history
		check  check
		got    string
	}{
		"twice":           {`UPDATE orders SET effects = 2 WHERE id = 4711`, ordersCheck, "[[SETTLED 1 19999 1 20000] [SETTLED 2 1 4711 4711]]"},
		"not at all":      {`UPDATE orders SET effects = 0, state = 'NEW' WHERE id = 4711`, ordersCheck, "[[NEW 0 1 4711 4711] [SETTLED 1 19999 1 20000]]"},
		"effect undone":   {`UPDATE orders SET effects = 0 WHERE id = 4711`, ordersCheck, "[[SETTLED 0 1 4711 4711] [SETTLED 1 19999 1 20000]]"},
		"order deleted":   {`DELETE FROM orders WHERE id = 4711`, ordersCheck, "[[SETTLED 1 19999 1 20000]]"},
		"no order":        {`DELETE FROM orders`, ordersCheck, "[]"},
		"false eviction":  {`UPDATE schedule_server_history SET reason = 'EXPIRED' WHERE uuid = 'h:3:c'`, workersCheck, "[[EXPIRED 2] [LEFT 2]]"},
		"still there":     {`DELETE FROM schedule_server_history WHERE uuid = 'h:3:c'`, workersCheck, "[[EXPIRED 1] [LEFT 2]]"},
		"too many moves":  {insertEvent(25, "RELEASED", "2"), movesCheck, "[[RELEASED 3] [TAKEN_OVER 2]]"},
		"too few moves":   {`DELETE FROM schedule_event WHERE kind = 'TAKEN_OVER' AND queue_id = '4'`, movesCheck, "[[RELEASED 2] [TAKEN_OVER 1]]"},
		"moved by force":  {`UPDATE schedule_event SET kind = 'FORCED' WHERE kind = 'RELEASED' AND queue_id = '3'`, movesCheck, "[[FORCED 1] [RELEASED 1] [TAKEN_OVER 2]]"},
		"owner was lost":  {insertEvent(33, "UNASSIGNED", "1"), movesCheck, "[[RELEASED 2] [TAKEN_OVER 2] [UNASSIGNED 1]]"},
		"granted instead": {`UPDATE schedule_event SET kind = 'GRANTED' WHERE kind = 'TAKEN_OVER'`, movesCheck, "[[GRANTED 2] [RELEASED 2]]"},
	}
	testdb.Each(t, func(t *testing.T, url string) {
		db := roster(t, url, history...)
		if err := prove(t, db, checks...); err != nil {
			t.Errorf("nothing is wrong, but: %v", err)
		}
		for name, v := range violations {
			t.Run(name, func(t *testing.T) {
				tx, err := db.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer tx.Rollback() // the next violation starts from the same history
				do(t, tx, v.change)
				err = prove(t, tx, checks...)
				if want := fmt.Sprintf("it is false that %s: got %s, want %v", v.check.claim, v.got, v.check.want); err == nil || err.Error() != want {
					t.Errorf("got %v, want %s", err, want)
				}
			})
		}
	})
}

// prove returns the error of the report, and checks that the report fits a terminal of 80 columns.
func prove(t *testing.T, db sqldb.Queryer, checks ...check) error {
	t.Helper()
	findings, err := ask(t.Context(), db, checks...)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = report(&out, findings, true)
	for line := range strings.Lines(out.String()) {
		if n := len([]rune(line)); n > 81 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	return err
}

// roster makes a database like the demo's, with a history.
func roster(t *testing.T, url string, history ...string) *sql.DB {
	t.Helper()
	c, err := center.Open(t.Context(), anydb.URL(url), center.Options{Schema: center.SchemaCreate})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	do(t, c.DB(), createOrders)
	if err := fillOrders(t.Context(), c.DB()); err != nil {
		t.Fatal(err)
	}
	do(t, c.DB(), history...)
	return c.DB()
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
func TestReport(t *testing.T) {
	var out strings.Builder
	err := report(&out, []finding{
		{check{"none is left", "SELECT state, n\n  FROM orders", nil}, []string{"state", "n"}, [][]string{{"NEW", "1"}, {"SETTLED", "19999"}}},
		{check{"it is one", "SELECT 1", [][]string{{"1"}}}, []string{"x"}, [][]string{{"1"}}},
	}, false)
	if want := "it is false that none is left: got [[NEW 1] [SETTLED 19999]], want []"; err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
	const want = `   SELECT state, n
     FROM orders
   state  n
   NEW  1
   SETTLED  19999

Checked with SELECTs (--proof shows them):
FALSE  none is left
ok     it is one

If the machine stops a worker for longer than 6s, the others evict it.
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
