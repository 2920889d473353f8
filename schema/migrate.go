package schema

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

//go:embed postgres/*.sql mysql/*.sql sqlite/*.sql
var files embed.FS

// known are the migrations of this program. They have the same numbers and names in every dialect.
var known = list(string(Postgres))

// Up brings the schema of the database to [Latest] and returns the version that it found and the one that it
// left. It is safe to call from many processes at once: one migrates, the others wait for it until ctx ends.
// A schema that is newer than this program is refused with [ErrNewer] and not touched.
//
// The account of db needs the right to create tables and views. Behind PgBouncer in transaction mode the handle
// needs binary_parameters=yes, as every handle of lib/pq does there. On PostgreSQL and SQLite a migration that
// fails leaves nothing behind; on MySQL it leaves what it had created, and the next Up goes on from there.
func Up(ctx context.Context, db *sql.DB, d Dialect) (from, to int64, err error) {
	g, err := d.grammar()
	if err != nil {
		return 0, 0, err
	}
	if from, err = g.version(ctx, db); err != nil || from >= Latest() {
		return from, from, cmp.Or(err, refuse(from))
	}
	l := newLease(g, db)
	err = l.hold(ctx, func(ctx context.Context) error {
		from, to, err = l.up(ctx)
		return err
	})
	return from, to, err
}

// up migrates under the lease. The version is read again, because others may have migrated while we waited.
func (l *lease) up(ctx context.Context) (from, to int64, err error) {
	if from, err = l.version(ctx, l.db); err != nil || from >= Latest() {
		return from, from, cmp.Or(err, refuse(from))
	}
	if err = retry(ctx, l.transient, patience, func() error { return l.apply(ctx) }); err != nil {
		return from, from, err
	}
	return from, Latest(), nil
}

// refuse returns an error if a schema of the version have is not for this program to touch.
func refuse(have int64) error {
	if have > Latest() {
		return &VersionError{Have: have, Want: Latest()}
	}
	return nil
}

// apply makes a provider of its own for each attempt: one that has failed once does not look again.
func (l *lease) apply(ctx context.Context) error {
	store, err := l.store()
	if err != nil {
		return err
	}
	dir, err := fs.Sub(files, string(l.name))
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectCustom, l.db, dir,
		goose.WithStore(fenced{store, l}), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	if failed, ok := errors.AsType[*goose.PartialError](err); ok {
		return fmt.Errorf("apply migration %s: %w", failed.Failed.Source.Path, failed.Err)
	}
	return err
}

// fenced is the version table with the lease checked where a version is recorded. It happens in the
// migration's own transaction, so that a process which slept through its lease records nothing, and on
// PostgreSQL and SQLite changes nothing.
type fenced struct {
	database.Store
	lease *lease
}

// Insert records a version.
func (f fenced) Insert(ctx context.Context, tx database.DBTxConn, req database.InsertRequest) error {
	if err := f.lease.renew(ctx, tx); err != nil {
		return err
	}
	return f.Store.Insert(ctx, tx, req)
}

// TableExists is asked by goose before it creates the table, which the lease has done.
func (f fenced) TableExists(context.Context, database.DBTxConn) (bool, error) { return true, nil }

// list reads the migrations of a dialect from the names of the files, such as 00001_roster.sql.
func list(dir string) []Migration {
	entries, err := files.ReadDir(dir)
	if err != nil {
		panic(err) // The directory is embedded.
	}
	ms := make([]Migration, len(entries))
	for i, e := range entries {
		version, err := goose.NumericComponent(e.Name())
		if err != nil {
			panic(err) // The file is embedded.
		}
		_, name, _ := strings.Cut(strings.TrimSuffix(e.Name(), path.Ext(e.Name())), "_")
		ms[i] = Migration{Version: version, Name: name}
	}
	return ms
}
