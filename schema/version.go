package schema

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// versionTable is goose's record of the applied migrations, under our name and with our times.
const versionTable = "schedule_schema_version"

// patience is how long retry repeats a statement that fails because of other transactions.
const patience = time.Minute

// Check returns nil if this program may work on the schema of the database: if it has the version [Latest], or a newer
// one that allows programs of this version beside it, as in a rolling upgrade. Otherwise it returns [ErrVoid] or a
// [VersionError]. Any other error means that the database did not answer. Check only reads: SELECT on
// schedule_schema_version and schedule_schema_lock is enough.
func Check(ctx context.Context, db *sql.DB, d Dialect) error {
	g, err := d.grammar()
	if err != nil {
		return err
	}
	have, err := g.version(ctx, db)
	if err != nil {
		return err
	}
	if have == Latest() || have > Latest() && g.allows(ctx, db, Latest()) {
		return nil
	}
	return &VersionError{Have: have, Want: Latest()}
}

// allows reports whether the newer schema of the database allows programs of an older version. A schema without that
// information allows none.
func (g *grammar) allows(ctx context.Context, db *sql.DB, older int64) bool {
	var oldest int64
	err := retry(ctx, g.transient, patience, func() error {
		return db.QueryRowContext(ctx, `SELECT oldest_companion FROM schedule_schema_lock WHERE id = 1`).Scan(&oldest)
	})
	return err == nil && oldest <= older
}

// version returns the version of the schema, and 0 if there is none yet. It returns [ErrVoid] for tables from before
// the first release.
func (g *grammar) version(ctx context.Context, db *sql.DB) (v int64, err error) {
	if err := g.refuseVoid(ctx, db); err != nil {
		return 0, err
	}
	const query = `SELECT COALESCE(MAX(version_id), 0) FROM ` + versionTable + ` WHERE is_applied`
	err = retry(ctx, g.transient, patience, func() error { return db.QueryRowContext(ctx, query).Scan(&v) })
	if err != nil && !g.noTable(err) {
		return 0, fmt.Errorf("read the version of the schema: %w", err)
	}
	return v, nil
}

// refuseVoid returns [ErrVoid] if an earlier edition made the tables. A database without the lock table has no tables,
// or has those of a newer version, which the version table shows.
func (g *grammar) refuseVoid(ctx context.Context, db *sql.DB) error {
	var earlier int
	err := retry(ctx, g.transient, patience, func() error {
		return db.QueryRowContext(ctx, `SELECT COUNT(*) FROM schedule_schema_lock WHERE edition <> `+edition).Scan(&earlier)
	})
	switch {
	case g.noTable(err):
		return nil
	case g.noColumn(err) || err == nil && earlier > 0:
		return ErrVoid
	case err != nil:
		return fmt.Errorf("read the edition of the schema: %w", err)
	}
	return nil
}
