package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/sqldb"
)

// check is a claim, the SELECT that tests it and the rows that prove it.
type check struct {
	claim string
	query string
	want  [][]string
}

var (
	ordersCheck = check{
		claim: "each order took effect exactly once",
		query: `SELECT state, effects, COUNT(*) AS orders, MIN(id) AS first, MAX(id) AS last
  FROM orders GROUP BY state, effects ORDER BY state, effects`,
		want: [][]string{{"SETTLED", "1", strconv.Itoa(orderCount), "1", strconv.Itoa(orderCount)}},
	}
	workersCheck = check{
		claim: "one worker was evicted, the others left in order",
		query: `SELECT reason, COUNT(*) AS workers
  FROM schedule_server_history GROUP BY reason ORDER BY reason`,
		want: [][]string{{"EXPIRED", "1"}, {"LEFT", strconv.Itoa(firstWorkers)}},
	}
	// Each of the four workers has two queues after the join, however the three shared eight queues before. So the
	// join must move two, and the crash two.
	movesCheck = check{
		claim: "the join and the crash moved as few queues as possible",
		query: `SELECT kind, COUNT(*) AS moves
  FROM schedule_event
 WHERE kind IN ('GRANTED', 'RELEASED', 'TAKEN_OVER', 'FORCED', 'UNASSIGNED')
   AND event_id > (SELECT MAX(event_id)
                     FROM schedule_event WHERE kind = 'JOINED')
 GROUP BY kind ORDER BY kind`,
		want: [][]string{{"RELEASED", "2"}, {"TAKEN_OVER", "2"}},
	}
)

// finding is a check with the answer of the database.
type finding struct {
	check
	columns []string
	rows    [][]string
}

func ask(ctx context.Context, db sqldb.Queryer, checks ...check) (findings []finding, err error) {
	for _, c := range checks {
		columns, rows, err := read(ctx, db, c.query)
		if err != nil {
			return nil, fmt.Errorf("prove that %s: %w", c.claim, err)
		}
		findings = append(findings, finding{c, columns, rows})
	}
	return findings, nil
}

// report prints the claims. With proof, and for a false claim, it prints the SELECT and the answer too. It returns an
// error if a claim is false.
func report(out io.Writer, findings []finding, proof bool) error {
	var claims strings.Builder
	var errs []error
	for _, f := range findings {
		holds := reflect.DeepEqual(f.rows, f.want)
		if proof || !holds {
			printf(out, "   %s\n", strings.ReplaceAll(f.query, "\n", "\n   "))
			for _, row := range append([][]string{f.columns}, f.rows...) {
				printf(out, "   %s\n", escape.Text(strings.Join(row, "  ")))
			}
			printf(out, "\n")
		}
		if holds {
			fmt.Fprintf(&claims, "ok     %s\n", f.claim)
			continue
		}
		fmt.Fprintf(&claims, "FALSE  %s\n", f.claim)
		errs = append(errs, fmt.Errorf("it is false that %s: got %v, want %v", f.claim, f.rows, f.want))
	}
	if len(errs) > 0 {
		fmt.Fprintf(&claims, "\nIf the machine stops a worker for longer than %s, the others evict it.\n", judgeDeadInterval)
	}
	if !proof {
		printf(out, "Checked with SELECTs (--proof shows them):\n")
	}
	printf(out, "%s", claims.String())
	return errors.Join(errs...)
}

// read returns the result of a SELECT as text.
func read(ctx context.Context, db sqldb.Queryer, query string) (columns []string, list [][]string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	if columns, err = rows.Columns(); err != nil {
		return nil, nil, err
	}
	for rows.Next() {
		row := make([]string, len(columns))
		into := make([]any, len(row))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, nil, err
		}
		list = append(list, row)
	}
	return columns, list, rows.Err()
}

// printf drops the error of writing: the command gets SIGPIPE.
func printf(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }
