package schema

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
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
	dir, err := fs.Sub(known.files, l.dir)
	if err != nil {
		return err
	}
	dir = editedFiles{dir, l.grammar}
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

// upMark is the line of a migration after which its statements begin.
const upMark = "-- +goose Up\n"

// editedFiles holds migrations as a dialect needs them: with a statement before their own, and edited for the database.
// goose has no hook at the begin of a transaction. A setting of the connection would reach other clients behind
// PgBouncer in transaction mode. A statement in each file could be forgotten.
type editedFiles struct {
	fs.FS
	*grammar
}

// Open returns an edited migration, or a directory as it is.
func (e editedFiles) Open(name string) (fs.File, error) {
	if !strings.HasSuffix(name, ".sql") {
		return e.FS.Open(name)
	}
	text, err := fs.ReadFile(e.FS, name)
	if err != nil {
		return nil, err
	}
	head, statements, found := strings.Cut(string(text), upMark)
	if !found {
		return nil, fmt.Errorf("%s has no line %q", name, strings.TrimSpace(upMark))
	}
	f, err := e.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return editedFile{f, strings.NewReader(head + upMark + e.begin + "\n" + e.edit(statements))}, nil
}

// editedFile is a file with another text.
type editedFile struct {
	fs.File
	text *strings.Reader
}

// Read reads the text.
func (f editedFile) Read(p []byte) (int, error) { return f.text.Read(p) }

// retry repeats op while again reports true for its error, until limit has passed or ctx ends. A limit of 0 is none.
func retry(ctx context.Context, again func(error) bool, limit time.Duration, op func() error) error {
	pauses := &backoff.ExponentialBackOff{
		InitialInterval:     20 * time.Millisecond,
		MaxInterval:         time.Second,
		Multiplier:          1.5,
		RandomizationFactor: 0.5, // so that many processes that wait for the same lease do not ask at the same time
	}
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := op()
		if err != nil && !again(err) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pauses), backoff.WithMaxElapsedTime(limit))
	return causeOr(ctx, err)
}

// causeOr returns err. If ctx has ended, too, it returns the cause of that: err is then a consequence, such as a
// driver's "canceling statement due to user request".
func causeOr(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// awaitLimit is how long Await waits for the process that migrates.
const awaitLimit = time.Minute

// Await does what [Check] does, and first waits for a process that migrates the database, for at most a minute. Its
// error then names that process. Await only reads, as Check does.
func Await(ctx context.Context, db *sql.DB, d Dialect) error {
	g, err := d.grammar()
	if err != nil {
		return err
	}
	return g.await(ctx, db, awaitLimit)
}

func (g *grammar) await(ctx context.Context, db *sql.DB, limit time.Duration) error {
	again := func(err error) bool { return errors.Is(err, errHeld) }
	return retry(ctx, again, limit, func() error { return g.checkUnheld(ctx, db) })
}

// checkUnheld does what Check does. It returns errHeld if another process can be the reason of a version that is too
// old. It reads the version once more after the lock: a process may have migrated, or may have begun to, in between.
func (g *grammar) checkUnheld(ctx context.Context, db *sql.DB) error {
	var before, after *VersionError
	if err := Check(ctx, db, g.name); !errors.As(err, &before) || errors.Is(err, ErrNewer) {
		return err
	}
	holder, err := g.liveHolder(ctx, db)
	if err != nil {
		return err
	}
	err = Check(ctx, db, g.name)
	switch {
	case !errors.As(err, &after) || errors.Is(err, ErrNewer):
		return err
	case holder != "":
		return fmt.Errorf("%w: %s holds the migration lock, the schema is version %d of %d", errHeld, holder, after.Have,
			after.Want)
	case after.Have != before.Have:
		return errHeld
	}
	return err
}

// liveHolder returns the holder of the migration lock, or "" if no process holds it.
func (g *grammar) liveHolder(ctx context.Context, db *sql.DB) (holder string, err error) {
	query := `SELECT COALESCE(MAX(holder), '') FROM schedule_schema_lock WHERE id = 1 AND holder <> ''
		AND expires_at >= ` + g.now
	err = retry(ctx, g.transient, patience, func() error { return db.QueryRowContext(ctx, query).Scan(&holder) })
	if err != nil && !g.noTable(err) {
		return "", fmt.Errorf("read the holder of the migration lock: %w", err)
	}
	return holder, nil
}
