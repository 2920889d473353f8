package sqldealer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/dutyrota/rota/processor"
)

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

// end adds a mark, unless there is no row. Its time is that of the reply: the row was
// visible before.
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
	args := make([]any, len(h.newest.names))
	for i, name := range h.newest.names {
		args[i] = commonArg(name, s)
	}
	rows, err := d.db.QueryContext(ctx, h.newest.text(0), args...)
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
