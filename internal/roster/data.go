package roster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dutyrota/rota/internal/sqldb"
)

// fenceTable is the table of a data database: a database with items whose roster is another one (F11).
const fenceTable = "rota_fence"

// CheckDataName returns an error if a name cannot be that of a data database.
func CheckDataName(name string) error {
	const what = "the name of a data database"
	if err := ValidName(what, name, 100); err != nil {
		return err
	}
	if i := strings.IndexAny(name, ",={} "); i >= 0 {
		return fmt.Errorf("%s (%q) must not contain %q", what, name, name[i])
	}
	return nil
}

// DataFence returns what fences the writes of a server in a data database.
func (s Server) DataFence(db *sqldb.DB) Fence {
	f := s.Fence()
	f.DB, f.Table = db, fenceTable
	return f
}

// AheadError means that a data database has fenced a queue under another epoch than the one that was to be raised: a
// higher one, or the same one for another server (F11).
type AheadError struct {
	Queue QueueEpoch
	Found Ownership
}

func (e *AheadError) Error() string {
	return fmt.Sprintf("queue %s is fenced at %s, which is ahead of epoch %d", e.Queue.ID, e.Found, e.Queue.Epoch)
}

// ErrDataCursors means that the number of queues has changed, and cursors are left that belong to the earlier number.
var ErrDataCursors = errors.New("the number of queues has changed, and rota_fence has cursors, which belong to the " +
	"earlier number: set cursor_value to '' there, and each source is read from its beginning")

// Raise makes a data database reject all epochs of a queue below the one under which the server owns it (F11), and
// those of the queues that had its items before it was split or merged, as the column `parted_from` has them (N3).
// floor is the least epoch of the present number of queues. Raise waits for the fenced transactions of earlier epochs,
// for about a second, and then returns a HeldError. It returns an AheadError if the database rejects the epoch itself.
func (f Fence) Raise(ctx context.Context, q QueueEpoch, partedFrom string, floor int64) error {
	all := origins{}
	if err := all.Scan(partedFrom); err != nil {
		return fmt.Errorf("read parted_from of queue %s: %w", q.ID, err)
	}
	if all == nil {
		all = origins{}
	}
	all[q.ID] = q.Epoch
	err := f.DB.Transact(ctx, f.DB.Store, func(ctx context.Context, t sqldb.Tx) error {
		lowest, err := f.raiseFloor(ctx, t, floor)
		if err != nil {
			return err
		}
		if q.Epoch < lowest {
			return &AheadError{q, Ownership{Epoch: lowest}}
		}
		for _, id := range slices.Sorted(maps.Keys(all)) { // all raises lock their rows in one order
			raise := f.raisePast
			if id == q.ID {
				raise = f.raise
			}
			if err := raise(ctx, t, QueueEpoch{id, all[id]}); err != nil {
				return err
			}
		}
		return nil
	})
	return sqldb.Wrap(err, "raise the epoch of queue %s of %s$%s to %d", q.ID, f.TaskType, f.OwnSign, q.Epoch)
}

// HeldError means that fenced transactions have not ended. It hides the error of the database, so that Raise and End do
// not wait again: their callers have other queues to work.
type HeldError struct{ why string }

func (e *HeldError) Error() string { return "fenced transactions of the queue are open: " + e.why }

// held returns a HeldError if a statement has waited in vain for a row.
func (f Fence) held(err error) error {
	if c := f.DB.Class(err); c == sqldb.RolledBack || c == sqldb.Held {
		return &HeldError{err.Error()}
	}
	return err
}

// raiseFloor keeps the least epoch of the present number of queues until the commit, and returns it. If the number is
// new here, it fences the queues of the earlier number: their items may belong to any queue now.
func (f Fence) raiseFloor(ctx context.Context, t sqldb.Tx, floor int64) (lowest int64, err error) {
	n, err := t.Exec(ctx, `UPDATE rota_fence SET epoch = ?, raised_at = {now}, gmt_modified = {now}
		WHERE `+ofTask+` AND queue_id = '' AND epoch < ?`, floor, f.TaskType, f.OwnSign, floor)
	if err != nil {
		return 0, err
	}
	if n == 1 {
		return floor, f.fenceBelow(ctx, t, floor)
	}
	if f.DB.WriteFence {
		_, err := t.Exec(ctx, `UPDATE rota_fence SET gmt_modified = {now} WHERE `+ofTask+` AND queue_id = ''`, f.TaskType,
			f.OwnSign)
		if err != nil {
			return 0, err
		}
	}
	lowest, found, err := sqldb.Record[int64](ctx, t, `SELECT q.epoch FROM rota_fence q WHERE `+ofTask+`
		AND queue_id = ''`+f.DB.Share, f.TaskType, f.OwnSign)
	if err != nil || found {
		return lowest, err
	}
	return floor, f.insert(ctx, t, QueueEpoch{Epoch: floor}, "")
}

