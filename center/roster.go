package center

import (
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// Roster reads and changes who owns what, in one own_sign. All methods may be called concurrently.
type Roster struct {
	db      *sqldb.DB
	ownSign string
	onLock  func(taskType string, held time.Duration)
}

// In returns the roster of another own_sign in the same database.
func (r *Roster) In(ownSign string) *Roster {
	other := *r
	other.ownSign = ownSign
	return &other
}
