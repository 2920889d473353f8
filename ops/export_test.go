package ops

import (
	"context"
	"database/sql"
	"strings"
)

// ExplainEvents returns SQLite's query plan for Events.List.
func (c *Client) ExplainEvents(ctx context.Context, f EventFilter) (plan string, err error) {
	query, args := c.Events().eventQuery(f, 100)
	err = c.db.Each(ctx, func(rows *sql.Rows) error {
		var id, parent, unused int
		var line string
		err := rows.Scan(&id, &parent, &unused, &line)
		plan += line + "\n"
		return err
	}, "EXPLAIN QUERY PLAN "+strings.Replace(query, "{columns}", "*", 1), args...)
	return plan, err
}

// Remembered returns how many events the follower remembers as returned.
func (f *EventFollower) Remembered() int { return len(f.returned) }
