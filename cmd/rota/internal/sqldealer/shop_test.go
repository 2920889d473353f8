package sqldealer

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/schema"
)

const owner = "web1:4711:0000abcd"

// newDealer returns a dealer for rows in the roster's database.
func newDealer(task config.Task, d schema.Dialect) (*Dealer, error) { return New(task, Kinds{"": d}) }

// shop is a database with a roster in which owner owns queue "1" of two.
type shop struct {
	testing.TB
	*center.Center
}

func openShop(t testing.TB, url string) shop {
	t.Helper()
	c, err := center.Open(t.Context(), anydb.URL(url), center.Options{Schema: center.SchemaCreate, OwnSign: "TEST"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	s := shop{t, c}
	if _, err := ops.New(c).Tasks().Define(t.Context(), "settle", center.Settings{Queues: 2}); err != nil {
		t.Fatal(err)
	}
	s.exec("UPDATE schedule_queue SET cur_server = '" + owner + "', epoch = 7 WHERE queue_id = '1'")
	return s
}

func (s shop) exec(statements ...string) {
	s.Helper()
	for _, statement := range statements {
		if _, err := s.DB().ExecContext(s.Context(), statement); err != nil {
			s.Fatalf("%s: %v", statement, err)
		}
	}
}

// want compares the rows of a query with lines.
func (s shop) want(query string, want ...string) {
	s.Helper()
	rows, err := s.DB().QueryContext(s.Context(), query)
	if err != nil {
		s.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	var got []string
	columns, err := rows.Columns()
	if err != nil {
		s.Fatal(err)
	}
	for rows.Next() {
		cells := make([]sql.NullString, len(columns))
		into := make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := rows.Scan(into...); err != nil {
			s.Fatal(err)
		}
		line := make([]string, len(cells))
		for i, cell := range cells {
			line[i] = cell.String
		}
		got = append(got, strings.Join(line, " "))
	}
	if err := rows.Err(); err != nil {
		s.Fatal(err)
	}
	if !slices.Equal(got, want) {
		s.Errorf("%s:\ngot  %q\nwant %q", query, got, want)
	}
}

func (s shop) dealer(c config.SQLDealer) *Dealer {
	s.Helper()
	return s.dealerOf(center.ModeContinuous, c)
}

func (s shop) dealerOf(mode string, c config.SQLDealer) *Dealer {
	s.Helper()
	d, err := newDealer(config.Task{Name: "settle", Settings: center.Settings{Queues: 2, Mode: mode}, SQL: c}, s.Dialect())
	if err != nil {
		s.Fatal(err)
	}
	d.Use(s.DB())
	return d
}

// selection returns a selection of the queue that owner owns.
func selection() processor.Selection {
	return processor.Selection{
		TaskType: "settle", OwnSign: "TEST", Server: owner, Parameter: "p'1", Total: 2, Limit: 3,
		Queue: processor.Queue{ID: "1", Index: 1, Parameter: `q'"\; --`, Epoch: 7},
	}
}

func (s shop) selectRows(d *Dealer) []Row {
	s.Helper()
	rows, err := d.Select(s.Context(), selection())
	if err != nil {
		s.Fatal(err)
	}
	return rows
}

func (s shop) batch(epoch int64) context.Context {
	return s.Bind(s.Context(), center.Batch{Server: owner, TaskType: "settle", Queue: center.QueueEpoch{ID: "1", Epoch: epoch}})
}

func (s shop) settle(d *Dealer) {
	s.Helper()
	if err := d.Execute(s.batch(7), s.selectRows(d)); err != nil {
		s.Fatal(err)
	}
}

// drain executes all rows, two at a time, in at most the given number of pages.
func (s shop) drain(d *Dealer, pages int) error {
	task := d.Use(s.DB())
	sel := selection()
	sel.Limit = 2
	for range pages + 1 {
		rows, err := task.Select(s.Context(), sel)
		if err != nil || len(rows) == 0 {
			return err
		}
		if err := task.Execute(s.batch(7), rows); err != nil {
			return err
		}
		moveOn(&sel, task, rows[len(rows)-1])
	}
	return nil
}

// moveOn passes the position of a row to the next select, through the roster's text.
func moveOn(s *processor.Selection, d *Dealer, last Row) {
	switch has := d.Capabilities(); {
	case has.Cursored:
		s.Queue.Cursor = d.Cursor(last)
	case has.Paged:
		s.After = d.Position(last)
	}
}

// errorText returns the text of an error, empty for none.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
