package demo

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"github.com/dutyrota/rota/internal/escape"
)

// snapshot is what the tables hold at one moment.
type snapshot struct {
	queues  []queue
	settled map[string]int // orders by the uuid of the server
	events  []event        // all, oldest first
}

// queue is a row of schedule_assignment.
type queue struct{ id, owner, requester, status string }

// event is a row of schedule_event.
type event struct{ kind, queue, from, to, reason string }

// look reads the tables, as any user could.
func look(ctx context.Context, db querier) (snapshot, error) {
	s := snapshot{settled: map[string]int{}}
	for _, table := range []struct {
		query string
		add   func(row []string)
	}{
		{
			`SELECT queue_id, COALESCE(cur_server, ''), COALESCE(req_server, ''), status FROM schedule_assignment ORDER BY queue_id`,
			func(r []string) { s.queues = append(s.queues, queue{r[0], r[1], r[2], r[3]}) },
		},
		{
			`SELECT COALESCE(settled_by, ''), COUNT(*) FROM orders WHERE state = 'SETTLED' GROUP BY settled_by ORDER BY settled_by`,
			func(r []string) { s.settled[r[0]], _ = strconv.Atoi(r[1]) },
		}, // a COUNT is a number
		{
			`SELECT kind, COALESCE(queue_id, ''), COALESCE(from_server, ''), COALESCE(to_server, ''), reason FROM schedule_event ORDER BY event_id`,
			func(r []string) { s.events = append(s.events, event{r[0], r[1], r[2], r[3], r[4]}) },
		},
	} {
		a, err := read(ctx, db, table.query)
		if err != nil {
			return s, fmt.Errorf("%s: %w", table.query, err)
		}
		for _, row := range a.rows {
			table.add(row)
		}
	}
	return s, nil
}

// orders returns the number of settled orders.
func (s snapshot) orders() int {
	total := 0
	for _, n := range s.settled {
		total += n
	}
	return total
}

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// answer is the result of a SELECT, as text that is escaped for the terminal.
type answer struct {
	columns []string
	rows    [][]string
}

func read(ctx context.Context, db querier, query string) (a answer, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return a, err
	}
	defer rows.Close()
	if a.columns, err = rows.Columns(); err != nil {
		return a, err
	}
	for rows.Next() {
		row := make([]string, len(a.columns))
		into := make([]any, len(row))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return a, err
		}
		for i := range row {
			row[i] = escape.Text(row[i])
		}
		a.rows = append(a.rows, row)
	}
	return a, rows.Err()
}
