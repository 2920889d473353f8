package schema

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// versionTable is goose's record of what was applied, under our name and with our times.
const versionTable = "schedule_schema_version"

// patience is how long a statement is tried again that others' transactions stop.
const patience = time.Minute

// Migration is one step of the schema.
type Migration struct {
	Version   int64
	Name      string    // Name is empty for a version that only a newer program knows.
	AppliedAt time.Time // AppliedAt is by the database's clock, in UTC. Zero means that it is pending.
}

// Latest returns the version of the schema that this program needs, the newest that it knows.
func Latest() int64 {
	return known[len(known)-1].Version
}

// Check returns nil if this program may work on the schema of the database: if it is the one that it knows, or
// a newer one that says that this program may run beside it, as in a rolling upgrade. Else it returns a
// [VersionError]; any other error means that the database did not tell. Check only reads: SELECT on
// schedule_schema_version and schedule_schema_lock is all it needs.
func Check(ctx context.Context, db *sql.DB, d Dialect) error {
	g, err := d.grammar()
	if err != nil {
		return err
	}
	have, err := g.version(ctx, db)
	if err != nil {
		return err
	}
	if have == Latest() || have > Latest() && g.bears(ctx, db, Latest()) {
		return nil
	}
	return &VersionError{Have: have, Want: Latest()}
}

// bears reports that programs of an older schema may run on this newer one. A schema that does not say so may
// be any.
func (g *grammar) bears(ctx context.Context, db *sql.DB, older int64) bool {
	var oldest int64
	err := retry(ctx, g.transient, patience, func() error {
		return db.QueryRowContext(ctx, `SELECT oldest_companion FROM schedule_schema_lock WHERE id = 1`).Scan(&oldest)
	})
	return err == nil && oldest <= older
}

// version returns 0 if there is no schema yet.
func (g *grammar) version(ctx context.Context, db *sql.DB) (v int64, err error) {
	const query = `SELECT COALESCE(MAX(version_id), 0) FROM ` + versionTable + ` WHERE is_applied`
	err = retry(ctx, g.transient, patience, func() error { return db.QueryRowContext(ctx, query).Scan(&v) })
	if err != nil && !g.noTable(err) {
		return 0, fmt.Errorf("read the version of the schema: %w", err)
	}
	return v, nil
}

// Status returns every migration that this program knows or the database has, oldest first.
// Like [Check] it only reads.
func Status(ctx context.Context, db *sql.DB, d Dialect) ([]Migration, error) {
	g, err := d.grammar()
	if err != nil {
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
	return merge(known, applied), nil
}

// applied returns what was applied, by version. Migrations are applied in the order of their versions,
// without a gap.
func (g *grammar) applied(ctx context.Context, db *sql.DB) ([]Migration, error) {
	const query = `SELECT version_id, tstamp FROM ` + versionTable + ` WHERE version_id > 0 AND is_applied ORDER BY version_id`
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

// merge lays the applied migrations over the known ones. Both are sorted by version.
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
		err = fmt.Errorf("%T is not a time", src)
	}
	*i = instant(t.UTC())
	return err
}
