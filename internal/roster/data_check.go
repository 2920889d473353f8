package roster

import (
	"context"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// DataRow is a row of schedule_data.
type DataRow struct {
	Name      string    `json:"name"`
	ID        string    `json:"data_id"`
	Marked    bool      `json:"marked"`
	Address   string    `json:"address"`
	CreatedAt time.Time `json:"gmt_created"`
}

// Rows returns the data databases that servers have used, by name.
func (d Data) Rows(ctx context.Context) ([]DataRow, error) {
	list, err := sqldb.Records[DataRow](ctx, d.roster.DB, `SELECT name, data_id, CASE WHEN marked THEN 1 ELSE 0 END,
		address, gmt_created FROM schedule_data WHERE own_sign = ? ORDER BY name`, d.roster.OwnSign)
	return list, sqldb.Wrap(err, "list the data databases")
}

// Check returns ErrOtherData if a database is not the one of the row, as Mark does, but changes nothing.
func (d Data) Check(ctx context.Context, db *sqldb.DB, row DataRow) error {
	got, found, err := d.readMark(ctx, db)
	if err != nil || !found && !row.Marked {
		return err
	}
	return d.sameMark(mark{row.Name, row.ID}, got, found)
}

// FenceRow is the row of a queue in rota_fence.
type FenceRow struct {
	TaskType string    `json:"task_type"`
	QueueID  string    `json:"queue_id"`
	Server   string    `json:"cur_server"`
	Epoch    int64     `json:"epoch"`
	RaisedAt time.Time `json:"raised_at"`
}

// FenceRows returns what is fenced in a data database.
func (d Data) FenceRows(ctx context.Context, db *sqldb.DB) ([]FenceRow, error) {
	list, err := sqldb.Records[FenceRow](ctx, db, `SELECT {columns} FROM rota_fence
		WHERE own_sign = ? AND queue_id <> '' ORDER BY task_type, queue_id`, d.roster.OwnSign)
	return list, sqldb.Wrap(err, "read rota_fence")
}

// Ahead returns the rows of a data database, read just before, that are ahead of the roster: the roster does not know
// their epochs, or says that another server had them. It has lost history (F11).
func (d Data) Ahead(ctx context.Context, rows []FenceRow) (ahead []AheadRow, err error) {
	type place struct{ TaskType, QueueID string }
	type owner struct {
		place
		Ownership
	}
	owners, err := sqldb.Records[owner](ctx, d.roster.DB, `SELECT task_type, queue_id, COALESCE(cur_server, ''), epoch,
		division, queue_index, COALESCE(queue_total, 0) FROM schedule_queue WHERE own_sign = ?`, d.roster.OwnSign)
	if err != nil {
		return nil, fmt.Errorf("read the epochs: %w", err)
	}
	known := make(map[place]Ownership, len(owners))
	for _, o := range owners {
		known[o.place] = o.Ownership
	}
	type highest struct {
		TaskType string
		Epoch    int64
	}
	tasks, err := sqldb.Records[highest](ctx, d.roster.DB, `SELECT task_type, epoch_high
		FROM schedule_task_running WHERE own_sign = ?`, d.roster.OwnSign)
	if err != nil {
		return nil, fmt.Errorf("read the epochs: %w", err)
	}
	high := map[string]int64{}
	for _, t := range tasks {
		high[t.TaskType] = t.Epoch
	}
	for _, row := range rows {
		o, found := known[place{row.TaskType, row.QueueID}]
		if !found {
			o.Epoch = high[row.TaskType] // the queue is gone, and the highest epoch of all that are gone stays
		}
		other := row.Epoch == o.Epoch && o.Owner != "" && row.Server != "" && o.Owner != row.Server
		if row.Epoch > o.Epoch || other {
			ahead = append(ahead, AheadRow{row, o.Epoch})
		}
	}
	return ahead, nil
}

// AheadRow is a row of a data database that is ahead of the roster.
type AheadRow struct {
	FenceRow
	RosterEpoch int64
}
