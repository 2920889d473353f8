package sqldealer

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/dutyrota/rota/processor"
)

// horizon bounds what a select with a cursor may return: no row below it becomes visible after it was read.
type horizon interface {
	// read returns the value of {{horizon}}, or nil if no row may be read yet. first is the first column of the cursor
	// behind which the select goes on. Several goroutines may call it.
	read(ctx context.Context, d *Dealer, first string, s *processor.Selection) (any, error)

	// included reports whether a row with the value of the horizon may be read.
	included() bool
}

// bounds returns the horizon of the cursor, or nil. The receiver may be nil.
func (c *cursorSpec) bounds() horizon {
	if c == nil {
		return nil
	}
	return c.horizon
}

// xidHorizon is the oldest transaction of PostgreSQL that may still write. The column
// holds the ID of the transaction that wrote the row.
type xidHorizon struct{ column string }

func (xidHorizon) included() bool { return false }

// read reads the horizon before the select takes its snapshot: all transactions below
// it have ended by then, so that the select sees all of their rows.
func (h xidHorizon) read(ctx context.Context, d *Dealer, first string, _ *processor.Selection) (any, error) {
	var oldest, next string
	err := d.database.DB().QueryRowContext(ctx, "SELECT pg_snapshot_xmin(s)::text, pg_snapshot_xmax(s)::text FROM "+
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

// lagHorizon is the largest value of the cursor's first column that was visible a lag
// ago. The user promises that no row becomes visible later than the lag after a row
// with an equal or larger value. Only the clock of this process measures the lag.
type lagHorizon struct {
	column string
	newest *statement
	lag    time.Duration
	now    func() time.Time

	mu      sync.Mutex
	reading bool      // a goroutine executes newest
	marks   []lagMark // by time; the first is the horizon if it is as old as the lag
}

// lagMark is the newest row that was visible at a time.
type lagMark struct {
	value any
	at    time.Time
}

// marksPerLag bounds the marks, and how much later than the lag a row is read.
const marksPerLag = 10

func newLagHorizon(column string, newest *statement, lag time.Duration) *lagHorizon {
	return &lagHorizon{column: column, newest: newest, lag: lag, now: time.Now}
}

func (*lagHorizon) included() bool { return true }

func (h *lagHorizon) read(ctx context.Context, d *Dealer, _ string, s *processor.Selection) (any, error) {
	if h.begin() {
		value, err := h.readNewest(ctx, d, s)
		h.end(value)
		if err != nil {
			return nil, fmt.Errorf("run cursor_newest: %w", err)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.marks) > 0 && h.isRipe(h.marks[0]) {
		return h.marks[0].value, nil
	}
	return nil, nil
}

func (h *lagHorizon) isRipe(m lagMark) bool { return h.now().Sub(m.at) >= h.lag }

// begin reports whether the caller must read the newest row and call end.
func (h *lagHorizon) begin() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.marks); h.reading || n > 0 && h.now().Sub(h.marks[n-1].at) < h.lag/marksPerLag {
		return false
	}
	h.reading = true
	return true
}

// end adds a mark, unless there is no row. Its time is that of the reply: the row was visible before.
func (h *lagHorizon) end(value any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reading = false
	if value != nil {
		h.marks = append(h.marks, lagMark{value, h.now()})
	}
	for len(h.marks) > 1 && h.isRipe(h.marks[1]) {
		h.marks = h.marks[1:]
	}
}

// readNewest returns the value of the newest row, or nil if there is none.
func (h *lagHorizon) readNewest(ctx context.Context, d *Dealer, s *processor.Selection) (value any, err error) {
	rows, err := d.database.DB().QueryContext(ctx, h.newest.text(0),
		h.newest.values(func(name string) any { return commonArg(name, s, h.newest.syntax) })...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, err
	}
	if len(types) != 1 {
		return nil, fmt.Errorf("it must return one column, the largest %s, and returns %d", h.column, len(types))
	}
	if rows.Next() {
		if err := rows.Scan(&value); err != nil {
			return nil, err
		}
		c := newColumn(h.column, types[0].DatabaseTypeName(), d.syntax)
		if err := c.refuseZeroDate(value, d.syntax); err != nil {
			return nil, err
		}
		value = c.value(value)
	}
	return value, rows.Err()
}
