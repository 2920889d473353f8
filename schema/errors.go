package schema

import (
	"errors"
	"fmt"
)

// What [Check] and [Up] find: compare with errors.Is. The errors themselves are a [VersionError],
// whose text names the command that mends it.
var (
	ErrMissing = errors.New("the database has no Rota tables")
	ErrOlder   = errors.New("the database's schema is older than this program")
	ErrNewer   = errors.New("the database's schema is newer than this program")
)

// VersionError says that the schema of the database is not the one that this program works with.
type VersionError struct {
	Have int64 // Have is the version of the database; 0 means that there is none.
	Want int64 // Want is the version that this program needs, the newest that it knows.
}

// Error returns one line, made for an operator.
func (e *VersionError) Error() string {
	switch {
	case e.Have == 0:
		return `the database has no Rota tables: run "rota migrate up"`
	case e.Have < e.Want:
		return fmt.Sprintf(`the database's schema is version %d, this program needs %d: run "rota migrate up"`, e.Have, e.Want)
	default:
		return fmt.Sprintf(`the database's schema is version %d, this program knows up to %d: install a newer rota`, e.Have, e.Want)
	}
}

// Is reports whether target is the sentinel of this error: [ErrMissing], [ErrOlder] or [ErrNewer].
func (e *VersionError) Is(target error) bool { return target == e.kind() }

func (e *VersionError) kind() error {
	switch {
	case e.Have == 0:
		return ErrMissing
	case e.Have < e.Want:
		return ErrOlder
	default:
		return ErrNewer
	}
}
