package sqldealer

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/dutyrota/rota/processor"
)

// mostPeeked is how many selects the statement of Peek has at most.
const mostPeeked = 200

// Peek implements processor.Peeker with the select of each queue, in one statement: SELECT EXISTS (select of the first
// queue), EXISTS (select of the second) ... It has one row, and the database ends each part at its first row. A list of
// rows, by UNION ALL and WHERE EXISTS, needs FROM DUAL on some databases only.
func (d *Dealer) Peek(ctx context.Context, idle []processor.Selection) ([]string, error) {
	d, err := d.at(idle[0].Queue.Database)
	if err == nil {
		err = d.sel.checkNumbered(idle[0].Queue)
	}
	if err != nil {
		return nil, err
	}
	var bound any // of all queues
	if d.cursor.bounds() != nil {
		position, err := d.cursor.position(idle[0].Queue.Cursor)
		if err == nil {
			bound, err = d.cursor.horizon.read(ctx, d, position[0], &idle[0])
		}
		if err != nil || bound == nil {
			return nil, err
		}
	}
	return d.peek(ctx, idle, bound)
}

// peek returns the queues whose select finds a row.
func (d *Dealer) peek(ctx context.Context, idle []processor.Selection, bound any) (busy []string, err error) {
	if d.noPeek.Load() != nil {
		return nil, processor.ErrNoPeek
	}
	for len(idle) > 0 {
		n := min(len(idle), d.sel.mostPeeked(d.syntax))
		var values []any
		for i := range idle[:n] {
			a := args{Selection: &idle[i], shape: &d.shape, cursor: d.cursor, bound: bound}
			if d.cursor != nil {
				if a.position, err = d.cursor.position(a.Queue.Cursor); err != nil {
					return nil, err
				}
			}
			a.Held = nil // the queue holds no keys, or it would not be idle
			values = append(values, d.sel.values(a.value)...)
		}
		found := make([]sql.NullBool, n)
		targets := make([]any, n)
		for i := range found {
			targets[i] = &found[i]
		}
		if err := d.database.DB().QueryRowContext(ctx, d.sel.peekText(n), values...).Scan(targets...); err != nil {
			return nil, fmt.Errorf("ask which of %d queues have rows%s: %w", n, in(d.name), err)
		}
		for i, f := range found {
			if f.Bool {
				busy = append(busy, idle[i].Queue.ID)
			}
		}
		idle = idle[n:]
	}
	return busy, nil
}

// mostPeeked returns how many selects fit into the statement of Peek.
func (s *statement) mostPeeked(of syntax) int {
	return max(1, min(mostPeeked, of.mostParameters/max(1, s.markCount(0))))
}

// peekText returns the statement of Peek for n queues. A select may end with a semicolon, or with a comment up to the
// end of the line.
func (s *statement) peekText(n int) string {
	sel := *s
	last := len(sel.parts) - 1
	sel.parts = append(sel.parts[:last:last], strings.TrimRight(sel.parts[last], "; \t\r\n"))
	var b strings.Builder
	marks := 0
	for i := range n {
		if b.WriteString(", EXISTS ("); i == 0 {
			b.Reset()
			b.WriteString("SELECT EXISTS (")
		}
		marks += sel.write(&b, marks, 0)
		b.WriteString("\n)")
	}
	return b.String()
}

// probePeek prepares the statement of Peek, and notes if the database refuses it: for instance, a select that begins
// with WITH and changes rows is no part of another statement. Its queues are then selected one by one.
func (d *Dealer) probePeek(ctx context.Context, tx *sql.Tx) error {
	const queues = 2
	text := d.sel.peekText(queues)
	err := d.syntax.prepare(ctx, tx, text, queues*d.sel.markCount(0))
	refused := refusalOf(err, text)
	d.noPeek.Store(refused)
	if refused != nil {
		return nil
	}
	return err
}

// PeekRefused returns why the database refuses the statement of Peek, as Check has found; nil if it does not.
func (d *Dealer) PeekRefused() error {
	if r := d.noPeek.Load(); r != nil {
		return r
	}
	return nil
}
