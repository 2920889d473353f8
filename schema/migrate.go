package schema

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

// Up brings the schema of the database to [Latest] and returns the version before and the version after. It is safe
// to call from many processes at once: one of them migrates, and the others wait for it until ctx ends. Up refuses a
// schema that is newer than this program with [ErrNewer], and tables from before the first release with [ErrVoid],
// and changes neither.
//
// The account of db needs the right to create tables and views. Behind PgBouncer in transaction mode the handle
// needs binary_parameters=yes, as every handle of lib/pq does there. On PostgreSQL and SQLite a migration that
// fails leaves nothing behind. On MySQL it leaves what it has created, and the next Up continues from there.
func Up(ctx context.Context, db *sql.DB, d Dialect) (from, to int64, err error) {
	g, err := d.grammar()
	if err != nil {
		return 0, 0, err
	}
	if from, err = g.version(ctx, db); err != nil || from >= Latest() {
		return from, from, cmp.Or(err, refuseNewer(from))
	}
	l := newLease(g, db)
	err = l.hold(ctx, func(ctx context.Context) error {
		from, to, err = l.up(ctx)
		return err
	})
	return from, to, err
}

// up migrates while the lease is held. It reads the version again, because another process may have migrated while
// this one waited for the lease.
func (l *lease) up(ctx context.Context) (from, to int64, err error) {
	if from, err = l.version(ctx, l.db); err != nil || from >= Latest() {
		return from, from, cmp.Or(err, refuseNewer(from))
	}
	if err = retry(ctx, l.transient, patience, func() error { return l.apply(ctx) }); err != nil {
		return from, from, err
	}
	return from, Latest(), nil
}

// refuseNewer returns an error if the version have is newer than this program.
func refuseNewer(have int64) error {
	if have > Latest() {
		return &VersionError{Have: have, Want: Latest()}
	}
	return nil
}

// apply runs the pending migrations. It makes a new provider for each attempt: a provider that has failed once does
// not read the version table again.
func (l *lease) apply(ctx context.Context) error {
	store, err := l.store()
	if err != nil {
		return err
	}
	dir, err := fs.Sub(known.files, string(l.name))
	if err != nil {
		return err
	}
	if l.begin != "" {
		dir = begunFiles{dir, l.begin}
	}
	provider, err := goose.NewProvider(goose.DialectCustom, l.db, dir,
		goose.WithStore(guardedStore{store, l}), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	if failed, ok := errors.AsType[*goose.PartialError](err); ok {
		return fmt.Errorf("apply migration %s: %w", failed.Failed.Source.Path, failed.Err)
	}
	return err
}

// guardedStore is the version table, which records a version only while the lease is held. It checks that in the
// transaction of the migration. A process that slept until its lease expired therefore records nothing, and on
// PostgreSQL and SQLite changes nothing.
type guardedStore struct {
	database.Store
	lease *lease
}

// Insert renews the lease and records a version.
func (s guardedStore) Insert(ctx context.Context, tx database.DBTxConn, req database.InsertRequest) error {
	if err := s.lease.renew(ctx, tx); err != nil {
		return err
	}
	return s.Store.Insert(ctx, tx, req)
}

// TableExists returns true: goose asks before it creates the table, which [lease.wait] has created.
func (s guardedStore) TableExists(context.Context, database.DBTxConn) (bool, error) { return true, nil }
