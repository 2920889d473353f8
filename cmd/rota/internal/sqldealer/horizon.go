package sqldealer

import (
	"context"
	"fmt"
	"strconv"

	"github.com/dutyrota/rota/processor"
)

// horizon bounds what a select with a cursor may return: no row below it becomes
// visible after it was read.
type horizon interface {
	// read returns the value of {{horizon}}, or nil if no row may be read yet.
	// first is the first column of the cursor behind which the select goes on. Several
	// goroutines may call it.
	read(ctx context.Context, d *Dealer, first string, s *processor.Selection) (any, error)

	// included reports whether a row with the value of the horizon may be read.
	included() bool
}

// horizon returns the horizon of the cursor, or nil.
func (d *Dealer) horizon() horizon {
	if d.cursor == nil {
		return nil
	}
	return d.cursor.horizon
}

// xidHorizon is the oldest transaction of PostgreSQL that may still write. The column
// holds the ID of the transaction that wrote the row.
type xidHorizon struct{ column string }

func (xidHorizon) included() bool { return false }

// read reads the horizon before the select takes its snapshot: all transactions below
// it have ended by then, so that the select sees all of their rows.
func (h xidHorizon) read(ctx context.Context, d *Dealer, first string, _ *processor.Selection) (any, error) {
	var oldest, next string
	err := d.db.QueryRowContext(ctx, "SELECT pg_snapshot_xmin(s)::text, pg_snapshot_xmax(s)::text FROM "+
		"pg_current_snapshot() s").Scan(&oldest, &next)
	if err != nil {
		return nil, fmt.Errorf("read the horizon: %w", err)
	}
	if _, err := strconv.ParseUint(first, 10, 64); err != nil {
		return nil, fmt.Errorf("the cursor's %s (%s) must be the ID of a transaction, such as 0", h.column, first)
	}
	if order, _ := compareValues(first, next, true); order > 0 {
		return nil, fmt.Errorf("the cursor's %s (%s) is above the next transaction of this database (%s): "+
			"it comes from another one, such as a dump's; new rows would be lost; set %[1]s of all rows and the cursor anew",
			h.column, first, next)
	}
	return oldest, nil
}
