package runs

import (
	"context"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// Triggers reads, changes and fires triggers.
type Triggers struct {
	core
	seen *Trigger // as in IfStill; may be nil
}

// TriggerFilter selects triggers. Empty fields select all.
type TriggerFilter struct {
	Name   string
	Target string
}

// TriggerRecord is a trigger with the columns that only operators read.
type TriggerRecord struct {
	Trigger
	OwnSign        string `json:"own_sign"`
	MisfireAfterMS int64  `json:"misfire_after_ms" db:"-"`
	JitterMS       int64  `json:"jitter_ms" db:"-"`

	Now time.Time `json:"-" db:"database_time"` // by the database's clock, when this was read
}

// List lists the triggers of this own_sign that the filter selects, by name.
func (ts *Triggers) List(ctx context.Context, f TriggerFilter) ([]TriggerRecord, error) {
	w := sqldb.Where{Args: []any{ts.ownSign}}
	w.Equal("name", f.Name)
	w.Equal("target", f.Target)
	list, err := sqldb.Records[TriggerRecord](ctx, ts.db, `SELECT {columns} FROM (SELECT t.*, {now} AS database_time FROM schedule_trigger t
		WHERE own_sign = ?`+w.Text+`) x ORDER BY name`, w.Args...)
	if err != nil {
		return nil, fmt.Errorf("list the triggers: %w", err)
	}
	for i := range list {
		list[i].MisfireAfterMS = list[i].MisfireAfter.Milliseconds()
		list[i].JitterMS = list[i].Jitter.Milliseconds()
	}
	return list, nil
}
