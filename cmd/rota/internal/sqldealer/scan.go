package sqldealer

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/schema"
)

// LargeTable is the most rows of a table whose scans are not reported.
const LargeTable = 100_000

// Scan is a select that reads far more rows than it returns.
type Scan struct {
	Finding string // what it reads
	Hint    string // what to do about it: the statement that creates an index, or the FROM clause that names one
}

// FindScan asks the database how it executes the select of a queue of a table with more
// than LargeTable rows. It reports a scan for which there should be an index. On MySQL it
// also reports a select that does not use an index for {{after}} or {{cursor}}.
// It returns nil if there is neither, or if the select has a form for which it cannot tell
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
		plan, err := explain(ctx, tx, dialect, d.sel.text(0), d.selectArgs(func(name string) any { return d.firstArg(name, &s) }))
		if err != nil {
			return err
		}
		if scans(dialect, plan) {
			found = &Scan{fmt.Sprintf("each select reads all of %s, which has more than %d rows", index.table, LargeTable), index.String()}
		} else if key := d.shape.wholeKey(plan); key != "" {
			found = &Scan{
				fmt.Sprintf("each select reads the rows of %s that are before its position again: it does not use all columns of the index %s", index.table, key),
				fmt.Sprintf("write FROM %s FORCE INDEX (%s)", index.table, key),
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("explain tasks.%s.dealer.sql.select: %w", d.task, err)
	}
	return found, nil
}

// wholeKey returns an index that a plan of MySQL does not use for the position behind which
// the select goes on; empty if there is none. MariaDB prefers such a plan if the position is
// also a range of the primary key.
func (sh *shape) wholeKey(plan string) (key string) {
	var tree any
	if len(sh.ordered) == 0 || json.Unmarshal([]byte(plan), &tree) != nil {
		return ""
	}
	position := sh.columns[sh.ordered[0]]
	anyNode(tree, func(node map[string]any) bool {
		used, _ := node["used_key_parts"].([]any)
		isPosition := func(column any) bool { return strings.EqualFold(fmt.Sprint(column), position) }
		if node["access_type"] == "ref" && !slices.ContainsFunc(used, isPosition) {
			key, _ = node["key"].(string)
		}
		return key != ""
	})
	return key
}

// isLarge reports whether a table has more than LargeTable rows. It counts them: statistics
// may be old, and a view has none.
func isLarge(ctx context.Context, tx *sql.Tx, table string) (bool, error) {
	var rows int
	err := tx.QueryRowContext(ctx, fmt.Sprintf("SELECT COUNT(*) FROM (SELECT 1 AS one FROM %s LIMIT %d) t", table, LargeTable+1)).Scan(&rows)
	return rows > LargeTable, err
}

// explain returns the plan of a statement with its values: a plan for unknown values
// may be another one.
func explain(ctx context.Context, tx *sql.Tx, dialect schema.Dialect, text string, args []any) (plan string, err error) {
	verb := map[schema.Dialect]string{schema.Postgres: "EXPLAIN (FORMAT JSON) ", schema.MySQL: "EXPLAIN FORMAT=JSON ", schema.SQLite: "EXPLAIN QUERY PLAN "}[dialect]
	rows, err := tx.QueryContext(ctx, verb+text, args...)
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
