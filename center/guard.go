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
	if err := c.guardServer(ctx); err != nil {
		return err
	}
	if err := c.guardSchema(ctx, mode); err != nil {
		return err
	}
	if c.db.Database.CheckTables == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	return c.db.Database.CheckTables(ctx, c.db.Store)
}

const (
	serverTimeout = 30 * time.Second // bounds the questions of Open to the server
	tablesTimeout = 2 * time.Minute  // bounds the wait for a process that creates the tables, and their creation
)

// guardServer connects, and returns an error for a server that cannot hold a roster.
func (c *Center) guardServer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	if err := sqldb.Connect(ctx, c.db.Store); err != nil {
		return err
	}
	server, err := c.db.Database.Probe(ctx, c.db.Store)
	if err != nil {
		return err
	}
	c.roster.WriteFence = server.WriteFence
	return nil
}

// guardSchema checks the version of the tables, and creates missing tables if the mode allows it. Many workers may start
// at once on an empty database: while another process migrates, guardSchema waits for it.
func (c *Center) guardSchema(ctx context.Context, mode SchemaMode) error {
	ctx, cancel := context.WithTimeout(ctx, tablesTimeout)
	defer cancel()
	err := schema.Await(ctx, c.db.Store, c.db.Name)
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
		own, err := c.db.Database.Pool(sqldb.RoleSchema, sqldb.PoolOptions{Create: true})
		if err != nil {
			return err
		}
		defer own.Close() // its error does not matter: the migration is committed
		pool = own
	}
	_, _, err := schema.Up(ctx, pool, c.db.Name)
	return err
}
