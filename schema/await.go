package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

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
