package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Status returns every migration that this program knows or the database has, oldest first. Like [Check] it only
// reads, and returns [ErrVoid] for tables from before the first release.
func Status(ctx context.Context, db *sql.DB, d Dialect) ([]Migration, error) {
	g, err := d.grammar()
	if err != nil {
		return nil, err
	}
	if err := g.refuseVoid(ctx, db); err != nil {
		return nil, err
	}
	var applied []Migration
	err = retry(ctx, g.transient, patience, func() (err error) {
		applied, err = g.applied(ctx, db)
		return err
	})
	if err != nil && !g.noTable(err) {
		return nil, fmt.Errorf("read the applied migrations: %w", err)
	}
	return merge(known.steps, applied), nil
}

// applied returns the applied migrations by version. Migrations are applied in the order of their versions,
// without a gap.
func (g *grammar) applied(ctx context.Context, db *sql.DB) ([]Migration, error) {
	const query = `SELECT version_id, tstamp FROM ` + versionTable +
		` WHERE version_id > 0 AND is_applied ORDER BY version_id`
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var ms []Migration
	for rows.Next() {
		var m Migration
		if err := rows.Scan(&m.Version, (*instant)(&m.AppliedAt)); err != nil {
			return nil, err
		}
		ms = append(ms, m)
	}
	return ms, rows.Err()
}

// merge returns the known migrations with the times at which they were applied, then the applied ones that are not
// known. Both lists are sorted by version.
func merge(known, applied []Migration) []Migration {
	all := make([]Migration, 0, max(len(known), len(applied)))
	for _, k := range known {
		if len(applied) > 0 && applied[0].Version == k.Version {
			k.AppliedAt, applied = applied[0].AppliedAt, applied[1:]
		}
		all = append(all, k)
	}
	return append(all, applied...)
}

// instant scans a time from a native column and from SQLite's text.
type instant time.Time

// Scan implements [sql.Scanner].
func (i *instant) Scan(src any) (err error) {
	var t time.Time
	switch v := src.(type) {
	case time.Time:
		t = v
	case string:
		t, err = time.ParseInLocation(time.DateTime, v, time.UTC)
	default:
		err = fmt.Errorf("read a time: %T is not a time", src)
	}
	*i = instant(t.UTC())
	return err
}

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
	allowed := have == Latest()
	if have > Latest() {
		if allowed, err = g.allows(ctx, db, Latest()); err != nil {
			return err
		}
	}
	if !allowed {
		return &VersionError{Have: have, Want: Latest()}
	}
	return nil
}

// allows reports whether the newer schema of the database allows programs of an older version. A schema without that
// information allows none.
func (g *grammar) allows(ctx context.Context, db *sql.DB, older int64) (bool, error) {
	var oldest int64
	err := retry(ctx, g.transient, patience, func() error {
		return db.QueryRowContext(ctx, `SELECT oldest_companion FROM schedule_schema_lock WHERE id = 1`).Scan(&oldest)
	})
	switch {
	case g.noTable(err), g.noColumn(err), errors.Is(err, sql.ErrNoRows):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read which programs the schema allows: %w", err)
	}
	return oldest <= older, nil
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
