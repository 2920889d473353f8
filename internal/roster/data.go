package roster

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
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
		return fmt.Errorf("%s (%.60q) must not contain %q", what, name, name[i])
	}
	return nil
}

// DataFence returns what fences the writes of a server in a data database.
func (s Server) DataFence(db *sqldb.DB) Fence {
	f := s.Fence()
	f.DB, f.Table = db, fenceTable
	return f
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
			ErrOtherData, got.ID, want.Name, cmp.Or(want.ID, "none in this roster"))
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
		VALUES (?, ?, ?, FALSE, ?, {now})`, d.roster.OwnSign, name, rand.Text(), sqldb.Clean(address))
	if err != nil && d.roster.DB.Class(err) != sqldb.Duplicate {
		return "", false, sqldb.Wrap(err, "insert the data database %s", name)
	}
	known, _, err = read()
	return known.ID, known.Marked, err
}