// fenceBelow raises the queues of an earlier number of queues, which waits for their fenced transactions.
func (f Fence) fenceBelow(ctx context.Context, t sqldb.Tx, floor int64) error {
	_, err := t.Exec(ctx, `UPDATE rota_fence SET cur_server = '', epoch = ?, gmt_modified = {now}
		WHERE `+ofTask+` AND epoch < ?`, floor, f.TaskType, f.OwnSign, floor)
	if err != nil {
		return f.held(err)
	}
	n, err := sqldb.Value[int](ctx, t, `SELECT COUNT(*) FROM rota_fence WHERE `+ofTask+` AND cursor_value <> ''`,
		f.TaskType, f.OwnSign)
	if err == nil && n > 0 {
		err = ErrDataCursors
	}
	return err
}

// raise writes the row of the queue, unless it is there already.
func (f Fence) raise(ctx context.Context, t sqldb.Tx, q QueueEpoch) error {
	n, err := t.Exec(ctx, `UPDATE rota_fence SET cur_server = ?, epoch = ?, raised_at = {now}, gmt_modified = {now}
		WHERE `+ofTask+` AND queue_id = ? AND (epoch < ? OR epoch = ? AND cur_server = '')`,
		f.Server, q.Epoch, f.TaskType, f.OwnSign, q.ID, q.Epoch, q.Epoch)
	if err != nil || n == 1 {
		return f.held(err)
	}
	found, there, err := sqldb.Record[Ownership](ctx, t, `SELECT q.cur_server, q.epoch FROM rota_fence q
		WHERE `+ofTask+` AND queue_id = ?`+f.DB.Share, f.TaskType, f.OwnSign, q.ID)
	switch {
	case err != nil:
		return err
	case !there:
		return f.insert(ctx, t, q, f.Server)
	case found != Ownership{f.Server, q.Epoch}:
		return &AheadError{q, found}
	}
	return nil
}

// raisePast makes the row of a queue that had the items before reject its owners of then. Its present owner raises it
// further.
func (f Fence) raisePast(ctx context.Context, t sqldb.Tx, q QueueEpoch) error {
	n, err := t.Exec(ctx, `UPDATE rota_fence SET cur_server = '', epoch = ?, gmt_modified = {now}
		WHERE `+ofTask+` AND queue_id = ? AND epoch < ?`, q.Epoch, f.TaskType, f.OwnSign, q.ID, q.Epoch)
	if err != nil || n == 1 {
		return f.held(err)
	}
	_, there, err := sqldb.Record[int64](ctx, t, `SELECT epoch FROM rota_fence WHERE `+ofTask+` AND queue_id = ?`,
		f.TaskType, f.OwnSign, q.ID)
	if err != nil || there {
		return err
	}
	return f.insert(ctx, t, q, "") // else an owner of then could still raise its epoch
}

// insert inserts a row. If another server has just done so, the transaction begins again.
func (f Fence) insert(ctx context.Context, t sqldb.Tx, q QueueEpoch, server string) error {
	_, err := t.Exec(ctx, `INSERT INTO rota_fence (task_type, own_sign, queue_id, cur_server, epoch, cursor_value,
		raised_at, gmt_modified) VALUES (?, ?, ?, ?, ?, '', {now}, {now})`, f.TaskType, f.OwnSign, q.ID, server, q.Epoch)
	if f.DB.Class(err) == sqldb.Duplicate {
		err = sqldb.ErrRaced
	}
	return err
}

// ErrOtherData means that a database is not the data database that the roster knows under a name.
var ErrOtherData = errors.New("another database than the one that the roster knows under this name")

// mark is a row of rota_data, or what the roster expects there.
type mark struct{ Name, ID string }

