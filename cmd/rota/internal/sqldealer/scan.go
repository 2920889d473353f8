package sqldealer

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/schema"
)

// LargeTable is the number of rows from which on a scan of a table is reported.
const LargeTable = 100_000

// Scan is a select that reads far more rows than it returns.
type Scan struct {
	Table string
	Index string // the statement that creates the index that would serve
}

// FindScan asks the database how it executes the select of a queue, and reports a scan
// of a table with more than LargeTable rows for which there should be an index. It
// returns nil if there is none, or if the select has a form for which it cannot tell
// the index. It executes nothing of the user.
func (d *Dealer) FindScan(ctx context.Context, db *sql.DB, dialect schema.Dialect, s processor.Selection) (found *Scan, err error) {
	source, _ := d.sel.source(0)
	index, ok := findServingIndex(source)
	if !ok {
		return nil, nil
	}
	err = inRolledBackTx(ctx, db, func(ctx context.Context, tx *sql.Tx) error {
		large, err := isLarge(ctx, tx, index.table)
		if err != nil || !large {
			return err
		}
		plan, err := d.explain(ctx, tx, dialect, &s)
		if err == nil && scans(dialect, plan) {
			found = &Scan{index.table, index.String()}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("explain tasks.%s.dealer.sql.select: %w", d.task, err)
	}
	return found, nil
}

// isLarge counts at most so many rows as make a table large. Statistics may be old,
// and a view has none.
func isLarge(ctx context.Context, tx *sql.Tx, table string) (bool, error) {
	var rows int
	err := tx.QueryRowContext(ctx, fmt.Sprintf("SELECT COUNT(*) FROM (SELECT 1 AS one FROM %s LIMIT %d) t", table, LargeTable+1)).Scan(&rows)
	return rows > LargeTable, err
}

// explain returns the plan of the select, with the values of a selection: a plan for
// unknown values may be another one.
func (d *Dealer) explain(ctx context.Context, tx *sql.Tx, dialect schema.Dialect, s *processor.Selection) (plan string, err error) {
	verb := map[schema.Dialect]string{schema.Postgres: "EXPLAIN (FORMAT JSON) ", schema.MySQL: "EXPLAIN FORMAT=JSON ", schema.SQLite: "EXPLAIN QUERY PLAN "}[dialect]
	args := make([]any, len(d.sel.names))
	for i, name := range d.sel.names {
		args[i] = d.firstArg(name, s)
	}
	rows, err := tx.QueryContext(ctx, verb+d.sel.text(0), args...)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return "", err
	}
	for rows.Next() {
		var line string
		into := make([]any, len(columns))
		for i := range into {
			into[i] = skipped{}
		}
		into[len(into)-1] = &line // SQLite has other columns before it
		if err := rows.Scan(into...); err != nil {
			return "", err
		}
		plan += line + "\n"
	}
	return plan, rows.Err()
}

// scans reports whether a plan reads a table, or a whole index, without a condition
// on an index, or sorts what it has read.
func scans(dialect schema.Dialect, plan string) bool {
	if dialect == schema.SQLite {
		return strings.Contains(plan, "SCAN ") || strings.Contains(plan, "USE TEMP B-TREE FOR ORDER BY")
	}
	var tree any
	if json.Unmarshal([]byte(plan), &tree) != nil {
		return false
	}
	return anyNode(tree, func(node map[string]any) bool {
		if access, ok := node["access_type"].(string); ok { // MySQL
			return access == "ALL" || access == "index"
		}
		if _, sorts := node["filesort"]; sorts {
			return true
		}
		kind, _ := node["Node Type"].(string)
		_, conditional := node["Index Cond"]
		return kind == "Seq Scan" || strings.HasPrefix(kind, "Index") && !conditional || strings.HasSuffix(kind, "Sort")
	})
}

// anyNode reports whether an object of a JSON tree is a match.
func anyNode(tree any, match func(map[string]any) bool) bool {
	switch t := tree.(type) {
	case map[string]any:
		if match(t) {
			return true
		}
		for _, child := range t {
			if anyNode(child, match) {
				return true
			}
		}
	case []any:
		for _, child := range t {
			if anyNode(child, match) {
				return true
			}
		}
	}
	return false
}
