package schema

import (
	"errors"
	"fmt"
)

// ErrVoid means that a program from before the first release made the tables. They cannot be upgraded.
var ErrVoid = errors.New("the database has Rota tables from before the first release, which cannot be upgraded: " +
	"drop the view schedule_assignment and the schedule_* tables, or use another database or schema")

// The reasons of a [VersionError], for errors.Is.
var (
	ErrMissing = errors.New("the database has no Rota tables")
	ErrOlder   = errors.New("the database's schema is older than this program")
	ErrNewer   = errors.New("the database's schema is newer than this program")
)

// VersionError means that the schema of the database has another version than this program works with. Its text names
// the command that helps.
type VersionError struct {
	Have int64 // Have is the version of the database. 0 means that it has no tables.
	Want int64 // Want is the version that this program needs, the newest that it knows.
}

// Error returns one line, made for an operator.
func (e *VersionError) Error() string {
	switch {
	case e.Have == 0:
		return `the database has no Rota tables: run "rota migrate up"`
	case e.Have < e.Want:
		return fmt.Sprintf(`the database's schema is version %d, this program needs %d: run "rota migrate up"`, e.Have,
			e.Want)
	default:
		return fmt.Sprintf(`the database's schema is version %d, this program knows up to %d: install a newer rota`, e.Have,
			e.Want)
	}
}

// Is reports whether target is the reason of this error: [ErrMissing], [ErrOlder] or [ErrNewer].
func (e *VersionError) Is(target error) bool { return target == e.reason() }

func (e *VersionError) reason() error {
	switch {
	case e.Have == 0:
		return ErrMissing
	case e.Have < e.Want:
		return ErrOlder
	default:
		return ErrNewer
	}
}
