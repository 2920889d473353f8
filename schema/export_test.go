package schema

import (
	"bytes"
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"testing"
	"testing/fstest"
)

// own is the newest version of the tables without the synthetic migrations.
var own = known.latest()

// TeachLater gives this process the synthetic migrations of testdata/later up to the version latest, beside its own,
// until the test ends. Tests that call it must not run in parallel with others.
func TeachLater(t *testing.T, latest int64) {
	t.Helper()
	later, err := withLater(latest)
	if err != nil {
		t.Fatal(err)
	}
	before := known
	known = later
	t.Cleanup(func() { known = before })
}

// withLater returns the embedded migrations and the synthetic ones, which follow them, up to the version latest.
func withLater(latest int64) (migrations, error) {
	all := fstest.MapFS{}
	for _, g := range grammars {
		for before, source := range map[int64]fs.FS{0: embedded, own: os.DirFS("testdata/later")} {
			steps, err := readSteps(source, g.dir)
			if err != nil {
				return migrations{}, err
			}
			for _, step := range steps {
				text, err := fs.ReadFile(source, fileName(g, step))
				if err != nil {
					return migrations{}, err
				}
				if step.Version += before; step.Version <= latest {
					text = bytes.ReplaceAll(text, []byte("{{previous}}"), fmt.Append(nil, step.Version-1))
					all[fileName(g, step)] = &fstest.MapFile{Data: text}
				}
			}
		}
	}
	return mustRead(all), nil
}

// HoldLock acquires the migration lock. It returns a function that migrates and then releases the lock.
func HoldLock(t *testing.T, db *sql.DB, d Dialect) (migrate func()) {
	t.Helper()
	g, err := d.grammar()
	if err != nil {
		t.Fatal(err)
	}
	l := newLease(g, db)
	if err := l.acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		defer l.release(t.Context())
		if _, _, err := l.up(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
