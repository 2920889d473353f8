package sqldealer

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/processor"
)

// LargeTable is the most rows of a table whose scans are not reported.
const LargeTable = 100_000

// Scan is a statement that reads far more rows than it returns or changes, or a select that may miss some.
type Scan struct {
	Finding string // what it reads or misses
	Hint    string // what to do about it
}

// explainTimeout bounds a look at a plan.
const explainTimeout = 10 * time.Second

// ScanFirst is FindScan for the first queue that a task type with these settings has in the database. It also reports
// an `execute` that does not find its rows by their keys, and a select that divides the rows so that some may belong to
// no queue.
func (d *Dealer) ScanFirst(ctx context.Context, ownSign string, s center.Settings) (*Scan, error) {
	s = s.WithDefaults()
	selection := processor.Selection{
		TaskType: d.task, OwnSign: ownSign, Parameter: s.TaskParameter, Total: max(s.Queues, len(s.QueueNames)),
		Limit: s.FetchNumber,
	}
	for i := range selection.Total {
		selection.Queue = processor.Queue{ID: strconv.Itoa(i), Index: i}
		if len(s.QueueNames) > 0 {
			selection.Queue.ID = s.QueueNames[i]
		}
		if name, err := s.DatabaseOf(selection.Queue.ID); err == nil && name == d.name {
			break
		}
	}
	ctx, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	if found, err := d.FindScan(ctx, selection); found != nil || err != nil {
		return found, err
	}
	if found, err := d.findKeyScan(ctx, s.ExecuteNumber); found != nil || err != nil {
		return found, err
	}
	return d.findPlainDivision(), nil
}

// findPlainDivision reports a select that divides the rows so that some may belong to no queue (N4).
func (d *Dealer) findPlainDivision() *Scan {
	_, plain := d.sel.withoutDivision()
	if plain == "" {
		return nil
	}
	return &Scan{
		fmt.Sprintf("select divides the rows by %s, so that rows whose %[1]s is negative or NULL belong to no queue", plain),
		fmt.Sprintf("write {{mine %s}} instead of the comparison with {{index}}", plain),
	}
}

// FindScan asks the database how it executes the select of a queue. It reports a table with more than LargeTable rows
// that the select reads without a condition on an index, or sorts. On MySQL it also reports a select that does not
// use an index for {{after}} or {{cursor}}. It returns nil if there is neither. It executes nothing of the user.
func (d *Dealer) FindScan(ctx context.Context, s processor.Selection) (found *Scan, err error) {
	defer func() {
		if err != nil {
			found, err = nil, fmt.Errorf("explain tasks.%s.dealer.sql.select%s: %w", d.task, in(d.name), err)
		}
	}()
	var plan string
	db := d.database.DB()
	first := args{Selection: &s, shape: &d.shape, cursor: d.cursor}
	if d.cursor != nil { // the first select begins at the start, which is also its horizon
		first.position, first.bound = d.cursor.start, decode(d.cursor.start[0], d.syntax)
	}
	err = inRolledBackTx(ctx, db, func(ctx context.Context, tx *sql.Tx) (err error) {
		plan, err = d.syntax.planOf(ctx, tx, d.sel.text(0), d.sel.values(first.value))
		return err
	})
	if err != nil {
		return nil, err
	}
	source, _ := d.sel.source(0)
	for _, name := range d.syntax.scanned(plan) {
		table := tableOf(source, name)
		if large, err := isLarge(ctx, db, table); err != nil {
			return nil, err
		} else if large {
			return &Scan{
				fmt.Sprintf("each select may read all of %s, which has more than %d rows, as no index serves it", table,
					LargeTable),
				"create an index on what the select compares with a value, " + d.sel.mineIndex(s.Total) +
					"then on what it sorts by; if there is one, ANALYZE the table",
			}, nil
		}
	}
	name, key := d.shape.wholeKey(plan)
	if key == "" {
		return nil, nil
	}
	table := tableOf(source, name)
	if large, err := isLarge(ctx, db, table); err != nil || !large {
		return nil, err
	}
	return &Scan{
		fmt.Sprintf("each select reads the rows of %s that are before its position again: it does not use all columns of "+
			"the index %s", table, key),
		fmt.Sprintf("write FROM %s FORCE INDEX (%s)", table, key),
	}, nil
}

// tableOf returns the table that a plan calls name, as the select names it: a plan of MySQL or SQLite has the alias,
// and no plan has the schema. It returns name if the select does not name the table, which is then below a view.
func tableOf(source, name string) string {
	words := strings.Fields(strings.NewReplacer(",", " , ", "(", " ", ")", " ", ";", " ").Replace(source))
	for i, word := range words[:max(len(words)-1, 0)] {
		if word != "," && !strings.EqualFold(word, "FROM") && !strings.EqualFold(word, "JOIN") {
			continue
		}
		table, alias := words[i+1], words[i+2:]
		if len(alias) > 0 && strings.EqualFold(alias[0], "AS") {
			alias = alias[1:]
		}
		names := append([]string{table[strings.LastIndexByte(table, '.')+1:]}, alias[:min(len(alias), 1)]...)
		if slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(strings.Trim(n, "\"`"), name) }) {
			return table
		}
	}
	return name
}

