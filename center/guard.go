package center

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/schema"
)

// guard returns an error if the database cannot provide what the roster's guarantees need.
func (c *Center) guard(ctx context.Context, mode SchemaMode) error {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if err := sqldb.Connect(ctx, c.db.Store); err != nil {
		return err
	}
	server, err := c.db.Database.Probe(ctx, c.db.Store)
	if err != nil {
		return err
	}
	c.roster.WriteFence = server.WriteFence
	if err := c.guardSchema(ctx, mode); err != nil {
		return err
	}
	if c.db.Database.CheckTables == nil {
		return nil
	}
	return c.db.Database.CheckTables(ctx, c.db.Store)
}

// openTimeout bounds Open: connect, probe the server, create the tables.
const openTimeout = 30 * time.Second

// guardSchema checks the version of the tables, and creates missing tables if the mode allows it.
func (c *Center) guardSchema(ctx context.Context, mode SchemaMode) error {
	err := schema.Check(ctx, c.db.Store, c.db.Name)
	if !errors.Is(err, schema.ErrMissing) {
		return err
	}
	if mode == SchemaRequire || mode == SchemaAuto && !c.db.Database.Local {
		return err
	}
	if err := c.createTables(ctx); err != nil {
		return fmt.Errorf("create the tables: %w", err)
	}
	c.log.WithField("database", c.db.Database.Address).Info("created the roster's tables")
	return nil
}

func (c *Center) createTables(ctx context.Context) error {
	pool := c.db.Store
	if !c.db.Database.Memory {
		own, err := c.db.Database.Pool(sqldb.RoleSchema, true)
		if err != nil {
			return err
		}
		defer own.Close() // its error does not matter: the migration is committed
		pool = own
	}
	_, _, err := schema.Up(ctx, pool, c.db.Name)
	return err
}
