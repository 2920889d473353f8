package demo

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"time"
)

// check is one claim, the SELECTs that ask for it and what their answers must be.
type check struct {
	claim   string
	queries []string
	judge   func(answers []answer) verdict
}

// verdict is what the answers say about a claim.
type verdict struct {
	grade grade
	text  string
}

type grade string

const (
	proved  grade = "ok"
	slow    grade = "slow" // not as promised, though right: the machine may be to blame
	refuted grade = "OFF"
)

// finding is a check that was asked.
type finding struct {
	check
	answers []answer
	verdict verdict
}

// answer is the result of a SELECT.
type answer struct {
	columns []string
	rows    [][]string
}

// querier is a database, or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// ask asks the database for each check.
func ask(ctx context.Context, db querier, checks []check) ([]finding, error) {
	findings := make([]finding, len(checks))
	for i, c := range checks {
		findings[i].check = c
		for _, query := range c.queries {
			a, err := read(ctx, db, query)
			if err != nil {
				return nil, fmt.Errorf("ask whether %s: %w", c.claim, err)
			}
			findings[i].answers = append(findings[i].answers, a)
		}
		findings[i].verdict = c.judge(findings[i].answers)
	}
	return findings, nil
}

func read(ctx context.Context, db querier, query string) (a answer, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return answer{}, err
	}
	defer rows.Close()
	if a.columns, err = rows.Columns(); err != nil {
		return answer{}, err
	}
	for rows.Next() {
		row := make([]cell, len(a.columns))
		into := make([]any, len(row))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return answer{}, err
		}
		texts := make([]string, len(row))
		for i, c := range row {
			texts[i] = string(c)
		}
		a.rows = append(a.rows, texts)
	}
	return a, rows.Err()
}

// cell scans any column as text. Times look alike whatever the database: UTC with microseconds.
type cell string

const timeLayout = "2006-01-02 15:04:05.000000"

// Scan implements sql.Scanner.
func (c *cell) Scan(src any) error {
	if t, ok := src.(time.Time); ok {
		*c = cell(t.UTC().Format(timeLayout))
		return nil
	}
	var s sql.NullString
	err := s.Scan(src)
	*c = cell(s.String)
	return err
}

// number returns the number in a cell; what is not a number counts as -1, which no check expects.
func (a answer) number(row, column int) int {
	n, err := strconv.Atoi(a.rows[row][column])
	if err != nil {
		return -1
	}
	return n
}

// sum adds up a column.
func (a answer) sum(column int) int {
	total := 0
	for row := range a.rows {
		total += a.number(row, column)
	}
	return total
}

// is tells whether the rows are these.
func (a answer) is(rows ...[]string) bool {
	return fmt.Sprint(a.rows) == fmt.Sprint(rows)
}
