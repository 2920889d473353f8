package schema

import (
	"context"
	"database/sql"
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
