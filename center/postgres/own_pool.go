package postgres

import (
	"context"
	"database/sql"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// checkTx asks a transaction of a pool that the program opened itself (F9). The limit for idle transactions needs no
// question: the fence sets it in each transaction.
func checkTx(ctx context.Context, tx *sql.Tx, _ time.Duration) (found sqldb.PoolFinding, err error) {
	var encoding, readOnly string
	err = tx.QueryRowContext(ctx,
		`SELECT current_setting('client_encoding'), current_setting('transaction_read_only')`).Scan(&encoding, &readOnly)
	switch {
	case err != nil:
	case encoding != "UTF8":
		found.Unfit = "client_encoding (" + encoding + ") must be UTF8: names would be read as others"
	case readOnly != "off":
		found.Unfit = "transaction_read_only (" + readOnly + ") must be off: the fence locks rows"
	}
	return found, err
}
