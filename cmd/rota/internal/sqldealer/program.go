package sqldealer

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/cmd/rota/internal/program"
	"github.com/dutyrota/rota/processor"
)

// Program executes rows outside of this process. The executors call it concurrently.
type Program interface {
	// Execute returns the errors of the items that have failed, by key. An error means that the whole batch has failed,
	// and program.ErrFenced that the program has found the queue lost.
	Execute(ctx context.Context, b *program.Batch) (program.Outcome, error)
}

// Call sets the program that executes the rows in all databases. The caller calls it once, before Execute, if the task
// has a program.
func (d *Dealer) Call(p Program) {
	d.program = p
	for _, at := range d.places {
		if at.Dealer != nil {
			at.program = p
		}
	}
}

// callProgram lets the program execute rows, and then marks those that it has done.
func (d *Dealer) callProgram(ctx context.Context, rows []Row) error {
	if d.program == nil {
		return fmt.Errorf("tasks.%s: the program is missing", d.task)
	}
	batch, err := d.newBatch(ctx, rows)
	if err != nil {
		return err
	}
	outcome, err := d.program.Execute(ctx, batch)
	if errors.Is(err, program.ErrFenced) {
		return d.checkFenced(ctx, err)
	}
	if err != nil {
		return err
	}
	var failures processor.Failures
	var marked []Row
	for i, r := range rows {
		if err := outcome[d.shape.keyOf(r)]; err != nil {
			failures.Add(i, err)
		} else {
			marked = append(marked, r)
		}
	}
	if d.exec == nil || len(marked) == 0 || d.cursor != nil && len(marked) < len(rows) {
		return failures.Err()
	}
	if err := d.execute(ctx, marked); err != nil {
		return err
	}
	return failures.Err()
}

// newBatch returns the request for rows of one queue. Rows with one key are one item.
func (d *Dealer) newBatch(ctx context.Context, rows []Row) (*program.Batch, error) {
	owner, _ := center.BatchFrom(ctx) // FenceStatementOf refuses a context without a batch
	fence, err := center.FenceStatementOf(ctx)
	if err != nil {
		return nil, err
	}
	from := rows[0].from
	b := &program.Batch{
		TaskType: from.TaskType, OwnSign: from.OwnSign, Queue: owner.Queues[0].ID, Epoch: owner.Queues[0].Epoch,
		Server: owner.Server, Parameter: from.Parameter, Fence: &program.Fence{SQL: fence.SQL, Args: fence.Args},
		Items: make([]program.Item, 0, len(rows)),
	}
	if from.Run != nil {
		b.RunKey, b.TraceParent = from.Run.Key, from.Run.TraceParent
	}
	seen := make(map[string]struct{}, len(rows))
	for _, r := range rows {
		key := d.shape.keyOf(r)
		if _, twice := seen[key]; !twice {
			seen[key] = struct{}{}
			b.Items = append(b.Items, program.Item{Key: key, Row: r})
		}
	}
	return b, nil
}

// checkFenced returns what the fence itself says, when a program says that it is fenced.
func (d *Dealer) checkFenced(ctx context.Context, told error) error {
	if err := d.database.InTx(ctx, func(*sql.Tx) error { return nil }); err != nil {
		return fmt.Errorf("%w: %w", told, err)
	}
	return fmt.Errorf("%w, but the server owns the queue: does the program run the statement first, in a transaction of "+
		"the right database?", told)
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
	case float32:
		return appendValue(b, float64(v))
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
