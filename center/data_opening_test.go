package center_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/internal/sqldb"
)

// silent is a server that does not answer a connection before its context has ended.
type silent struct{ driver.Connector }

// Connect implements driver.Connector.
func (silent) Connect(ctx context.Context) (driver.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A call that waits for another one to open a silent data database ends with its context.
func TestWaitForASilentDatabaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := center.Open(t.Context(), sqlite.URL("sqlite::memory:"), center.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		db := sqlite.URL("sqlite::memory:")
		connect := db.Connector
		db.Connector = func(r sqldb.Role, o sqldb.PoolOptions) (driver.Connector, error) {
			c, err := connect(r, o)
			return silent{c}, err
		}
		d, err := c.FenceIn("silent", db)
		if err != nil {
			t.Fatal(err)
		}
		first := make(chan error)
		go func() {
			_, err := d.Reach(t.Context())
			first <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := d.Reach(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want that of the context", err)
		}
		if err := <-first; err == nil {
			t.Error("a silent database was reached")
		}
	})
}