// ofRoster is an error of the roster's database, in a call that asks a data database, too.
type ofRoster struct{ error }

// Unwrap returns the error of the roster's database.
func (e ofRoster) Unwrap() error { return e.error }

// OfRoster marks an error as one of the roster's database. It returns nil for nil.
func OfRoster(err error) error {
	if err == nil {
		return nil
	}
	return ofRoster{err}
}

// IsOfRoster reports whether OfRoster has marked an error.
func IsOfRoster(err error) bool {
	_, is := errors.AsType[ofRoster](err)
	return is
}

// Data is what a roster knows of its data databases.
type Data struct{ roster *Roster }

// Data returns the roster of the data databases.
func (r *Roster) Data() Data { return Data{r} }

// Mark makes a database the data database of a name, or checks that it is: the roster and the database have the
// same id of it. So one database serves one roster, and none is taken for another one.
func (d Data) Mark(ctx context.Context, db *sqldb.DB, name, address string) error {
	id, marked, err := d.id(ctx, name, address)
	if err != nil {
		return OfRoster(err)
	}
	want := mark{name, id}
	got, found, err := d.readMark(ctx, db)
	if err != nil {
		return err
	}
	if !found && !marked {
		_, err := db.Repeat(ctx, `INSERT INTO rota_data (own_sign, name, data_id, gmt_created) VALUES (?, ?, ?, {now})`,
			d.roster.OwnSign, name, id)
		if err != nil && db.Class(err) != sqldb.Duplicate {
			return sqldb.Wrap(err, "mark the data database %s", name)
		}
		if got, found, err = d.readMark(ctx, db); err != nil {
			return err
		}
	}
	if err := d.sameMark(want, got, found); err != nil || marked {
		return err
	}
	_, err = d.roster.DB.Repeat(ctx, `UPDATE schedule_data SET marked = TRUE WHERE own_sign = ? AND name = ?`,
		d.roster.OwnSign, name)
	return OfRoster(sqldb.Wrap(err, "note that the data database %s is marked", name))
}

// sameMark returns ErrOtherData unless a database has the mark that the roster expects.
func (d Data) sameMark(want, got mark, found bool) error {
	switch {
	case !found:
		return fmt.Errorf("%w: it has no id, and %s had one: a new, empty or restored database; to use it all the same, "+
			"delete the row of %s from schedule_data", ErrOtherData, want.Name, want.Name)
	case got.Name != want.Name:
		return fmt.Errorf("%w: it is %s of environment %s", ErrOtherData, got.Name, d.roster.OwnSign)
	case got.ID != want.ID:
		return fmt.Errorf("%w: it has the id %s, and %s has %s: it belongs to another roster, or is another database",
			ErrOtherData, got.ID, want.Name, want.ID)
	}
	return nil
}

func (d Data) readMark(ctx context.Context, db *sqldb.DB) (m mark, found bool, err error) {
	m, found, err = sqldb.Record[mark](ctx, db, `SELECT name, data_id FROM rota_data WHERE own_sign = ?`, d.roster.OwnSign)
	return m, found, sqldb.Wrap(err, "read rota_data")
}

// id returns the id of a data database in the roster, and whether the database has it. It makes one for a new name.
func (d Data) id(ctx context.Context, name, address string) (id string, marked bool, err error) {
	type row struct {
		ID     string
		Marked bool
	}
	read := func() (found row, ok bool, err error) {
		found, ok, err = sqldb.Record[row](ctx, d.roster.DB, `SELECT data_id, CASE WHEN marked THEN 1 ELSE 0 END
			FROM schedule_data WHERE own_sign = ? AND name = ?`, d.roster.OwnSign, name)
		return found, ok, sqldb.Wrap(err, "read the id of the data database %s", name)
	}
	known, found, err := read()
	if err != nil || found {
		return known.ID, known.Marked, err
	}
	_, err = d.roster.DB.Repeat(ctx, `INSERT INTO schedule_data (own_sign, name, data_id, marked, address, gmt_created)
		VALUES (?, ?, ?, FALSE, ?, {now})`, d.roster.OwnSign, name, rand.Text(), address)
	if err != nil && d.roster.DB.Class(err) != sqldb.Duplicate {
		return "", false, sqldb.Wrap(err, "insert the data database %s", name)
	}
	known, _, err = read()
	return known.ID, known.Marked, err
}
