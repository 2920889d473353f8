package center_test

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/schema"
)

// Each test here fails if the option, or the order of statements, that avoids a trap of a driver is taken away.

// pools returns the pools that run statements of the user and of the roster.
func pools(c *center.Center) map[string]*sql.DB {
	return map[string]*sql.DB{"dealers": c.DB(), "store": c.Store()}
}

// A statement with parameters must be one round trip, which has one Sync message: PgBouncer in transaction mode may
// send the two halves of two round trips to two servers, and another statement's rows come back.
func TestPostgresSendsParametersInOneRoundTrip(t *testing.T) {
	t.Parallel()
	url, p := testdb.Through(t, testdb.URL(t, testdb.Postgres))
	c := centertest.Open(t, url+"&binary_parameters=no", center.Options{})
	for name, db := range pools(c) {
		must(t, db.PingContext(t.Context())) // connects before the proxy listens
		sent := p.Listen(func() {
			if _, err := db.ExecContext(t.Context(), "UPDATE schedule_server SET pid = $1 WHERE uuid = $2", 1, "x"); err != nil {
				t.Error(err)
			}
		})
		if n := countMessages(sent)['S']; n != 1 {
			t.Errorf("Sync messages of one statement in the pool %s: got %d, want 1", name, n)
		}
	}
}

// countMessages counts the messages of PostgreSQL's protocol by their type.
func countMessages(sent []byte) map[byte]int {
	counts := map[byte]int{}
	for len(sent) >= 5 {
		counts[sent[0]]++
		sent = sent[min(len(sent), 1+int(binary.BigEndian.Uint32(sent[1:]))):]
	}
	return counts
}

// lib/pq does not heed the deadline of a context while the network swallows packets (its issue 620), and would hang for
// minutes.
func TestHeartbeatEndsWhenPacketsAreLost(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{testdb.Postgres, testdb.MySQL, testdb.MariaDB} {
		t.Run(kind, func(t *testing.T) {
			url, p := testdb.Through(t, testdb.URL(t, kind))
			c := centertest.Open(t, url, center.Options{})
			send := func() error {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := c.Roster().SendHeartbeat(ctx, unknownServer)
				return err
			}
			must(t, send())
			p.EndsAndHeals(t, send)
		})
	}
}

// A transaction of SQLite that reads first and writes later fails with SQLITE_BUSY_SNAPSHOT at once, whatever its
// busy_timeout, unless it takes the write lock at its start. On the other databases the SELECT locks the row.
func TestConcurrentReadModifyWrite(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Open(t, url, center.Options{})
		centertest.Define(t, c, "count", center.Settings{Queues: 1})
		const clients, times = 4, 25
		var g errgroup.Group
		for range clients {
			g.Go(func() error {
				for range times {
					if err := increment(t.Context(), c); err != nil {
						return err
					}
				}
				return nil
			})
		}
		must(t, g.Wait())
		var n int
		must(t, c.DB().QueryRowContext(t.Context(), "SELECT queue_total FROM schedule_task_running").Scan(&n))
		if want := 1 + clients*times; n != want {
			t.Fatalf("counter after concurrent increments: got %d, want %d", n, want)
		}
	})
}

// increment reads queue_total and writes it, increased by one, in one transaction.
func increment(ctx context.Context, c *center.Center) error {
	lock := " FOR UPDATE"
	if c.Dialect() == schema.SQLite {
		lock = ""
	}
	tx, err := c.DB().BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	var n int
	if err := tx.QueryRowContext(ctx, "SELECT queue_total FROM schedule_task_running WHERE task_type = 'count'"+lock).Scan(&n); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("UPDATE schedule_task_running SET queue_total = %d WHERE task_type = 'count'", n+1)); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// By default MySQL counts the changed rows. A compare-and-set needs the number of matched rows.
