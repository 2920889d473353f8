package demo

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/testdb"
)

// history is what a demo without fault leaves: a, b and c share 8 queues, d joins, b is killed.
var history = []string{
	told(1, "JOINED", "", "", "h:1:a", 0), told(2, "JOINED", "", "", "h:2:b", 0), told(3, "JOINED", "", "", "h:3:c", 0),
	told(11, "GRANTED", "0", "", "h:1:a", 2), told(12, "GRANTED", "3", "", "h:1:a", 2), told(13, "GRANTED", "6", "", "h:1:a", 2),
	told(14, "GRANTED", "1", "", "h:2:b", 2), told(15, "GRANTED", "4", "", "h:2:b", 2), told(16, "GRANTED", "7", "", "h:2:b", 2),
	told(17, "GRANTED", "2", "", "h:3:c", 2), told(18, "GRANTED", "5", "", "h:3:c", 2),
	told(20, "JOINED", "", "", "h:4:d", 0),
	told(21, "REQUESTED", "3", "h:1:a", "h:4:d", 2), told(22, "REQUESTED", "7", "h:2:b", "h:4:d", 2),
	told(23, "RELEASED", "3", "h:1:a", "h:4:d", 3), told(24, "RELEASED", "7", "h:2:b", "h:4:d", 3),
	told(30, "EXPIRED", "", "h:2:b", "", 0),
	told(31, "TAKEN_OVER", "1", "h:2:b", "h:1:a", 3), told(32, "TAKEN_OVER", "4", "h:2:b", "h:3:c", 3),
	gone("h:1:a", "LEFT"), gone("h:2:b", "EXPIRED"), gone("h:3:c", "LEFT"), gone("h:4:d", "LEFT"),
	`UPDATE orders SET state = 'SETTLED', effects = 1, settled_by = 'h:1:a' WHERE mod(id, 2) = 0`,
	`UPDATE orders SET state = 'SETTLED', effects = 1, settled_by = 'h:3:c' WHERE mod(id, 2) = 1`,
}

// told inserts an event, 3.5 s after the last heartbeats.
func told(id int, kind, queue, from, to string, epoch int) string {
	null := func(s string) string {
		if s == "" {
			return "NULL"
		}
		return "'" + s + "'"
	}
	return fmt.Sprintf(`INSERT INTO schedule_event (event_id, event_time, task_type, own_sign, queue_id, kind, from_server, to_server, epoch, reason, actor)
		VALUES (%d, '2026-01-02 03:04:08.500000', 'settle', 'DEMO', %s, '%s', %s, %s, %d, '', '')`, id, null(queue), kind, null(from), null(to), epoch)
}

func gone(uuid, reason string) string {
	return fmt.Sprintf(`INSERT INTO schedule_server_history (uuid, task_type, own_sign, register_time, heartbeat_time, left_time, reason)
		VALUES ('%s', 'settle', 'DEMO', '2026-01-02 03:04:00.000000', '2026-01-02 03:04:05.000000', '2026-01-02 03:04:08.500000', '%s')`, uuid, reason)
}

