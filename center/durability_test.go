package center_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
)

// L9: the default of a server is synchronous_commit = off, and it crashes after an acknowledged commit. What the roster
// and fenced transactions have committed is there after the restart, also through a PgBouncer.
func TestCommitsSurviveACrashWithoutSynchronousCommit(t *testing.T) {
	t.Parallel()
	server := testdb.Own(t, testdb.Postgres)
	setUp := centertest.Open(t, server.URL(), center.Options{})
	centertest.Exec(t, setUp, "ALTER SYSTEM SET synchronous_commit = off", "ALTER SYSTEM SET wal_writer_delay = 10000",
		"SELECT pg_reload_conf()")
	centertest.Define(t, setUp, "settle", center.Settings{Queues: 1})
	register(t, setUp)
	must(t, setUp.Close())
	for name, url := range map[string]string{"direct": server.URL(), "pooled": testdb.Pooled(t, server.URL()).URL()} {
		for what, step := range map[string]func(context.Context, *center.Center) error{
			"a transaction of the roster": func(ctx context.Context, c *center.Center) error {
				return c.Roster().UnderLock(ctx, "settle", func(ctx context.Context, l *roster.LockTx) error {
					return writeMark(ctx, l.Raw)
				})
			},
			"a fenced transaction": func(ctx context.Context, c *center.Center) error {
				return center.InTx(ctx, c.DB(), func(tx *sql.Tx) error { return writeMark(ctx, tx) })
			},
			"a fenced transaction without an idle limit": func(ctx context.Context, c *center.Center) error {
				c.Roster().IdleTxTimeout = 0
				return center.InTx(ctx, c.DB(), func(tx *sql.Tx) error { return writeMark(ctx, tx) })
			},
			"a heartbeat": func(ctx context.Context, c *center.Center) error {
				_, err := c.Roster().SendHeartbeat(ctx, roster.Heartbeat{
					Token:   "x",
					Servers: []roster.ServerReport{{UUID: web1, OldToken: "x", TaskType: "settle", State: roster.StateServing}},
				})
				return err
			},
		} {
			c := centertest.Open(t, url, center.Options{})
			centertest.Exec(t, c, "SELECT pg_switch_wal()", "CHECKPOINT") // nothing else is left to write
			before := marks(t, c)
			ctx := c.Bind(t.Context(), center.Batch{
				Server: web1, TaskType: "settle", Queue: center.QueueEpoch{ID: "0", Epoch: 1},
			})
			must(t, step(ctx, c))
			must(t, server.Kill())
			must(t, c.Close())
			must(t, server.Start())
			c = centertest.Open(t, server.URL(), center.Options{})
			if after := marks(t, c); after != before+1 {
				t.Errorf("%s, %s: it was acknowledged, and after the crash the server does not have it", name, what)
			}
			must(t, c.Close())
		}
	}
}

// register registers a server that owns queue 0.
func register(t *testing.T, c *center.Center) {
	t.Helper()
	_, err := c.Roster().Register(t.Context(), roster.ServerInfo{
		UUID: web1, TaskType: "settle", HeartbeatToken: "x", JudgeDeadInterval: time.Hour,
	})
	must(t, err)
	centertest.Exec(t, c, "UPDATE schedule_queue SET cur_server = '"+web1+"', epoch = 1")
}

// writeMark changes what marks counts.
func writeMark(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, "UPDATE schedule_server SET beat_count = beat_count + 1")
	return err
}

func marks(t *testing.T, c *center.Center) (n int) {
	t.Helper()
	must(t, c.DB().QueryRowContext(t.Context(), "SELECT beat_count FROM schedule_server").Scan(&n))
	return n
}

// L9: all connections to a SQLite file wait until a commit is on disk.
func TestSQLiteCommitsAreSynchronous(t *testing.T) {
	t.Parallel()
	c := centertest.Open(t, "sqlite:"+filepath.Join(t.TempDir(), "rota.db"), center.Options{})
	for name, pool := range pools(c) {
		var level int
		if err := pool.QueryRowContext(t.Context(), "PRAGMA synchronous").Scan(&level); err != nil || level != 2 {
			t.Errorf("%s: PRAGMA synchronous is %d, want 2 (FULL): %v", name, level, err)
		}
	}
}

// A migration refuses the servers that a worker refuses.
func TestMigrateProbesLikeAWorker(t *testing.T) {
	t.Parallel()
	server := testdb.Own(t, testdb.MySQL)
	administrator := centertest.Open(t, server.URL(), center.Options{})
	standby, _ := testdb.Standby(t, testdb.Own(t, testdb.Postgres))
	for _, tt := range []struct{ url, statement, want string }{
		{server.URL(), "SELECT 1", ""},
		{server.URL(), "SET GLOBAL read_only = 1", "the database is read-only (read_only = 1 on this server: a replica?)"},
		{server.URL(), "SET GLOBAL read_only = 0", ""},
		{server.URL(), "ALTER TABLE schedule_schema_lock ENGINE = MyISAM", "table schedule_schema_lock has the engine MyISAM"},
		{standby.URL(), "SELECT 1", "this PostgreSQL is a standby (a replica): connect to the primary"},
	} {
		centertest.Exec(t, administrator, tt.statement)
		_, _, err := center.Migrate(t.Context(), anydb.URL(tt.url))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("after %q: got %v, want %q", tt.statement, err, tt.want)
		}
	}
}
