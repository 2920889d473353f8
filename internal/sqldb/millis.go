package sqldb

import (
	"database/sql"
	"time"
)

// Millis is a duration that is stored as whole milliseconds. A duration beyond MaxDuration counts as MaxDuration, and
// so does what is no number: a server is not expired because its interval cannot be read (S13).
type Millis time.Duration

// Scan implements sql.Scanner.
func (m *Millis) Scan(src any) error {
	var n sql.NullInt64
	if n.Scan(src) != nil {
		n.Int64 = MaxDuration.Milliseconds()
	}
	*m = Millis(ClampMillis(n.Int64))
	return nil
}
