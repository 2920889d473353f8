package roster

import (
	"context"
	"errors"
	"fmt"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/processor"
)

// Unsuited returns an error for a registered server whose dealer a check refuses, with its name and the reason of the
// check; nil if there is none. It asks the servers of all own_signs, which share the settings, or those of the
// transaction. A server that is dead and not expired yet counts too: it may wake up. No server registers meanwhile,
// where the transaction holds the lock row of its own_sign.
func (l *LockTx) Unsuited(ctx context.Context, everywhere bool,
	check func(processor.Capabilities) error,
) (refused, err error) {
	if everywhere {
		return Unsuited(ctx, l, l.TaskType, "", check)
	}
	return Unsuited(ctx, l, l.TaskType, l.OwnSign, check)
}

// Unsuited is LockTx.Unsuited for an own_sign, or for all if it is empty. Another server may register meanwhile.
func Unsuited(ctx context.Context, q sqldb.Eacher, taskType, ownSign string,
	check func(processor.Capabilities) error,
) (refused, err error) {
	w := sqldb.Where{Text: `task_type = ?`, Args: []any{taskType}}
	w.Equal("own_sign", ownSign)
	type dealer struct{ Server, Offers string }
	list, err := sqldb.Records[dealer](ctx, q, `SELECT MIN(uuid), capabilities FROM schedule_server
		WHERE `+w.Text+` GROUP BY capabilities ORDER BY 1`, w.Args...)
	if err != nil {
		return nil, fmt.Errorf("read what the dealers of the workers can do: %w", err)
	}
	for _, d := range list {
		if why := check(processor.ParseCapabilities(d.Offers)); why != nil {
			return fmt.Errorf("worker %s does not allow it: %w", d.Server, why), nil
		}
	}
	return nil, nil
}

// division says how the items of a task type are divided into queues.
type division struct {
	Splittable bool   // queues may have totals of their own
	Database   string // the setting database
	Totals     int    // the number of different totals that the numbered queues have
}

// readDivision returns the division; false if the task type has no row.
func readDivision(ctx context.Context, l *LockTx) (d division, found bool, err error) {
	d, found, err = sqldb.Record[division](ctx, l, `SELECT splittable, data_database, (SELECT COUNT(DISTINCT queue_total)
		FROM schedule_queue WHERE `+ofTask+`) FROM schedule_task_type WHERE task_type = ?`,
		l.TaskType, l.OwnSign, l.TaskType)
	return d, found, sqldb.Wrap(err, "read the settings")
}

// databases is the number of data databases with items of the task type: 2 stands for several.
func (d division) databases() int {
	switch {
	case d.Database == "":
		return 0
	case CheckDataName(d.Database) == nil:
		return 1
	}
	return 2
}

// suits returns why a dealer cannot work queues with totals of their own; nil if it can.
func (d division) suits(offers processor.Capabilities) error {
	return offers.Check(processor.Needs{Splittable: true, Databases: d.databases()})
}

// keepsCursors returns an error for a dealer whose cursors are in a data database. The roster cannot know whether there
// are any, and cursors belong to their number of queues.
func (d division) keepsCursors(offers processor.Capabilities) error {
	if offers.CursorsInData(d.databases()) {
		return errors.New("it is Cursored, and has its cursors in a data database: stop all workers, " +
			"set cursor_value to '' in rota_fence, and each source is read from its beginning")
	}
	return nil
}
