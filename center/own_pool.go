package center

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"weak"

	"github.com/dutyrota/rota/internal/sqldb"
)

// ownPools remembers the pools of the program in whose transactions the fence holds (F9). It keeps none of them alive.
type ownPools struct {
	mu  sync.Mutex
	fit map[weak.Pointer[sql.DB]]bool
}

func (p *ownPools) isFit(db *sql.DB) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fit[weak.Make(db)]
}

// add remembers a pool, and forgets the pools that the garbage collector has freed.
func (p *ownPools) add(db *sql.DB) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fit == nil {
		p.fit = map[weak.Pointer[sql.DB]]bool{}
	}
	maps.DeleteFunc(p.fit, func(pool weak.Pointer[sql.DB], _ bool) bool { return pool.Value() == nil })
	p.fit[weak.Make(db)] = true
}

// checkPool asks a pool of the program, before its first use, for what the fence needs. DB needs no question: its
// connections have been given all of it.
func (c *Center) checkPool(ctx context.Context, db *sql.DB) error {
	if db == c.db.Dealers || c.ownPools.isFit(db) {
		return nil
	}
	found, err := askPool(ctx, c, db)
	if err != nil {
		return fmt.Errorf("ask a pool of %T whether it can be fenced: %w", db.Driver(), err)
	}
	if found.Unfit != "" {
		return fmt.Errorf("%w: pool of %T: %s", ErrUnfitPool, db.Driver(), found.Unfit)
	}
	if found.Warning != "" {
		c.log.LogAttrs(ctx, slog.LevelWarn, "a pool of a dealer: "+found.Warning,
			slog.String("driver", fmt.Sprintf("%T", db.Driver())))
	}
	c.ownPools.add(db)
	return nil
}

// askPool asks in a transaction, because what a connection has outside of one may differ.
func askPool(ctx context.Context, c *Center, db *sql.DB) (sqldb.PoolFinding, error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return sqldb.PoolFinding{}, fmt.Errorf("begin: %w", err)
	}
	defer tx.Rollback() // its error does not matter: the transaction has changed nothing
	found, err := c.db.Database.CheckTx(ctx, tx, c.roster.IdleTxTimeout)
	if err != nil && c.db.Class(err) == sqldb.Other && ctx.Err() == nil { // not an error of the database's driver
		return sqldb.PoolFinding{Unfit: fmt.Sprintf("its driver is none for the roster's database (%s): %v", c.db.Name,
			err)}, nil
	}
	return found, err
}
