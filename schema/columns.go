package schema

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Kind is what a column holds. The dialects have other types for it: SQLite keeps times as texts.
type Kind string

// The kinds of columns.
const (
	Text     Kind = "text"
	Number   Kind = "number" // a whole number
	Fraction Kind = "fraction"
	Flag     Kind = "flag"
	Time     Kind = "time"
)

// Column is a column of a table.
type Column struct {
	Table, Name string
	Kind        Kind
	Null        bool // it may be NULL
	Key         bool // it belongs to the primary key
}

// kinds are the kinds by the types of PostgreSQL.
var kinds = map[string]Kind{
	"text": Text, "bigint": Number, "double precision": Fraction, "boolean": Flag, "timestamptz(6)": Time,
}

var (
	beginColumn = regexp.MustCompile(
		`^    (?:ADD COLUMN )?(\w+)\s+(text|bigint|double precision|boolean|timestamptz\(6\))(?:\s|,|$)(.*)`)
	primaryKey = regexp.MustCompile(`^    PRIMARY KEY \((.*)\)`)
)

// columns holds the result of Columns.
var columns = sync.OnceValue(func() []Column { return readColumns(embedded) })

// Columns returns the columns of the tables after all migrations, in the order of the migrations. All dialects have the
// same. What is done for each column of a kind derives from it.
func Columns() []Column { return slices.Clone(columns()) }

// Tables returns the tables that have columns of Columns, in the order of the migrations.
func Tables() (list []string) {
	for _, c := range columns() {
		if len(list) == 0 || list[len(list)-1] != c.Table {
			list = append(list, c.Table)
		}
	}
	return slices.Compact(list)
}

func readColumns(files fs.FS) (list []Column) {
	readLines(files, postgres.dir, func(table, line string) {
		if m := beginColumn.FindStringSubmatch(line); m != nil {
			definition, _, _ := strings.Cut(m[3], "--")
			key := strings.Contains(definition, "PRIMARY KEY")
			list = append(list, Column{table, m[1], kinds[m[2]], !key && !strings.Contains(definition, "NOT NULL"), key})
		}
		if m := primaryKey.FindStringSubmatch(line); m != nil {
			names := strings.Split(m[1], ", ")
			for i, c := range list {
				list[i].Key = c.Key || c.Table == table && slices.Contains(names, c.Name)
			}
		}
	})
	return list
}
