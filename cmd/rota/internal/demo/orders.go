package demo

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/dustin/go-humanize"
)

// createOrders makes the user's table of work, with orderCount rows. The statements are the same on every database.
func createOrders(ctx context.Context, db *sql.DB) error {
	for _, statement := range []string{
		`CREATE TABLE orders (
			id         INTEGER     NOT NULL PRIMARY KEY,
			state      VARCHAR(10) NOT NULL,
			settled_by VARCHAR(150),
			effects    INTEGER     NOT NULL)`,
		`CREATE INDEX orders_state ON orders (state, id)`,
		`INSERT INTO orders (id, state, effects)
			WITH digit AS (SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
				UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)
			SELECT 1 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d, 'NEW', 0
			FROM digit a CROSS JOIN digit b CROSS JOIN digit c CROSS JOIN digit e CROSS JOIN (SELECT 0 AS d UNION ALL SELECT 1) f`,
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("make the table of orders: %w", err)
		}
	}
	return nil
}

// count writes a number for people.
func count(n int) string { return humanize.Comma(int64(n)) }
