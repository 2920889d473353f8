package sqldealer

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/dutyrota/rota/cmd/rota/internal/program"
)

// Call sets the program that executes the rows in all databases, which need these columns of select beside the key. The
// caller calls it once, before Check and Execute, if the task has a program.
func (d *Dealer) Call(p program.Program, columns ...string) {
	d.program = p
	for _, at := range d.places {
		if at.Dealer != nil {
			at.program = p
			for _, name := range columns {
				at.shape.add(name)
			}
		}
	}
}

// callProgram lets the program execute rows, and then marks those that it has done.
func (d *Dealer) callProgram(ctx context.Context, rows []Row) error {
	if d.program == nil {
		return fmt.Errorf("tasks.%s: the program is missing", d.task)
	}
	items := make([]program.Item, len(rows))
	for i, r := range rows {
		items[i] = program.Item{Key: d.shape.keyOf(r), Row: r}
	}
	outcome, err := program.Run(ctx, d.program, program.OpExecute, rows[0].from, items, d.database.InTx)
	if err != nil {
		return err
	}
	var marked []Row
	for i, r := range rows {
		if outcome[items[i].Key] == nil {
			marked = append(marked, r)
		}
	}
	if d.exec == nil || len(marked) == 0 || d.cursor != nil && len(marked) < len(rows) {
		return outcome.Err(items)
	}
	if err := d.execute(ctx, marked); err != nil {
		return err
	}
	return outcome.Err(items)
}

// MarshalJSON returns an object with the columns of the row, if the shape is whole. Numbers are exact. Bytes are texts
// as in a key, and so are times.
func (r Row) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 32*len(r.names))
	b = append(b, '{')
	for i, name := range r.names {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendValue(append(b, name...), r.values[i])
	}
	return append(b, '}'), nil
}

func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, v)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case uint64:
		return strconv.AppendUint(b, v, 10)
	case float64:
		if !math.IsInf(v, 0) && !math.IsNaN(v) {
			return strconv.AppendFloat(b, v, 'g', -1, 64)
		}
	case float32: // of MySQL, which has neither infinity nor NaN
		return strconv.AppendFloat(b, float64(v), 'g', -1, 32)
	case string:
		return appendText(b, v)
	case time.Time, []byte:
		return appendText(b, encode(v))
	}
	return appendText(b, fmt.Sprint(v))
}

// appendText appends a JSON string. What is no UTF-8 in it becomes U+FFFD.
func appendText(b []byte, text string) []byte {
	if plain(text) {
		return append(append(append(b, '"'), text...), '"')
	}
	quoted, _ := json.Marshal(text) // a string has no error
	return append(b, quoted...)
}

// plain reports whether a text is the same in JSON.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
