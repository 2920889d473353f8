package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// checkTx asks a transaction of a pool that the program opened itself (F9). A checkpoint fails in a transaction that
// holds a lock. A deferred transaction, which has run no statement yet, holds none.
func checkTx(ctx context.Context, tx *sql.Tx, _ time.Duration) (found sqldb.PoolFinding, err error) {
	var busy, pages, moved int
	if err := tx.QueryRowContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)").Scan(&busy, &pages, &moved); err == nil {
		found.Unfit = "_txlock (deferred) must be immediate: a transaction that reads first could not write later"
		return found, nil
	}
	var now string
	err = tx.QueryRowContext(ctx, "SELECT "+dialect.Now).Scan(&now) // other drivers do not know the function
	return found, err
}
