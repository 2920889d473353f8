package sqldealer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Holder is the oldest transaction of PostgreSQL that has written and not ended. No
// row that was written after it began is below {{horizon}}.
type Holder struct {
	PID         int           // of its session; 0 if the transaction is prepared
	Application string        // the session's name for itself
	State       string        // of the session, such as "idle in transaction"
	Prepared    string        // the name of a prepared transaction
	Age         time.Duration // since it began or was prepared
	Hidden      bool          // this role may not see Application, State and Age
}

// pg_locks shows transactions to each role, pg_stat_activity shows their age only to
// some.
const selectHolder = `
SELECT COALESCE(l.pid, 0), COALESCE(a.application_name, ''), COALESCE(a.state, ''), COALESCE(p.gid, ''),
       CAST(EXTRACT(epoch FROM clock_timestamp() - COALESCE(p.prepared, a.xact_start)) AS double precision)
  FROM pg_locks l
  LEFT JOIN pg_stat_activity a ON a.pid = l.pid
  LEFT JOIN pg_prepared_xacts p ON p.transaction = l.transactionid
 WHERE l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted
   AND l.transactionid = CAST(pg_snapshot_xmin(pg_current_snapshot()) AS xid)`

// FindHolder returns the transaction that holds {{horizon}} of the select back, or nil
// if there is none or the select has no such horizon.
func (d *Dealer) FindHolder(ctx context.Context, db *sql.DB) (*Holder, error) {
	if _, ok := d.horizon().(xidHorizon); !ok {
		return nil, nil
	}
	var h Holder
	var seconds sql.NullFloat64
	err := db.QueryRowContext(ctx, selectHolder).Scan(&h.PID, &h.Application, &h.State, &h.Prepared, &seconds)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("find the oldest transaction that writes: %w", err)
	}
	h.Age, h.Hidden = time.Duration(seconds.Float64*float64(time.Second)), !seconds.Valid
	return &h, nil
}
