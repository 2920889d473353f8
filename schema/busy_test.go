package schema_test

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/schema"
)

// waiters counts the migrations that wait for the users of a table.
var waiters = map[string]string{
	testdb.Postgres: `SELECT COUNT(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND NOT granted
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
	testdb.MySQL:   `SELECT COUNT(*) FROM performance_schema.processlist` + waiting,
	testdb.MariaDB: `SELECT COUNT(*) FROM information_schema.processlist` + waiting,
}

const waiting = ` WHERE db = DATABASE() AND state = 'Waiting for table metadata lock'`

// A statement that changes a table waits until no transaction uses the table. All later statements wait behind it, the
// heartbeats too.
func TestMigrationsLetOthersPass(t *testing.T) {
	for _, kind := range slices.Sorted(maps.Keys(waiters)) {
		t.Run(kind, func(t *testing.T) { testMigrationLetsOthersPass(t, testdb.URL(t, kind), waiters[kind]) })
	}
}

func testMigrationLetsOthersPass(t *testing.T, url, waiters string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := centertest.Open(t, url, center.Options{})
	schema.TeachLater(t, schema.Latest()+1)
	heartbeat := newHeart(ctx, t, c)
	reader, err := c.DB().BeginTx(ctx, nil) // as a backup program
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Rollback()
	count := func(row *sql.Row) (n int) {
		t.Helper()
		if err := row.Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	count(reader.QueryRowContext(ctx, `SELECT COUNT(*) FROM schedule_queue`))
	count(reader.QueryRowContext(ctx, `SELECT COUNT(*) FROM schedule_server`))
	migrated := make(chan error, 1)
	go func() {
		_, to, err := center.Migrate(t.Context(), anydb.URL(url))
		if err == nil && to != schema.Latest() {
			t.Errorf("migrated to version %d", to)
		}
		migrated <- err
	}()
	for range 2 { // the migration tries again
		for waiting := 0; waiting == 0; {
			waiting = count(c.DB().QueryRowContext(ctx, waiters))
		}
		heartbeat() // while the reader still uses the tables
		count(c.DB().QueryRowContext(ctx, `SELECT COUNT(*) FROM schedule_queue`))
	}
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		t.Fatal(err)
	}
	if n := count(c.DB().QueryRowContext(ctx, `SELECT COUNT(later) FROM schedule_queue`)); n != 1 {
		t.Errorf("%d queues, want 1", n)
	}
}

// newHeart registers a server and returns a function that sends a heartbeat of it, until one succeeds or ctx ends.
func newHeart(ctx context.Context, t *testing.T, c *center.Center) (heartbeat func()) {
	t.Helper()
	if _, err := ops.New(c).Tasks().Define(ctx, "settle", center.Settings{Queues: 1}); err != nil {
		t.Fatal(err)
	}
	_, err := c.Roster().Register(ctx, roster.ServerInfo{UUID: "a", TaskType: "settle", JudgeDeadInterval: 10 * time.Second, HeartbeatToken: "0"})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	return func() {
		t.Helper()
		n++
		b := roster.Heartbeat{
			Token:   fmt.Sprint(n),
			Servers: []roster.ServerReport{{UUID: "a", OldToken: fmt.Sprint(n - 1), TaskType: "settle", State: ops.StateServing}},
		}
		for {
			replies, err := c.Roster().SendHeartbeat(ctx, b)
			if err == nil && len(replies) == 1 {
				return
			}
			if ctx.Err() != nil {
				t.Fatalf("no heartbeat beside a migration that waits: %v", err)
			}
		}
	}
}