// wholeKey returns the table and the index with which a plan of MySQL finds the rows of a select, but does not skip the
// rows before its position; empty if the plan does. MariaDB prefers such a plan if the position is also a range of the
// primary key.
func (sh *shape) wholeKey(plan string) (table, key string) {
	var tree any
	if len(sh.ordered) == 0 || json.Unmarshal([]byte(plan), &tree) != nil {
		return "", ""
	}
	position := sh.columns[sh.ordered[0]]
	eachNode(tree, func(node map[string]any) {
		used, _ := node["used_key_parts"].([]any)
		isPosition := func(column any) bool { return strings.EqualFold(fmt.Sprint(column), position) }
		if node["access_type"] == "ref" && !slices.ContainsFunc(used, isPosition) {
			table, _ = node["table_name"].(string)
			key, _ = node["key"].(string)
		}
	})
	return table, key
}

// isLarge reports whether a table has more than LargeTable rows. It counts them: statistics may be old, and a view has
// none. It is false for what a plan names and the database does not know, such as a table of WITH.
func isLarge(ctx context.Context, db *sql.DB, table string) (bool, error) {
	var rows int
	count := fmt.Sprintf("SELECT COUNT(*) FROM (SELECT 1 AS one FROM %s LIMIT %d) t", table, LargeTable+1)
	err := db.QueryRowContext(ctx, count).Scan(&rows)
	if err != nil && refusalOf(err, count) != nil {
		return false, nil
	}
	return rows > LargeTable, err
}

// planOf returns the plan of a statement with its values: a plan for unknown values may be another one.
func (sy syntax) planOf(ctx context.Context, tx *sql.Tx, text string, args []any) (plan string, err error) {
	rows, err := tx.QueryContext(ctx, sy.explain+text, args...)
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

// scanned returns the tables that a plan reads without a condition on an index. A plan of one table must not sort
// either.
func (sy syntax) scanned(plan string) (tables []string) {
	var all []string
	var sorts bool
	if sy.planLines {
		sorts = strings.Contains(plan, "USE TEMP B-TREE FOR ORDER BY")
		for line := range strings.Lines(plan) {
			words := strings.Fields(line)
			if len(words) < 2 || words[0] != "SCAN" && words[0] != "SEARCH" {
				continue
			}
			// AUTOMATIC: an index that SQLite would make for this statement
			if all = append(all, words[1]); words[0] == "SCAN" || strings.Contains(line, " USING AUTOMATIC ") {
				tables = append(tables, words[1])
			}
		}
	}
	var tree any
	_ = json.Unmarshal([]byte(plan), &tree) // a plan of lines is no JSON
	eachNode(tree, func(node map[string]any) {
		kind, _ := node["Node Type"].(string)
		operator, _ := node["id"].(string) // of TiDB, such as TopN_8
		sorts = sorts || node["filesort"] != nil || node["access_type"] == "sort" || strings.HasSuffix(kind, "Sort") ||
			strings.HasPrefix(operator, "TopN_") || strings.HasPrefix(operator, "Sort_")
		if name := tableOfNode(node); name != "" {
			if all = append(all, name); scans(node) {
				tables = append(tables, name)
			}
		}
	})
	if sorts && len(all) == 1 {
		return all
	}
	slices.Sort(tables)
	return tables
}

// tableOfNode returns the table that a node of a plan reads; empty if it reads none, or the rows that another node has
// found in an index.
func tableOfNode(node map[string]any) string {
	for _, key := range []string{"Relation Name", "table_name"} { // of PostgreSQL, of MySQL
		if name, ok := node[key].(string); ok {
			return name
		}
	}
	object, _ := node["accessObject"].(string) // of TiDB, such as "table:orders, index:state(state)"
	if operator, _ := node["id"].(string); strings.HasPrefix(operator, "TableRowIDScan_") {
		return ""
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(object, "table:"), ",")
	return name
}

// scans reports whether a node of a plan reads a table, or a whole index, without a condition on an index.
func scans(node map[string]any) bool {
	if access, ok := node["index_access_type"].(string); ok { // MySQL 9
		return access == "index_scan"
	}
	if access, ok := node["access_type"].(string); ok { // MariaDB and MySQL 8; "table" is that of MySQL 9
		return access == "ALL" || access == "index" || access == "table"
	}
	if operator, ok := node["id"].(string); ok { // TiDB
		return strings.Contains(operator, "FullScan_")
	}
	kind, _ := node["Node Type"].(string)
	_, conditional := node["Index Cond"]
	return kind == "Seq Scan" || strings.HasPrefix(kind, "Index") && !conditional
}

// eachNode calls visit for each object of a JSON tree.
func eachNode(tree any, visit func(node map[string]any)) {
	switch t := tree.(type) {
	case map[string]any:
		visit(t)
		for _, child := range t {
			eachNode(child, visit)
		}
	case []any:
		for _, child := range t {
			eachNode(child, visit)
		}
	}
}
