package cli

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/ops"
)

// Cell is a value in a table for people, with the properties of its column. All rows of a table have the same columns.
type Cell struct {
	Title, text string

	uuid     bool   // shortened to host:pid if the table is too wide
	dropRank int    // a table that is too wide drops the columns of the highest rank first; 0 is never dropped
	sameRank int    // the rank instead if all rows have the same text; 0: dropRank
	long     bool   // cut if the table is still too wide
	right    bool   // aligned right, for numbers
	colored  string // the part of the text that has the colour
	color    string

	once    bool    // left blank below a row with the same text
	order   float64 // sorts the rows if ordered is true; otherwise the text does
	ordered bool
}

// Row is the cells of a record.
type Row []Cell

// Drop returns the cell with the rank of its column: a table that is too wide drops the columns of the highest rank
// first. Columns without a rank stay.
func (c Cell) Drop(rank int) Cell {
	c.dropRank = rank
	return c
}

// DropSame returns the cell with the rank of a column that tells nothing if all rows have the same text, such as the
// task type in a list of its queues. A column with different texts is dropped last.
func (c Cell) DropSame(rank int) Cell {
	c.dropRank, c.sameRank = 1, rank
	return c
}

// Right returns the cell aligned right, for figures.
func (c Cell) Right() Cell {
	c.right = true
	return c
}

// Colored returns the cell with a state, which is a part of its text, in the colour of what the state means.
func (c Cell) Colored(state string) Cell {
	if c.color = meanings[state]; c.color != "" {
		c.colored = state
	}
	return c
}

// In returns the cell with its whole text in the colour of what a state means.
func (c Cell) In(state string) Cell {
	c.colored, c.color = c.text, meanings[state]
	return c
}

// Once returns the cell of a column by which rows are grouped: a part of a table shows it in the first row of a group.
func (c Cell) Once() Cell {
	c.once = true
	return c
}

// By returns the cell with a number by which rows are sorted, instead of by its text.
func (c Cell) By(order float64) Cell {
	c.order, c.ordered = order, true
	return c
}

// shortened returns the text with a uuid shortened to host:pid.
func (c Cell) shortened() string {
	if c.uuid {
		return ops.ServerName(c.text)
	}
	return c.text
}

// Text returns a cell with a text as it is.
func Text(title, text string) Cell { return Cell{Title: title, text: text} }

// Name returns a cell with a key or the name of a queue, quoted if it looks like another one, or "-" for none.
func Name(title, name string) Cell { return Maybe(title, escape.Name(name)) }

// Maybe returns a cell with a value, or "-" if there is none.
func Maybe[S string | *string | *int64 | *time.Time](title string, text S) Cell {
	return Text(title, OrDash(text))
}

// UUID returns a cell with the uuid of a server, or "-". A table that is too wide shortens it to host:pid.
func UUID[S string | *string](title string, uuid S) Cell {
	c := Maybe(title, uuid)
	c.uuid = true
	return c
}

// Long returns a cell with a text of any length on one line. A table that is too wide cuts it.
func Long(title, text string) Cell {
	c := Text(title, OneLine(text))
	c.long = true
	return c
}

// State returns a cell with a word in the colour of what it means.
func State(title, state string) Cell { return Text(title, state).Colored(state) }

// Figure returns a cell with a number.
func Figure[N int | int64](title string, n N) Cell { return Text(title, fmt.Sprint(n)).Right() }

// Bad returns a cell with a number that should be 0.
func Bad(title string, n int64) Cell {
	c := Figure(title, n)
	if n != 0 {
		c = c.In("PROBLEM")
	}
	return c
}

// Findings returns a cell with the names of kinds of findings that have a status. Nil is not known, which is not
// "none".
func Findings(title string, names []string, status string) Cell {
	switch {
	case names == nil:
		return Text(title, "unknown").In("NOTE")
	case len(names) == 0:
		return Text(title, "none")
	}
	return Long(title, strings.Join(names, ", ")).In(status)
}

// Age returns a cell with a number of seconds, or "-".
func Age(title string, seconds *float64) Cell {
	if seconds == nil {
		return Text(title, "-").Right().By(math.Inf(-1))
	}
	return Text(title, human.Age(*seconds)).Right().By(*seconds)
}

// Time returns a cell with a time.
func Time(title string, t time.Time) Cell { return Text(title, TimeText(t)) }

// Relative returns a cell that says how far t is from now, the time of the database.
func Relative(title string, now, t time.Time) Cell {
	return Text(title, human.Relative(now, t)).Right().By(float64(t.UnixMilli()))
}

// OrDash returns the text of a value, and "-" for NULL and for an empty text.
func OrDash[S string | *string | *int64 | *time.Time](value S) string {
	v := reflect.Indirect(reflect.ValueOf(value))
	if !v.IsValid() {
		return "-"
	}
	if t, ok := reflect.TypeAssert[time.Time](v); ok {
		return TimeText(t)
	}
	return cmp.Or(fmt.Sprint(v.Interface()), "-")
}

// TimeText formats a time in UTC without fractions of a second.
func TimeText(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// OneLine replaces line ends and repeated spaces by single spaces.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
