package schema

import (
	"embed"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
)

//go:embed */*.sql
var embedded embed.FS

// known holds the migrations of this program. Only tests replace it.
var known = mustRead(embedded)

// edition counts the edits of migration 1 before the first release. Each edit raises it, so that [Check] refuses
// the databases that an earlier edition made. The first edition had no mark in the database. From the first release
// on, the edition stays as it is.
const edition = "38"

// Migration is one step of the schema.
type Migration struct {
	Version   int64
	Name      string    // Name is empty for a version that only a newer program knows.
	AppliedAt time.Time // AppliedAt is by the database's clock, in UTC. Zero means that the migration is pending.
}

// migrations holds the steps from an empty database to the schema of a program.
type migrations struct {
	files fs.FS       // one directory per dialect
	steps []Migration // by version; every dialect has the same
}

// Latest returns the version of the schema that this program needs, the newest that it knows.
func Latest() int64 { return known.latest() }

func (m migrations) latest() int64 { return m.steps[len(m.steps)-1].Version }

// mustRead reads the names of the files. It panics if one is malformed: a program that embeds it never works.
func mustRead(files fs.FS) migrations {
	steps, err := readSteps(files, Postgres)
	if err != nil {
		panic(err)
	}
	return migrations{files: files, steps: steps}
}

// readSteps reads the versions and names of a dialect from file names such as 00001_roster.sql.
func readSteps(files fs.FS, d Dialect) ([]Migration, error) {
	entries, err := fs.ReadDir(files, string(d))
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