// Each violation must be found on every database, by the check that is made for it.
func TestProof(t *testing.T) {
	const (
		once     = "each order took effect exactly once"
		known    = "only servers of the roster settled orders"
		end      = "all workers but the killed left in order"
		epochs   = "each change of owner has its own epoch"
		join     = "the join moved no more queues than it must"
		crash    = "the crash moved only the dead one's queues"
		takeOver = "the take-over kept its promise"
	)
	violations := map[string]struct {
		change string // what is made wrong in the history
		claim  string // that is hurt
		want   string // in the verdict
		grade  grade
	}{
		"twice":          {`UPDATE orders SET effects = 2 WHERE id = 4711`, once, "1 × SETTLED with effects = 2", refuted},
		"not at all":     {`UPDATE orders SET effects = 0, state = 'NEW' WHERE id = 4711`, once, "1 × NEW with effects = 0", refuted},
		"effect undone":  {`UPDATE orders SET effects = 0 WHERE id = 4711`, once, "1 × SETTLED with effects = 0", refuted},
		"deleted":        {`DELETE FROM orders WHERE id = 4711`, once, "19,999 × SETTLED with effects = 1; want 20,000", refuted},
		"a stranger":     {`UPDATE orders SET settled_by = 'h:9:x' WHERE id = 4711`, known, `1 × settled by "h:9:x"`, refuted},
		"killed alive":   {`UPDATE schedule_server_history SET reason = 'EXPIRED' WHERE uuid = 'h:3:c'`, end, "want 1 EXPIRED, which was killed, and 3 LEFT", refuted},
		"still there":    {`INSERT INTO schedule_server (uuid, task_type) VALUES ('h:5:e', 'settle')`, end, "still there: servers 1", refuted},
		"still owned":    {`INSERT INTO schedule_queue (task_type, queue_id, queue_index, cur_server) VALUES ('settle', '0', 0, 'h:5:e')`, end, "queues with an owner 1", refuted},
		"epoch again":    {`UPDATE schedule_event SET epoch = 2 WHERE kind = 'RELEASED' AND queue_id = '3'`, epochs, "queue 3 changed its owner 2 times under 1 epochs", refuted},
		"epoch falls":    {`UPDATE schedule_event SET epoch = 1 WHERE kind = 'RELEASED' AND queue_id = '3'`, epochs, "which fell 1 times", refuted},
		"never owned":    {`DELETE FROM schedule_event WHERE queue_id = '3'`, epochs, "7 queues had an owner: want 8", refuted},
		"join too much":  {told(25, "RELEASED", "2", "h:3:c", "h:1:a", 3), join, "3 queues moved: the minimum is 2", refuted},
		"join too few":   {`DELETE FROM schedule_event WHERE kind = 'RELEASED'`, join, "0 queues moved: the minimum is 2", refuted},
		"join by force":  {`UPDATE schedule_event SET kind = 'FORCED' WHERE kind = 'RELEASED' AND queue_id = '3'`, join, "2 queues moved as [[FORCED 1] [RELEASED 1]]", refuted},
		"crash too much": {told(40, "RELEASED", "2", "h:3:c", "h:1:a", 3), crash, "3 queues moved: the minimum is 2", refuted},
		"crash too few":  {`DELETE FROM schedule_event WHERE kind = 'TAKEN_OVER' AND queue_id = '4'`, crash, "1 queue moved: the minimum is 2", refuted},
		"crash granted":  {`UPDATE schedule_event SET kind = 'GRANTED' WHERE kind = 'TAKEN_OVER'`, crash, "2 queues moved as [[GRANTED 2]]", refuted},
		"slow":           {later("03:04:10.000000"), takeOver, "5s, promised at most 4s; above 3 times", slow},
		"much too slow":  {later("03:04:18.000000"), takeOver, "13s, promised at most 4s", refuted},
		"no take-over":   {`DELETE FROM schedule_event WHERE kind = 'TAKEN_OVER'`, takeOver, "no queue was taken over", refuted},
	}
	testdb.Each(t, func(t *testing.T, url string) {
		db := roster(t, url, history...)
		for _, f := range findings(t, db, "") {
			if f.verdict.grade != proved {
				t.Errorf("nothing is wrong, yet %s: %s: %s", f.verdict.grade, f.claim, f.verdict.text)
			}
			fits(t, f)
		}
		for name, v := range violations {
			t.Run(name, func(t *testing.T) {
				tx, err := db.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer tx.Rollback() // the next starts from the same history
				do(t, tx, v.change)
				got := findings(t, tx, v.claim)[0].verdict
				if got.grade != v.grade || !strings.Contains(got.text, v.want) {
					t.Errorf("got %s %q, want %s %q", got.grade, got.text, v.grade, v.want)
				}
			})
		}
	})
}

// fits checks that what is printed fits a terminal of 80 columns.
func fits(t *testing.T, f finding) {
	t.Helper()
	if n := len("ok    ") + 42 + len("  ") + len([]rune(f.verdict.text)); n > 80 {
		t.Errorf("%d columns: %s", n, f.verdict.text)
	}
	for _, query := range f.queries {
		for line := range strings.Lines(indent(query)) {
			if len(line) > 80 {
				t.Errorf("%d columns: %s", len(line), line)
			}
		}
	}
}

func later(clock string) string {
	return `UPDATE schedule_event SET event_time = '2026-01-02 ` + clock + `' WHERE kind = 'TAKEN_OVER' AND queue_id = '4'`
}

// findings asks for one claim, or for all.
func findings(t *testing.T, db querier, claim string) []finding {
	t.Helper()
	checks := append(effectChecks(), moveChecks()...)
	if claim != "" {
		checks = slices.DeleteFunc(checks, func(c check) bool { return c.claim != claim })
	}
	list, err := ask(t.Context(), db, checks)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// roster makes a place like the demo's, with a history.
func roster(t *testing.T, url string, history ...string) *sql.DB {
	t.Helper()
	c, err := center.Open(t.Context(), anydb.URL(url), center.Options{Schema: center.SchemaCreate})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := createOrders(t.Context(), c.DB()); err != nil {
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

func TestReport(t *testing.T) {
	var out strings.Builder
	err := report(&out, []finding{
		{
			check:   check{claim: "none is left", queries: []string{"SELECT state, n\n  FROM orders"}},
			answers: []answer{{columns: []string{"state", "n"}, rows: [][]string{{"NEW", "1"}, {"SETTLED", "19999"}}}},
			verdict: verdict{refuted, "1 is"},
		},
		{
			check:   check{claim: "it was quick", queries: []string{"SELECT 1"}},
			answers: []answer{{columns: []string{"x"}}},
			verdict: verdict{slow, "it was not"},
		},
	})
	if err == nil || err.Error() != "it is not so that none is left: 1 is" {
		t.Errorf("the error is %v", err)
	}
	const want = `1. none is left
   SELECT state, n
     FROM orders
    state        n
   ────────────────
    NEW          1
    SETTLED  19999

2. it was quick
   SELECT 1
   (no rows)

OFF   none is left                                1 is
slow  it was quick                                it was not
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestLeastMoves(t *testing.T) {
	for _, test := range []struct {
		held []int
		want int
	}{{[]int{3, 3, 2}, 2}, {[]int{8}, 4}, {[]int{1, 1}, 0}, {[]int{4, 2, 2}, 2}, {nil, 0}} {
		if got := leastMoves(test.held); got != test.want {
			t.Errorf("leastMoves(%v) = %d, want %d", test.held, got, test.want)
		}
	}
}
