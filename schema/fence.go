package schema

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// CheckFence checks whether a database with the items of queues, apart from the roster, has the tables of the fence. It
// returns [ErrMissing] if it does not. It only reads.
func CheckFence(ctx context.Context, db *sql.DB, d Dialect) error {
	g, err := d.grammar()
	if err != nil {
		return err
	}
	for _, table := range []string{"rota_data", "rota_fence"} {
		var n int
		err := retry(ctx, g.transient, patience, func() error {
			return db.QueryRowContext(ctx, `SELECT COUNT(*) FROM `+table+` WHERE own_sign = ''`).Scan(&n)
		})
		switch {
		case g.noTable(err):
			return fmt.Errorf("%w: there is no table %s", ErrMissing, table)
		case err != nil:
			return fmt.Errorf("read %s: %w", table, err)
		}
	}
	return nil
}

// UpFence creates the tables of the fence that are missing. Many processes may call it at once. The account of db needs
// the right to create tables. There are two small tables that never change in place, so that they need no versions.
func UpFence(ctx context.Context, db *sql.DB, d Dialect) error {
	g, err := d.grammar()
	if err != nil {
		return err
	}
	text, err := embedded.ReadFile("fence/" + g.dir + ".sql")
	if err != nil {
		return err
	}
	again := func(err error) bool { return g.transient(err) || g.raced(err) }
	for statement := range strings.SplitSeq(strings.TrimSpace(g.edit(string(text))), ";\n") {
		err := retry(ctx, again, patience, func() error {
			_, err := db.ExecContext(ctx, statement)
			return err
		})
		if err != nil {
			return fmt.Errorf("create the tables of the fence: %w", err)
		}
	}
	return nil
}
