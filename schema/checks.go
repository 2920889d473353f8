package schema

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// ColumnCheck is a CHECK constraint on one column.
type ColumnCheck struct {
	Table, Column string
	Condition     string // SQL in the dialect of the database
}

var (
	createTable = regexp.MustCompile(`^CREATE TABLE (?:IF NOT EXISTS )?(\w+) \(`)
	columnCheck = regexp.MustCompile(`^    CONSTRAINT ck_(\w+) CHECK \((.*)\),?$`)
)

// checks holds the result of Checks by dialect: every server audits each of its task types every 30 seconds, and to
// read the migrations took a third of an audit's CPU time.
var checks = map[Dialect]func() []ColumnCheck{
	Postgres: sync.OnceValue(func() []ColumnCheck { return readChecks(Postgres) }),
	MySQL:    sync.OnceValue(func() []ColumnCheck { return readChecks(MySQL) }),
	SQLite:   sync.OnceValue(func() []ColumnCheck { return readChecks(SQLite) }),
}

// Checks returns the CHECK constraints of the tables, in the order of the migrations. A program that wants to find
// values that they refuse asks with the same conditions: a table may have lost its constraints, and a database may not
// enforce them. The migrations are the only place that states the bounds.
func Checks(d Dialect) []ColumnCheck {
	return slices.Clone(checks[d]())
}

func readChecks(d Dialect) (list []ColumnCheck) {
	for _, step := range mustGlob(embedded, string(d)+"/*.sql") {
		text, err := embedded.ReadFile(step)
		if err != nil {
			panic(err) // embedded
		}
		table := ""
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(line, "\n")
			if m := createTable.FindStringSubmatch(line); m != nil {
				table = m[1]
			} else if m := columnCheck.FindStringSubmatch(line); m != nil {
				list = append(list, ColumnCheck{table, strings.TrimPrefix(m[1], table+"_"), m[2]})
			}
		}
	}
	return list
}

// mustGlob panics if the pattern is malformed.
func mustGlob(files fs.FS, pattern string) []string {
	names, err := fs.Glob(files, pattern)
	if err != nil {
		panic(err)
	}
	return names
}
