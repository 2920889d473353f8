package mysql

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"sync"
)

// With syncWait in syncVariable, SELECT and BEGIN (1) and UPDATE and DELETE (2) wait until their node has applied what
// the cluster has committed (F7). Without 2, a guarded UPDATE on a node that lags reports a miss.
const (
	syncVariable = "wsrep_sync_wait"
	syncWait     = "3"
)

// causal is a connector whose sessions wait for the cluster if the server is a node of Galera. It asks the server at
// the first connection, because a server without Galera does not know the variable.
type causal struct {
	sqldriver.Connector // for a server without Galera
	waiting             sqldriver.Connector

	mu     sync.Mutex
	chosen sqldriver.Connector // nil until the server has answered
}

// Connect implements driver.Connector.
func (c *causal) Connect(ctx context.Context) (sqldriver.Conn, error) {
	if chosen := c.choice(); chosen != nil {
		return chosen.Connect(ctx)
	}
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	galera, err := isGalera(ctx, conn.(sqldriver.QueryerContext)) // the driver's connections implement it
	if err == nil && !galera {
		c.choose(c.Connector)
		return conn, nil
	}
	if err := errors.Join(err, conn.Close()); err != nil {
		return nil, fmt.Errorf("ask whether the server is a node of Galera: %w", err)
	}
	c.choose(c.waiting)
	return c.waiting.Connect(ctx)
}

func (c *causal) choice() sqldriver.Connector {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.chosen
}

func (c *causal) choose(connector sqldriver.Connector) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chosen = connector
}

// isGalera reports whether a server replicates with Galera. A server that does not know the variable returns no row.
func isGalera(ctx context.Context, conn sqldriver.QueryerContext) (bool, error) {
	rows, err := conn.QueryContext(ctx, "SHOW VARIABLES LIKE '"+wsrepOn+"'", nil)
	if err != nil {
		return false, err
	}
	row := make([]sqldriver.Value, len(rows.Columns()))
	err = rows.Next(row)
	found := err == nil
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err := errors.Join(err, rows.Close()); err != nil || !found {
		return false, err
	}
	return isOn(fmt.Sprintf("%s", row[1])), nil
}
