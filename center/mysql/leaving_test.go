package mysql

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
)

// After a fail-over the old primary is read-only. A pool leaves it: a statement outside of a transaction goes on over
// another connection, and a transaction fails with the reason and succeeds when it is tried again.
func TestThePoolLeavesAReadOnlyServer(t *testing.T) {
	for _, kind := range []string{testdb.MySQL, testdb.MariaDB} {
		t.Run(kind, func(t *testing.T) {
			old, next := testdb.Own(t, kind), testdb.Own(t, kind)
			primary := newScene(t, kind, old.URL())
			for _, s := range []*scene{primary, newScene(t, kind, next.URL())} {
				s.do("CREATE USER app@'%' IDENTIFIED BY ''", "GRANT ALL ON test.* TO app@'%'")
			}
			through, proxy := testdb.Through(t, strings.Replace(old.URL(), "root", "app", 1))
			pools := map[string]*sql.DB{"own": ownPool(t, through)}
			for role, name := range map[sqldb.Role]string{
				sqldb.RoleDealers: "dealers", sqldb.RoleStore: "store", sqldb.RoleHeartbeat: "heartbeat",
			} {
				pools[name] = open(t, through, role)
			}
			for _, db := range pools {
				if err := errors.Join(update(t.Context(), db), update(t.Context(), db)); err != nil { // heartbeats prepare the second
					t.Fatal(err)
				}
			}
			primary.do("SET GLOBAL read_only = 1")
			for name, db := range pools {
				if err := update(t.Context(), db); !isToldReadOnly(err) {
					t.Errorf("%s: %v, want that the database is read-only", name, err)
				}
			}
			tx, err := pools["dealers"].BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := proxy.Redirect(next.URL()); err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ExecContext(t.Context(), "UPDATE items SET n = 3"); !isToldReadOnly(err) || !dialect.Retryable(err) {
				t.Errorf("a transaction: %v, want that the database is read-only and that it can be tried again", err)
			}
			_ = tx.Rollback() // the connection has ended
			if tx, err = pools["dealers"].BeginTx(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ExecContext(t.Context(), "UPDATE items SET n = 3"); err != nil {
				t.Errorf("the next transaction: %v", err)
			}
			if err := tx.Commit(); err != nil {
				t.Error(err)
			}
			for name, db := range pools {
				if err := update(t.Context(), db); err != nil {
					t.Errorf("%s: the pool still leads to the old primary: %v", name, err)
				}
			}
		})
	}
}

func isToldReadOnly(err error) bool {
	return errors.Is(err, sqldb.ErrReadOnly) && dialect.Class(err) == sqldb.ReadOnly && dialect.Transient(err) &&
		strings.Contains(err.Error(), "the database is read-only: Error 1290")
}

func update(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, "UPDATE items SET n = ?", 2)
	return err
}

// ownPool returns a pool over connections that the program makes itself.
func ownPool(t *testing.T, raw string) *sql.DB {
	t.Helper()
	pool, err := Connector(ownConnectorOf(t, ownConfig(t, raw))).Pool(sqldb.RoleStore, sqldb.PoolOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
	return pool
}
