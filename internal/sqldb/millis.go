package sqldb

import (
	"database/sql"
	"time"
)

// Millis is a duration that is stored as whole milliseconds. A duration beyond MaxDuration counts as MaxDuration.
type Millis time.Duration

// Scan implements sql.Scanner.
func (m *Millis) Scan(src any) error {
	var n sql.NullInt64
	if err := n.Scan(src); err != nil {
		return err
	}
	*m = Millis(ClampMillis(n.Int64))
	return nil
}
