package manager_test

import (
	"context"
	"database/sql/driver"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/manager"
)

// S12: a database that takes a second for each statement of a heartbeat is too slow for one task type of a process. The
// lease of the other task type, whose judge_dead_interval is long enough, never expires, and its work goes on.
func TestShortIntervalsCostNoOtherLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := sqlite.URL("sqlite:" + filepath.Join(t.TempDir(), "roster"))
		connect := d.Connector
		var late lateHeartbeats
		d.Connector = func(r sqldb.Role, o sqldb.PoolOptions) (driver.Connector, error) {
			c, err := connect(r, o)
			if r != sqldb.RoleHeartbeat {
				return c, err
			}
			late.Connector = c
			return &late, err
		}
		c, err := center.Open(t.Context(), d, center.Options{Schema: center.SchemaCreate})
		if err != nil {
			t.Fatal(err)
		}
		cl := &cluster{T: t, c: c, inFlight: map[int]string{}, done: map[string]int{}, first: map[string]time.Time{}, logged: new(lockedBuffer)}
		t.Cleanup(cl.close)
		healthy, short := fast, fast
		short.HeartbeatInterval, short.JudgeDeadInterval = 100*time.Millisecond, time.Second
		m, err := manager.New(c, manager.Config{Grace: time.Second, Logger: cl.logger()},
			manager.Serve("healthy", &work{cl: cl, name: "healthy", takes: time.Second}, healthy),
			manager.Serve("short", idle{}, short))
		if err != nil {
			t.Fatal(err)
		}
		w := cl.run(m)
		time.Sleep(10 * time.Second)
		if err := w.Ready(); err != nil {
			t.Fatal(err)
		}
		late.by.Store(int64(time.Second))
		time.Sleep(20 * time.Second)
		for range 30 {
			before := cl.executed("healthy")
			time.Sleep(10 * time.Second)
			if n := cl.executed("healthy") - before; n < 30 {
				t.Fatalf("%d items of the healthy task type in ten seconds, want about 50", n)
			}
		}
		late.by.Store(0)
		time.Sleep(10 * time.Second)
		if err := w.Ready(); err != nil {
			t.Error(err)
		}
		if err := cl.leave(w); err != nil {
			t.Error(err)
		}
	})
}

// lateHeartbeats makes connections on which each statement waits first, for by.
type lateHeartbeats struct {
	driver.Connector
	by atomic.Int64
}

// Connect implements driver.Connector.
func (l *lateHeartbeats) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := l.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return lateConn{conn.(sqldb.OwnConn), l}, nil
}

type lateConn struct {
	sqldb.OwnConn
	late *lateHeartbeats
}

// ExecContext implements driver.ExecerContext.
func (c lateConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.wait(ctx); err != nil {
		return nil, err
	}
	return c.OwnConn.ExecContext(ctx, query, args)
}

// QueryContext implements driver.QueryerContext.
func (c lateConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.wait(ctx); err != nil {
		return nil, err
	}
	return c.OwnConn.QueryContext(ctx, query, args)
}

func (c lateConn) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(max(time.Duration(c.late.by.Load()), time.Nanosecond)):
		return nil
	}
}
