package center

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/schema"
)

// Migrate brings the schema of a database to this program's version, and returns the versions before and after. It
// refuses the servers that Open refuses. Several processes may call it at once. Only ctx bounds its time. Migrate
// retries a migration that other transactions block, such as a backup, for a minute. A migration waits for the users of
// a table for half a second at a time on PostgreSQL and for two seconds on MySQL, because later users of the table wait
// behind it.
func Migrate(ctx context.Context, db Database) (from, to int64, err error) {
	err = withRole(ctx, db, sqldb.RoleSchema, func(pool *sql.DB) error {
		found, err := db.Probe(ctx, pool)
		if err != nil {
			return err
		}
		from, to, err = schema.Up(ctx, pool, found.Name)
		if err == nil && db.CheckTables != nil {
			err = db.CheckTables(ctx, pool)
		}
		return err
	})
	return from, to, err
}

// MigrationStatus lists the migrations of a database, the pending ones included.
func MigrationStatus(ctx context.Context, db Database) (list []schema.Migration, err error) {
	err = withRole(ctx, db, sqldb.RoleStore, func(pool *sql.DB) error {
		list, err = schema.Status(ctx, pool, db.Dialect.Name)
		return err
	})
	return list, err
}

// withRole calls f with a connected pool. Only a migration creates a database that does not exist.
func withRole(ctx context.Context, db Database, r sqldb.Role, f func(*sql.DB) error) error {
	if _, err := DialectOf(db); err != nil {
		return err
	}
	pool, err := db.Pool(r, sqldb.PoolOptions{Create: r == sqldb.RoleSchema})
	if err != nil {
		return fmt.Errorf("open %s: %w", db.Address, err)
	}
	err = sqldb.Connect(ctx, pool)
	if err == nil {
		err = f(pool)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", db.Address, sqldb.OneLine(err)), pool.Close())
	}
	return pool.Close()
}
