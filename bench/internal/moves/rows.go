package moves

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/dutyrota/rota/bench/internal/stage"
	"github.com/dutyrota/rota/processor"
)

// rowDealer has rows as items. Row id is of part mod(id, parts), and the total of each queue divides parts.
type rowDealer struct {
	db       *sql.DB
	postgres bool
	took     time.Duration // of an item without its UPDATE
	parts    int
}

// Select implements processor.TaskDealer.
func (d *rowDealer) Select(ctx context.Context, s processor.Selection) (list []item, err error) {
	var parts []string
	for part := s.Queue.Index; part < d.parts; part += s.Total {
		parts = append(parts, fmt.Sprint(part))
	}
	rows, err := d.db.QueryContext(ctx, fmt.Sprintf(`SELECT part, id FROM item WHERE part IN (%s) AND done = 0
		ORDER BY id LIMIT %d`, strings.Join(parts, ", "), s.Limit))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		i := item{total: s.Total}
		if err := rows.Scan(&i.queue, &i.n); err != nil {
			return nil, err
		}
		list = append(list, i)
	}
	return list, rows.Err()
}

// Execute implements processor.TaskDealer. The row is marked at the end, so that another worker would execute it too if
// it had the row's queue meanwhile.
func (d *rowDealer) Execute(ctx context.Context, items []item) error {
	begin, i := time.Now(), items[0]
	time.Sleep(d.took)
	query := `UPDATE item SET done = done + 1 WHERE part = ? AND id = ?`
	if d.postgres {
		query = `UPDATE item SET done = done + 1 WHERE part = $1 AND id = $2`
	}
	if _, err := d.db.ExecContext(ctx, query, i.queue, i.n); err != nil {
		return err
	}
	return i.report(begin)
}

// insertRows inserts so many rows, the same number for each part.
func insertRows(ctx context.Context, db *stage.Database, rows, parts int) error {
	if err := db.Do(ctx, `CREATE TABLE item (part bigint, id bigint, done bigint NOT NULL, PRIMARY KEY (part, id))`); err != nil {
		return err
	}
	const each = 1000
	for first := 0; first < rows; first += each {
		var values []string
		for id := first; id < min(rows, first+each); id++ {
			values = append(values, fmt.Sprintf("(%d, %d, 0)", id%parts, id))
		}
		if err := db.Do(ctx, `INSERT INTO item (part, id, done) VALUES `+strings.Join(values, ", ")); err != nil {
			return err
		}
	}
	return nil
}
