package center

import (
	"database/sql"
	"time"
)

// millis is a duration that is stored as whole milliseconds.
type millis time.Duration

// Scan implements sql.Scanner.
func (m *millis) Scan(src any) error {
	var n sql.NullInt64
	if err := n.Scan(src); err != nil {
		return err
	}
	*m = millis(time.Duration(n.Int64) * time.Millisecond)
	return nil
}
