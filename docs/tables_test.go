package docs_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/schema"
)

// relation is a table or view, as the page describes it or as the database has it.
type relation struct {
	Columns []string // "name type", with "or NULL" where that is possible
	Key     []string
	Uniques [][]string          // the columns of each unique constraint
	Indexes map[string][]string // the columns of each other index
}

// The page describes every table, view, column and index, and nothing else.
func TestTablesAreDescribed(t *testing.T) {
	text, err := os.ReadFile("tables.md")
	if err != nil {
		t.Fatal(err)
	}
	described, err := parseTables(string(text))
	if err != nil {
		t.Fatal(err)
	}
	testdb.Each(t, func(t *testing.T, url string) {
		c := centertest.Open(t, url, center.Options{})
		has, err := readRelations(t.Context(), c.DB(), c.Dialect())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(known(has, c.Dialect()), known(described, c.Dialect())); diff != "" {
			t.Errorf("docs/tables.md (-database +page):\n%s", diff)
		}
	})
}

// known returns what a database can tell. It does not tell which columns of a view may be NULL. SQLite has no type for
// times, and no types for the computed columns of a view. The page has a column where it reads well, and the database
// has a new one at the end.
func known(all map[string]relation, d schema.Dialect) map[string]relation {
	plain := map[string]relation{}
	for name, r := range all {
		r.Columns = slices.Clone(r.Columns)
		for i, c := range r.Columns {
			if name == view {
				c = strings.TrimSuffix(c, " or NULL")
			}
			if d == schema.SQLite {
				c = strings.Replace(c, " time", " text", 1)
			}
			if d == schema.SQLite && name == view {
				c, _, _ = strings.Cut(c, " ")
			}
			r.Columns[i] = c
		}
		slices.Sort(r.Columns)
		plain[name] = r
	}
	return plain
}

const view = "schedule_assignment"

var (
	tableHeading = regexp.MustCompile("^## `(schedule_\\w+)`$")
	row          = regexp.MustCompile("^\\| `(\\w+)` \\| ((?:text|integer|number|boolean|time)(?: or NULL)?) \\| (.+) \\|$")
	same         = regexp.MustCompile("^All columns of `(\\w+)`")
	index        = regexp.MustCompile("^- `(idx_\\w+)` on ([^:]*)")
	name         = regexp.MustCompile("`(\\w+)`")
)

// parseTables reads the sections of the page. It returns an error for a column whose meaning or writer is missing.
func parseTables(text string) (map[string]relation, error) {
	all := map[string]relation{}
	current := ""
	text = strings.ReplaceAll(text, "\n  ", " ") // the rest of a list item
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if m := tableHeading.FindStringSubmatch(line); m != nil {
			current = m[1]
			all[current] = relation{Indexes: map[string][]string{}}
			continue
		}
		r := all[current]
		if m := row.FindStringSubmatch(line); m != nil {
			cells := strings.Split(m[3], " | ")
			if current != view && len(cells) != 2 || slices.Contains(cells, "") {
				return nil, fmt.Errorf("%s.%s: the row needs a type, a meaning and a writer: %s", current, m[1], line)
			}
			r.Columns = append(r.Columns, m[1]+" "+m[2])
		} else if m := same.FindStringSubmatch(line); m != nil {
			r.Columns = slices.Clone(all[m[1]].Columns)
		} else if m := index.FindStringSubmatch(line); m != nil {
			r.Indexes[m[1]] = names(m[2])
		} else if rest, ok := strings.CutPrefix(line, "Key: "); ok {
			r.Key = names(rest)
		} else if rest, ok := strings.CutPrefix(line, "Unique: "); ok {
			columns, _, _ := strings.Cut(rest, " (")
			r.Uniques = append(r.Uniques, names(columns))
		}
		if current != "" {
			all[current] = r
		}
	}
	return all, nil
}

func names(text string) (list []string) {
	for _, m := range name.FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	return list
}

// catalog has two queries. The first returns table, column, type and whether the column may be NULL, in the order of
// the columns. The second returns table, index, the columns of the index, and whether it is the key or unique.
var catalog = map[schema.Dialect][2]string{
	schema.Postgres: {
		`SELECT table_name, column_name, data_type, is_nullable = 'YES' FROM information_schema.columns
			WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position`,
		`SELECT t.relname, i.relname, string_agg(a.attname, ',' ORDER BY k.position), x.indisprimary, x.indisunique FROM pg_index x
			JOIN pg_class t ON t.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid
			CROSS JOIN LATERAL unnest(x.indkey) WITH ORDINALITY AS k(attnum, position)
			JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.attnum
			WHERE t.relnamespace = current_schema()::regnamespace GROUP BY 1, 2, 4, 5 ORDER BY 1, 2`,
	},
	schema.MySQL: {
		`SELECT table_name, column_name, data_type, is_nullable = 'YES' FROM information_schema.columns
			WHERE table_schema = DATABASE() ORDER BY table_name, ordinal_position`,
		`SELECT table_name, index_name, GROUP_CONCAT(column_name ORDER BY seq_in_index), index_name = 'PRIMARY', non_unique = 0
			FROM information_schema.statistics WHERE table_schema = DATABASE() GROUP BY table_name, index_name, non_unique
			ORDER BY table_name, index_name`,
	},
	schema.SQLite: {
		`SELECT m.name, c.name, c.type, c."notnull" = 0 AND c.pk = 0 FROM sqlite_master m, pragma_table_info(m.name) c
			WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, c.cid`,
		`SELECT m.name, 'key', group_concat(c.name ORDER BY c.pk), TRUE, TRUE FROM sqlite_master m, pragma_table_info(m.name) c
			WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND c.pk > 0 GROUP BY m.name
		UNION ALL SELECT m.name, l.name, group_concat(i.name ORDER BY i.seqno), FALSE, l."unique"
			FROM sqlite_master m, pragma_index_list(m.name) l, pragma_index_info(l.name) i
			WHERE m.type = 'table' AND l.origin <> 'pk' GROUP BY m.name, l.name ORDER BY 1, 2`,
	},
}

// families are the names of types in the databases and on the page.
var families = map[string]string{
	"text": "text", "mediumtext": "text", "varchar": "text",
	"bigint": "integer", "integer": "integer",
	"double precision": "number", "double": "number", "numeric": "number", "decimal": "number",
	"boolean": "boolean", "tinyint": "boolean",
	"timestamp with time zone": "time", "datetime": "time",
}

func readRelations(ctx context.Context, db *sql.DB, d schema.Dialect) (map[string]relation, error) {
	all := map[string]relation{}
	err := each(ctx, db, catalog[d.Family()][0], func(rows *sql.Rows) error {
		var table, column, kind string
		var null bool
		err := rows.Scan(&table, &column, &kind, &null)
		text := column + " " + families[strings.ToLower(kind)]
		if null {
			text += " or NULL"
		}
		r := all[table]
		r.Columns, r.Indexes = append(r.Columns, text), map[string][]string{}
		all[table] = r
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, each(ctx, db, catalog[d.Family()][1], func(rows *sql.Rows) error {
		var table, index, columns string
		var key, unique bool
		err := rows.Scan(&table, &index, &columns, &key, &unique)
		r := all[table]
		switch list := strings.Split(columns, ","); {
		case key:
			r.Key = list
		case unique:
			r.Uniques = append(r.Uniques, list)
		default:
			r.Indexes[index] = list
		}
		all[table] = r
		return err
	})
}

func each(ctx context.Context, db *sql.DB, query string, read func(*sql.Rows) error) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := read(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
