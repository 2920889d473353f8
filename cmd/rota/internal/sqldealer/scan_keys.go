package sqldealer

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/lib/pq"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/schema"
)

// findKeyScan asks PostgreSQL how it executes `execute`, whatever the keys are. It reports a table with more than
// LargeTable rows of which the statement does not find its rows by their keys. PostgreSQL believes its statistics, and
// most of the time no row waits: so it finds the rows with state = 'NEW' by an index, and then looks for the keys among
// them. When many rows wait, each batch reads them all, until the table is analyzed. The other databases look into the
// index when they plan.
func (d *Dealer) findKeyScan(ctx context.Context, batch int) (found *Scan, err error) {
	if d.exec == nil || !d.exec.uses(keys) || d.syntax.dialect.Family() != schema.Postgres {
		return nil, nil
	}
	db := d.database.DB()
	var plan string
	err = inRolledBackTx(ctx, db, func(ctx context.Context, tx *sql.Tx) (err error) {
		plan, err = d.exec.genericPlan(ctx, tx, batch)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("explain tasks.%s.dealer.sql.%s%s: %w", d.task, d.exec.name, in(d.name), err)
	}
	marks, all := d.exec.keyMarks(batch), accesses(plan)
	for _, a := range all { // also that of a table which is joined first may lead to the keys
		by, err := a.byKeys(ctx, db, marks)
		if err != nil || by {
			return nil, err
		}
	}
	for _, a := range all {
		if large, err := isLarge(ctx, db, a.quoted); err != nil {
			return nil, err
		} else if !large {
			continue
		}
		if a.index == "" {
			return &Scan{
				fmt.Sprintf("each execute reads all of %s, which has more than %d rows, as no index serves {{keys}}", a.table,
					LargeTable),
				"create an index on the key",
			}, nil
		}
		return &Scan{
			fmt.Sprintf("each execute may read all rows of %s that wait: PostgreSQL finds them by the index %s, and looks for "+
				"the keys among them, as its statistics say that few wait", a.table, a.index),
			"let no index serve the other conditions of execute: for instance, write (state = 'NEW') IS TRUE in the place " +
				"of state = 'NEW'",
		}, nil
	}
	return nil, nil
}

// genericPlan returns the plan of the statement for unknown values. The values of keys have a type that only the
// database knows, so that none are there to plan with.
func (s *statement) genericPlan(ctx context.Context, tx *sql.Tx, keyCount int) (plan string, err error) {
	name := "rota_explain_" + rand.Text() // one that an error has left on the session is in nobody's way
	list := ""
	if n := s.markCount(keyCount); n > 0 {
		list = "(NULL" + strings.Repeat(", NULL", n-1) + ")"
	}
	for _, text := range []string{
		"SET LOCAL plan_cache_mode = force_generic_plan", "PREPARE " + name + " AS " + s.text(keyCount),
	} {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return "", err
		}
	}
	rows, err := center.Column[string](ctx, tx, "EXPLAIN (FORMAT JSON, VERBOSE) EXECUTE "+name+list)
	if err == nil {
		_, err = tx.ExecContext(ctx, "DEALLOCATE "+name)
	}
	return strings.Join(rows, "\n"), err
}

// keyMarks returns the marks of the keys in the text for keyCount keys, on a database with numbered marks.
func (s *statement) keyMarks(keyCount int) (marks []string) {
	n := 0
	for i, name := range s.names {
		var written strings.Builder
		count := s.writeMarks(&written, i, n, keyCount)
		if n += count; name == keys {
			marks = append(marks, numberedMark.FindAllString(written.String(), -1)...)
		}
	}
	return marks
}

var numberedMark = regexp.MustCompile(`\$\d+`)

// access is how a plan of PostgreSQL reads a table.
type access struct {
	table, quoted string
	index         string // empty for a whole table
	condition     string // on the index, in the order of its columns
}

// accesses returns how a plan reads tables. Several indexes of one table are several accesses.
func accesses(plan string) (list []access) {
	var tree any
	_ = json.Unmarshal([]byte(plan), &tree) // a plan that is no JSON has no nodes
	text := func(node map[string]any, key string) string {
		t, _ := node[key].(string)
		return t
	}
	var visit func(tree any, table, quoted string)
	visit = func(tree any, table, quoted string) {
		switch t := tree.(type) {
		case []any:
			for _, child := range t {
				visit(child, table, quoted)
			}
		case map[string]any:
			kind := text(t, "Node Type")
			if name := text(t, "Relation Name"); name != "" {
				table, quoted = name, pq.QuoteIdentifier(text(t, "Schema"))+"."+pq.QuoteIdentifier(name)
			}
			if kind == "Seq Scan" || strings.HasPrefix(kind, "Index") || kind == "Bitmap Index Scan" {
				list = append(list, access{table, quoted, text(t, "Index Name"), text(t, "Index Cond")})
			}
			for _, child := range t {
				visit(child, table, quoted)
			}
		}
	}
	visit(tree, "", "")
	return list
}

// byKeys reports whether an access finds the rows by their keys: they are in the first condition on the index, or in
// one on an index that is unique.
func (a access) byKeys(ctx context.Context, db *sql.DB, marks []string) (bool, error) {
	first, _, _ := strings.Cut(a.condition, " AND ")
	has := func(text string) bool {
		isKey := func(mark string) bool { return slices.Contains(marks, mark) }
		return slices.ContainsFunc(numberedMark.FindAllString(text, -1), isKey)
	}
	if has(first) || !has(a.condition) {
		return has(first), nil
	}
	var unique bool
	err := db.QueryRowContext(ctx, `SELECT COALESCE(bool_and(i.indisunique), FALSE)
		FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
		WHERE c.relname = $1`, a.index).Scan(&unique)
	return unique, err
}