func TestRowsAffectedCountsMatchedRows(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Open(t, url, center.Options{})
		centertest.Define(t, c, "same", center.Settings{Queues: 1})
		for name, db := range pools(c) {
			res, err := db.ExecContext(t.Context(), "UPDATE schedule_task_type SET thread_number = thread_number")
			must(t, err)
			if n, err := res.RowsAffected(); n != 1 || err != nil {
				t.Errorf("rows affected in the pool %s: got %d, %v, want 1", name, n, err)
			}
		}
	})
}

// The end of a context closes the connection to MySQL, but not the statement: it would wait in the server for a lock
// for another 50 s. The roster's own statements wait for 1 s, and end after 10 s. On MySQL itself only a SELECT ends.
func TestMySQLEndsStatements(t *testing.T) {
	t.Parallel()
	for kind, test := range map[string]struct{ query, store, heartbeat string }{ // heartbeats have no transactions
		testdb.MySQL: {
			"SELECT CONCAT_WS(' ', @@innodb_lock_wait_timeout, @@max_execution_time, @@wait_timeout)", "1 10000 10", "1 10000 28800",
		},
		testdb.MariaDB: {
			"SELECT CONCAT_WS(' ', @@innodb_lock_wait_timeout, @@max_statement_time, @@idle_transaction_timeout)",
			"1 10.000000 10", "1 10.000000 0",
		},
	} {
		t.Run(kind, func(t *testing.T) {
			c := centertest.Open(t, testdb.URL(t, kind), center.Options{})
			for want, pool := range map[string]*sql.DB{test.store: c.Store(), test.heartbeat: c.HeartbeatPool()} {
				var got string
				must(t, pool.QueryRowContext(t.Context(), test.query).Scan(&got))
				if got != want {
					t.Errorf("%s: got %s, want %s", test.query, got, want)
				}
			}
		})
	}
}

