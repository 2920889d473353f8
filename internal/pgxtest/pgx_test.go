// Package pgxtest runs the roster over pgx. It is a module of its own, so that pgx does not get into the go.sum of users.
package pgxtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/center/postgres"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

func TestMain(m *testing.M) {
	centertest.Database = overPgx
	m.Run()
}

// pingEvery is short for the tests. In a program 30 s are enough.
const pingEvery = time.Second

// overPgx returns the database at the URL of a test server, over pgx.
func overPgx(raw string) center.Database {
	u, err := url.Parse(raw)
	if err != nil {
		return center.Database{Err: err}
	}
	q := u.Query()
	q.Del("binary_parameters") // of lib/pq
	u.RawQuery = q.Encode()
	cfg, err := pgx.ParseConfig(u.String())
	if err != nil {
		return center.Database{Err: err}
	}
	db := postgres.Connector(stdlib.GetConnector(*cfg))
	db.Listen = listen(cfg, pingEvery)
	db.Local = true // the suite creates the tables
	return db
}

func TestConformance(t *testing.T) {
	t.Parallel()
	centertest.Run(t, testdb.URL(t, testdb.Postgres))
}

// Behind PgBouncer in transaction mode, pgx must not prepare statements.
func TestConformanceBehindPgBouncer(t *testing.T) {
	t.Parallel()
	pooled := testdb.Pooled(t, testdb.URL(t, testdb.Postgres)).URL()
	centertest.RunAbout(t, pooled+"&default_query_exec_mode=exec", centertest.Session)
}

// A statement ends with its context when the network is dead, and the pool heals.
func TestDeadNetwork(t *testing.T) {
	t.Parallel()
	raw, p := testdb.Through(t, testdb.URL(t, testdb.Postgres))
	c := centertest.Open(t, raw, center.Options{})
	p.EndsAndHeals(t, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return c.CheckWrite(ctx)
	})
}

// F9: InTx takes a pool of pgx beside a roster over lib/pq, and refuses one that only reads. (lib/pq begins its
// transactions READ WRITE.)
func TestOwnPools(t *testing.T) {
	t.Parallel()
	raw := testdb.URL(t, testdb.Postgres)
	c, err := center.Open(t.Context(), postgres.URL(raw), center.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	centertest.Define(t, c, "settle", center.Settings{Queues: 1})
	centertest.Exec(t, c, "UPDATE schedule_queue SET cur_server = 'A', epoch = 7")
	ctx := c.Bind(t.Context(), center.Batch{Server: "A", TaskType: "settle", Queue: center.QueueEpoch{ID: "0", Epoch: 7}})
	for readOnly, want := range map[string]error{"off": nil, "on": center.ErrUnfitPool} {
		cfg, err := pgx.ParseConfig(raw)
		if err != nil {
			t.Fatal(err)
		}
		delete(cfg.RuntimeParams, "binary_parameters") // of lib/pq
		cfg.RuntimeParams["default_transaction_read_only"] = readOnly
		db := stdlib.OpenDB(*cfg)
		defer db.Close()
		err = center.InTx(ctx, db, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE schedule_task_type SET task_parameter = 'written'")
			return err
		})
		if !errors.Is(err, want) {
			t.Errorf("default_transaction_read_only = %s: error %v, want %v", readOnly, err, want)
		}
	}
}

// orders is a dealer that settles the rows of a table in fenced transactions.
type orders struct{ db *sql.DB }

// Select implements processor.TaskDealer.
func (o orders) Select(ctx context.Context, s processor.Selection) (ids []int64, err error) {
	rows, err := o.db.QueryContext(ctx, `SELECT id FROM orders WHERE settled = 0 AND mod(id, $1) = $2 ORDER BY id LIMIT $3`, s.Total, s.Queue.Index, s.Limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// Execute implements processor.TaskDealer.
func (o orders) Execute(ctx context.Context, ids []int64) error {
	return center.InTx(ctx, o.db, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE orders SET settled = settled + 1 WHERE id = ANY($1)`, ids)
		return err
	})
}

// Two workers over pgx settle each row once.
func TestWorkers(t *testing.T) {
	t.Parallel()
	raw := testdb.URL(t, testdb.Postgres)
	c := centertest.Open(t, raw, center.Options{})
	centertest.Exec(t, c, `CREATE TABLE orders (id bigint PRIMARY KEY, settled bigint NOT NULL DEFAULT 0)`,
		`INSERT INTO orders (id) SELECT generate_series(1, 2000)`)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for range 2 {
		worker := centertest.Open(t, raw, center.Options{})
		m, err := manager.New(worker, manager.Config{}, manager.Serve("settle", orders{worker.DB()},
			manager.Settings{Queues: 4, ExecuteNumber: 50, HeartbeatInterval: time.Second, JudgeDeadInterval: 5 * time.Second}))
		if err != nil {
			t.Fatal(err)
		}
		go func() { ended <- m.Run(ctx) }()
	}
	counts := func() (got string) {
		var once, more int
		if err := c.DB().QueryRowContext(t.Context(), `SELECT count(*) FILTER (WHERE settled = 1), count(*) FILTER (WHERE settled > 1) FROM orders`).Scan(&once, &more); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d once, %d more than once", once, more)
	}
	const want = "2000 once, 0 more than once"
	for deadline := time.Now().Add(time.Minute); counts() != want; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("settled after a minute: %s, want %s", counts(), want)
		}
	}
	stop()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	var left int
	if err := c.DB().QueryRowContext(t.Context(), `SELECT count(*) FROM schedule_server`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d servers are left, want none: %v", left, err)
	}
}
