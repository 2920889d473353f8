package schema

import (
	"embed"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pressly/goose/v3"
)

//go:embed */*.sql
var embedded embed.FS

// known holds the migrations of this program. Only tests replace it.
var known = mustRead(embedded)

// edition counts the edits of migration 1 before the first release. [Check] refuses the databases that an earlier
// edition made. The first edition had no mark in the database. From the first release on, the edition stays as it is.
const edition = "63"

// Migration is one step of the schema.
type Migration struct {
	Version   int64     `json:"version"`
	Name      string    `json:"name"`       // Name is empty for a version that only a newer program knows.
	AppliedAt time.Time `json:"applied_at"` // AppliedAt is by the database's clock, in UTC. Zero: it is pending.
}

// migrations holds the steps from an empty database to the schema of a program.
type migrations struct {
	files fs.FS       // one directory per dialect
	steps []Migration // by version; every dialect has the same
}

// Latest returns the version of the schema that this program needs, the newest that it knows.
func Latest() int64 { return known.latest() }

// Edition returns the edition of migration 1 that this program needs. Databases of another edition are refused.
func Edition() string { return edition }

func (m migrations) latest() int64 { return m.steps[len(m.steps)-1].Version }

// mustRead reads the names of the files. It panics if one is malformed: a program that embeds it never works.
func mustRead(files fs.FS) migrations {
	steps, err := readSteps(files, grammars[0].dir)
	if err != nil {
		panic(err)
	}
	return migrations{files: files, steps: steps}
}

// readSteps reads the versions and names of a directory from file names such as 00001_roster.sql.
func readSteps(files fs.FS, dir string) ([]Migration, error) {
	entries, err := fs.ReadDir(files, dir)
	if err != nil {
		return nil, err
	}
	steps := make([]Migration, len(entries))
	for i, e := range entries {
		version, err := goose.NumericComponent(e.Name())
		if err != nil {
			return nil, err
		}
		_, name, _ := strings.Cut(strings.TrimSuffix(e.Name(), path.Ext(e.Name())), "_")
		steps[i] = Migration{Version: version, Name: name}
	}
	return steps, nil
}

// ColumnCheck is a CHECK constraint on one column.
type ColumnCheck struct {
	Table, Column string
	Condition     string // SQL in the dialect of the database
}

var (
	beginTable  = regexp.MustCompile(`^(?:CREATE TABLE (?:IF NOT EXISTS )?(\w+) \(|ALTER TABLE (\w+))$`)
	columnCheck = regexp.MustCompile(`^    (?:ADD |DROP )?CONSTRAINT ck_(\w+)(?: CHECK \((.*)\))?[,;]?$`)
)

// checks holds the result of Checks by dialect: every server audits each of its task types every 30 seconds, and to
// read the migrations took a third of an audit's CPU time.
var checks = sync.OnceValue(func() map[Dialect][]ColumnCheck {
	all := map[Dialect][]ColumnCheck{}
	for _, g := range grammars {
		all[g.name] = readChecks(embedded, g.dir)
	}
	return all
})

// Checks returns the CHECK constraints of the tables after all migrations, oldest first. A program that wants to find
// values that they refuse asks with the same conditions: a table may have lost its constraints, and a database may not
// enforce them. The migrations are the only place that states the bounds.
func Checks(d Dialect) []ColumnCheck {
	return slices.Clone(checks()[d])
}

func readChecks(files fs.FS, dir string) (list []ColumnCheck) {
	readLines(files, dir, func(table, line string) {
		m := columnCheck.FindStringSubmatch(line)
		if m == nil {
			return
		}
		check := ColumnCheck{table, strings.TrimPrefix(m[1], table+"_"), m[2]}
		if check.Condition != "" {
			list = append(list, check)
			return
		}
		list = slices.DeleteFunc(list, func(c ColumnCheck) bool {
			return c.Table == check.Table && c.Column == check.Column
		})
	})
	return list
}

// readLines calls read with the lines that define or change a table.
func readLines(files fs.FS, dir string, read func(table, line string)) {
	for _, step := range mustGlob(files, dir+"/*.sql") {
		text, err := fs.ReadFile(files, step)
		if err != nil {
			panic(err) // embedded
		}
		table := ""
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(line, "\n")
			if m := beginTable.FindStringSubmatch(line); m != nil {
				table = m[1] + m[2]
			} else {
				read(table, line)
			}
		}
	}
}

// mustGlob panics if the pattern is malformed.
func mustGlob(files fs.FS, pattern string) []string {
	names, err := fs.Glob(files, pattern)
	if err != nil {
		panic(err)
	}
	return names
}
