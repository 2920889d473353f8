package schema

import (
	"database/sql"
	"io/fs"
	"os"
	"testing"
	"testing/fstest"
)

// TeachLater gives this process the synthetic migrations of testdata/later up to the version latest, beside its own,
// until the test ends. Tests that call it must not run in parallel with others.
func TeachLater(t *testing.T, latest int64) {
	t.Helper()
	later, err := withLater(latest)
	if err != nil {
		t.Fatal(err)
	}
	own := known
	known = later
	t.Cleanup(func() { known = own })
}

// withLater returns the embedded migrations and the synthetic ones up to the version latest.
func withLater(latest int64) (migrations, error) {
	all := fstest.MapFS{}
	for _, source := range []fs.FS{embedded, os.DirFS("testdata/later")} {
		err := fs.WalkDir(source, ".", func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			text, err := fs.ReadFile(source, path)
			all[path] = &fstest.MapFile{Data: text}
			return err
		})
		if err != nil {
			return migrations{}, err
		}
	}
	steps, err := readSteps(all, postgres.dir)
	if err != nil {
		return migrations{}, err
	}
	for _, later := range steps {
		for _, g := range grammars {
			if later.Version > latest {
				delete(all, fileName(g, later))
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
