package center

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/schema"
)

// guard is what Open checks before it returns a Center.
type guard struct {
	*Center
	mode SchemaMode
}

// check returns an error if the database cannot provide what the roster's guarantees need.
func (g guard) check(ctx context.Context) error {
	if err := g.server(ctx); err != nil {
		return err
	}
	if err := g.schema(ctx); err != nil {
		return err
	}
	if g.db.Database.CheckTables == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	return g.db.Database.CheckTables(ctx, g.db.Store)
}

const (
	serverTimeout = 30 * time.Second // bounds the questions of Open to the server
	tablesTimeout = 2 * time.Minute  // bounds the wait for a process that creates the tables, and their creation
)

// server connects, and returns an error for a server that cannot hold a roster.
func (g guard) server(open context.Context) error {
	ctx, cancel := context.WithTimeout(open, serverTimeout)
	defer cancel()
	if err := sqldb.Connect(ctx, g.db.Store); err != nil {
		return g.markUnreachable(open, err)
	}
	server, err := g.db.Database.Probe(ctx, g.db.Store)
	if err != nil {
		return g.markUnreachable(open, err)
	}
	g.roster.WriteFence = server.WriteFence
	return nil
}

// schema checks the version of the tables, and creates missing tables if the mode allows it. Many workers may start
// at once on an empty database: while another process migrates, schema waits for it.
func (g guard) schema(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tablesTimeout)
	defer cancel()
	err := schema.Await(ctx, g.db.Store, g.db.Name)
	if !errors.Is(err, schema.ErrMissing) {
		return err
	}
	if g.mode == SchemaRequire || g.mode == SchemaAuto && !g.db.Database.Local {
		return err
	}
	if err := g.createTables(ctx); err != nil {
		return fmt.Errorf("create the tables: %w", err)
	}
	g.log.LogAttrs(ctx, slog.LevelInfo, "created the roster's tables", slog.String("database", g.db.Database.Address))
	return nil
}

func (g guard) createTables(ctx context.Context) error {
	pool := g.db.Store
	if !g.db.Database.Memory {
		own, err := g.db.Database.Pool(sqldb.RoleSchema, sqldb.PoolOptions{Create: true})
		if err != nil {
			return err
		}
		defer own.Close() // its error does not matter: the migration is committed
		pool = own
	}
	_, _, err := schema.Up(ctx, pool, g.db.Name)
	return err
}
