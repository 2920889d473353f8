package schema

import (
	"io/fs"
	"regexp"
	"strings"
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

// Checks returns the CHECK constraints of the tables, in the order of the migrations. A program that wants to find
// values that they refuse asks with the same conditions: a table may have lost its constraints, and a database may not
// enforce them. The migrations are the only place that states the bounds.
func Checks(d Dialect) (checks []ColumnCheck) {
	for _, step := range mustGlob(known.files, string(d)+"/*.sql") {
		text, err := fs.ReadFile(known.files, step)
		if err != nil {
			panic(err) // embedded
		}
		table := ""
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(line, "\n")
			if m := createTable.FindStringSubmatch(line); m != nil {
				table = m[1]
			} else if m := columnCheck.FindStringSubmatch(line); m != nil {
				checks = append(checks, ColumnCheck{table, strings.TrimPrefix(m[1], table+"_"), m[2]})
			}
		}
	}
	return checks
}

// mustGlob panics if the pattern is malformed.
func mustGlob(files fs.FS, pattern string) []string {
	names, err := fs.Glob(files, pattern)
	if err != nil {
		panic(err)
	}
	return names
}
