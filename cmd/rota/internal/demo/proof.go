package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/jedib0t/go-pretty/v6/text"
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
	answer answer
}

func ask(ctx context.Context, db querier, checks ...check) ([]finding, error) {
	findings := make([]finding, len(checks))
	for i, c := range checks {
		a, err := read(ctx, db, c.query)
		if err != nil {
			return nil, fmt.Errorf("prove that %s: %w", c.claim, err)
		}
		findings[i] = finding{c, a}
	}
	return findings, nil
}

// report prints the claims. With proof, and for a false claim, it prints the SELECT and the answer too. It returns an
// error if a claim is false.
func report(out io.Writer, findings []finding, proof bool) error {
	var selects, claims strings.Builder
	var errs []error
	for _, f := range findings {
		holds := reflect.DeepEqual(f.answer.rows, f.want)
		if proof || !holds {
			selects.WriteString(indent(text.Faint.Sprint(f.query)) + indent(f.answer.String()) + "\n")
		}
		if holds {
			fmt.Fprintf(&claims, "%s  %s\n", text.FgGreen.Sprint("ok   "), f.claim)
			continue
		}
		fmt.Fprintf(&claims, "%s  %s\n", text.FgHiRed.Sprint("FALSE"), f.claim)
		errs = append(errs, fmt.Errorf("it is false that %s: got %v, want %v", f.claim, f.answer.rows, f.want))
	}
	if len(errs) > 0 {
		fmt.Fprintf(&claims, "\nIf the machine stops a worker for longer than %s, the others evict it.\n", judgeDeadInterval)
	}
	if !proof {
		selects.WriteString("Checked with SELECTs (--proof shows them):\n")
	}
	_, err := io.WriteString(out, selects.String()+claims.String())
	return errors.Join(append(errs, err)...)
}

// String returns the answer as a table.
func (a answer) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{a.columns}, a.rows...) {
		fmt.Fprintln(w, strings.Join(row, "\t")) //nolint:errcheck // a strings.Builder does not fail
	}
	_ = w.Flush() // the same
	return b.String()
}

func indent(s string) string {
	return "   " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n   ") + "\n"
}
