package sqldealer

import (
	"context"
	"database/sql"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/processor"
)

var (
	_ processor.TaskDealer[Row] = (*Dealer)(nil)
	_ processor.Keyed[Row]      = keyed{}
	_ processor.Cursored[Row]   = cursored{}
	_ processor.Paged[Row]      = paged{}
	_ processor.Discarder[Row]  = discarder{}
	_ processor.Backlogger      = (*Dealer)(nil)
)

// withCapabilities returns the dealer with the capabilities that follow from the
// statements. With a key it is Keyed: rows fail one by one. With {{cursor}} it is
// Cursored: rows are read in order and never twice. With {{after}} it is Paged:
// failed rows hide no others. With discard it is a Discarder.
func (d *Dealer) withCapabilities() processor.TaskDealer[Row] {
	discards := discarder{d}
	switch {
	case d.shape.key == 0:
		return d
	case d.cursor != nil && d.discard != nil:
		return struct {
			cursored
			discarder
		}{cursored{keyed{d}}, discards}
	case d.cursor != nil:
		return cursored{keyed{d}}
	case d.sel.usesColumns(after) && d.discard != nil:
		return struct {
			paged
			discarder
		}{paged{keyed{d}}, discards}
	case d.sel.usesColumns(after):
		return paged{keyed{d}}
	case d.discard != nil:
		return struct {
			keyed
			discarder
		}{keyed{d}, discards}
	}
	return keyed{d}
}

// keyed is a Dealer whose rows have a key.
type keyed struct{ *Dealer }

// Key implements processor.Keyed.
func (k keyed) Key(r Row) string { return k.shape.keyOf(r) }

// paged is a Dealer whose select can go on behind the key of a row.
type paged struct{ keyed }

// Position implements processor.Paged.
func (p paged) Position(r Row) string { return p.shape.keyOf(r) }

// discarder is a Dealer with a statement for rows that are given up.
type discarder struct{ dealer *Dealer }

// Discard implements processor.Discarder: it runs the statement for the row in a fenced transaction.
func (d discarder) Discard(ctx context.Context, r Row, cause error) error {
	return center.InTx(ctx, d.dealer.db, func(tx *sql.Tx) error {
		return d.dealer.discard.run(ctx, tx, []Row{r}, cause)
	})
}