// The replies are lost while a statement runs under the lock row. The client gives up, and PostgreSQL does not notice:
// the lock row is free when the server's limit ends the statement. (MariaDB notices in SLEEP, and in nothing else.)
func TestAbandonedStatementsEnd(t *testing.T) {
	t.Parallel()
	url := testdb.URL(t, testdb.Postgres)
	near := centertest.Open(t, url, center.Options{})
	_, err := ops.New(near).Tasks().Define(t.Context(), "settle", center.Settings{Queues: 1})
	must(t, err)
	through, p := testdb.Through(t, url)
	far := centertest.Open(t, through, center.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	slept := errors.New("the lock was not taken")
	err = far.Roster().UnderLock(ctx, "settle", func(ctx context.Context, l *roster.LockTx) error {
		p.Break(testdb.Breakpoint{Text: "pg_sleep", Reached: func() bool {
			p.LoseReplies(true)
			return true
		}})
		_, slept = l.Exec(ctx, "SELECT pg_sleep(600)")
		return errors.New("given up")
	})
	if err == nil || slept == nil {
		t.Fatalf("a statement without a reply: %v, %v", slept, err)
	}
	for err := near.Roster().Operator("test").Pause(ctx, "settle", true); err != nil; err = near.Roster().Operator("test").Pause(ctx, "settle", true) {
		if ctx.Err() != nil {
			t.Fatalf("the lock row is still held: %v", err)
		}
	}
}

// F6: the server ends the transactions of dealers whose clients are silent. MariaDB does not read what is for MySQL,
// which has only a limit for idle connections.
func TestMySQLLimitsIdleTransactionsOfDealers(t *testing.T) {
	t.Parallel()
	for kind, test := range map[string]struct {
		query              string
		none, usual, brief string
	}{
		testdb.MySQL:   {"SELECT @@wait_timeout", "28800", "60", "3"},
		testdb.MariaDB: {"SELECT CONCAT_WS(' ', @@idle_transaction_timeout, @@wait_timeout)", "0 28800", "60 28800", "3 28800"},
	} {
		t.Run(kind, func(t *testing.T) {
			url := testdb.URL(t, kind)
			for limit, want := range map[time.Duration]string{-1: test.none, 0: test.usual, 2500 * time.Millisecond: test.brief} {
				c := centertest.Open(t, url, center.Options{IdleTxTimeout: limit})
				var got string
				must(t, c.DB().QueryRowContext(t.Context(), test.query).Scan(&got))
				if got != want {
					t.Errorf("IdleTxTimeout %s: %s: got %s, want %s", limit, test.query, got, want)
				}
			}
		})
	}
}

// F10: MariaDB ends the long statements of dealers itself. A shorter limit in the URL stays in force.
func TestMariaDBLimitsStatementsOfDealers(t *testing.T) {
	t.Parallel()
	url := testdb.URL(t, testdb.MariaDB)
	for _, tt := range []struct {
		limit time.Duration
		url   string
		want  float64
	}{
		{0, "", 900},
		{-1, "", 0},
		{time.Second, "", 1},
		{time.Minute, "max_statement_time=2.5", 2.5},
		{time.Minute, "max_statement_time=90", 60},
	} {
		c := centertest.Open(t, url+"?"+tt.url, center.Options{ReplyTimeout: tt.limit})
		var got float64
		must(t, c.DB().QueryRowContext(t.Context(), "SELECT @@max_statement_time").Scan(&got))
		if got != tt.want {
			t.Errorf("ReplyTimeout %s, URL %q: %v s, want %v s", tt.limit, tt.url, got, tt.want)
		}
	}
	c := centertest.Open(t, url, center.Options{ReplyTimeout: time.Second})
	_, err := c.DB().ExecContext(t.Context(), "SELECT COUNT(*) FROM seq_1_to_1000000 AS a JOIN seq_1_to_1000000 AS b WHERE a.seq + b.seq < 0")
	if err == nil || !strings.Contains(err.Error(), "max_statement_time exceeded") {
		t.Errorf("a long statement: %v, want that max_statement_time is exceeded", err)
	}
}

// F6: a shorter limit of the server or of the URL stays in force, and a longer one does not.
func TestMariaDBKeepsAShorterIdleLimit(t *testing.T) {
	t.Parallel()
	server, err := testdb.StartServer(testdb.MariaDB) // its own, because a global variable changes
	must(t, err)
	t.Cleanup(func() { must(t, server.Close()) })
	url, _, err := testdb.Create(t.Context(), server.URL())
	must(t, err)
	administrator := centertest.Open(t, url, center.Options{})
	for _, tt := range []struct {
		global, url   string
		dealer, store int
	}{
		{"0", "", 60, 10},
		{"5", "", 5, 5},
		{"90", "", 60, 10},
		{"0", "idle_transaction_timeout=30", 30, 10},
		{"0", "idle_transaction_timeout=90", 60, 10},
		{"5", "idle_transaction_timeout=90", 5, 5},
	} {
		centertest.Exec(t, administrator, "SET GLOBAL idle_transaction_timeout = "+tt.global)
		c := centertest.Open(t, url+"?"+tt.url, center.Options{})
		var dealer, store int
		must(t, c.DB().QueryRowContext(t.Context(), "SELECT @@idle_transaction_timeout").Scan(&dealer))
		must(t, c.Store().QueryRowContext(t.Context(), "SELECT @@idle_transaction_timeout").Scan(&store))
		if dealer != tt.dealer || store != tt.store {
			t.Errorf("%+v: %d s on connections for dealers, and %d s on the roster's own", tt, dealer, store)
		}
	}
}

// F6: a shorter limit of the database stays in force, in fenced transactions and in the roster's own.
func TestPostgresKeepsAShorterIdleLimit(t *testing.T) {
	t.Parallel()
	for limit, want := range map[string][2]string{ // for the idle time, and for what is unsent
		"0": {"1min 10s", "60000 10000"}, "5s": {"5s 5s", "5000 5000"}, "20s": {"20s 10s", "20000 10000"}, "2min": {"1min 10s", "60000 10000"},
	} {
		url := testdb.URL(t, testdb.Postgres)
		c := centertest.Open(t, url, center.Options{})
		var database string
		must(t, c.DB().QueryRowContext(t.Context(), "SELECT quote_ident(current_database())").Scan(&database))
		for _, name := range []string{"idle_in_transaction_session_timeout", "tcp_user_timeout"} {
			centertest.Exec(t, c, fmt.Sprintf("ALTER DATABASE %s SET %s = '%s'", database, name, limit))
		}
		c = centertest.Open(t, url, center.Options{})
		_, err := ops.New(c).Tasks().Define(t.Context(), "settle", center.Settings{Queues: 1})
		must(t, err)
		centertest.Exec(t, c, "UPDATE schedule_queue SET cur_server = 'A', epoch = 7")
		ctx := c.Bind(t.Context(), center.Batch{Server: "A", TaskType: "settle", Queue: center.QueueEpoch{ID: "0", Epoch: 7}})
		const idle, unsent = "SELECT current_setting('idle_in_transaction_session_timeout')", "SELECT current_setting('tcp_user_timeout')"
		var got, gotUnsent [2]string
		must(t, center.InTx(ctx, c.DB(), func(tx *sql.Tx) error {
			return errors.Join(tx.QueryRowContext(ctx, idle).Scan(&got[0]), tx.QueryRowContext(ctx, unsent).Scan(&gotUnsent[0]))
		}))
		must(t, c.Roster().UnderLock(ctx, "settle", func(ctx context.Context, l *roster.LockTx) error {
			return errors.Join(l.QueryRow(ctx, idle).Scan(&got[1]), l.QueryRow(ctx, unsent).Scan(&gotUnsent[1]))
		}))
		if list := strings.Join(got[:], " "); list != want[0] {
			t.Errorf("with a limit of %s: %s for a dealer's and the roster's transaction, want %s", limit, list, want[0])
		}
		if list := strings.Join(gotUnsent[:], " "); runtime.GOOS == "linux" && list != want[1] {
			t.Errorf("with tcp_user_timeout %s: %s for a dealer's and the roster's transaction, want %s", limit, list, want[1])
		}
	}
}

// F6: the limit holds for the fenced transaction only, whichever way it fences.
func TestPostgresLimitsIdleFencedTransactions(t *testing.T) {
	t.Parallel()
	url := testdb.URL(t, testdb.Postgres)
	for limit, want := range map[time.Duration]string{-1: "0", 0: "1min", 1500 * time.Millisecond: "1500ms"} {
		c := centertest.Open(t, url, center.Options{IdleTxTimeout: limit})
		c.DB().SetMaxOpenConns(1)
		if _, err := ops.New(c).Tasks().Define(t.Context(), "settle", center.Settings{Queues: 1}); err != nil {
			t.Fatal(err)
		}
		centertest.Exec(t, c, "UPDATE schedule_queue SET cur_server = 'A', epoch = 7")
		for _, cursor := range []*center.CursorMove{nil, {}} {
			ctx := c.Bind(t.Context(), center.Batch{Server: "A", TaskType: "settle", Queue: center.QueueEpoch{ID: "0", Epoch: 7}, Cursor: cursor})
			var idle, unsent, after string
			err := center.InTx(ctx, c.DB(), func(tx *sql.Tx) error {
				return tx.QueryRowContext(ctx, "SELECT current_setting('idle_in_transaction_session_timeout'), current_setting('tcp_user_timeout')").Scan(&idle, &unsent)
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.DB().QueryRowContext(ctx, "SHOW idle_in_transaction_session_timeout").Scan(&after); err != nil {
				t.Fatal(err)
			}
			if idle != want || after != "0" || runtime.GOOS == "linux" && unsent == "0" && want != "0" {
				t.Errorf("IdleTxTimeout %s, cursor %t: idle %s, want %s; unsent %s; after the commit %s, want 0", limit, cursor != nil, idle, want, unsent, after)
			}
		}
	}
}
