package center

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/runs"
	"github.com/dutyrota/rota/internal/sqldb"
)

// OwnSigns lists the environments of the database by name.
func (c *Center) OwnSigns(ctx context.Context) (signs []string, err error) {
	signs, err = sqldb.Records[string](ctx, c.db, `SELECT DISTINCT own_sign FROM schedule_task_running ORDER BY own_sign`)
	if err != nil {
		return nil, fmt.Errorf("list the environments: %w", err)
	}
	return signs, nil
}

// In returns a Center for another environment of the same database. They share their connections: Close of either closes
// both.
func (c *Center) In(ownSign string) (*Center, error) {
	o := Options{OwnSign: ownSign}.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	other := &Center{db: c.db, ownSign: o.OwnSign, log: c.log, roster: c.roster.In(o.OwnSign)}
	other.roster.OnInvalid, other.roster.OnLineHeld = other.logInvalid, other.logLineHeld
	other.runs = newEngine(other.roster, c.log)
	return other, nil
}

func newEngine(r *roster.Roster, log *slog.Logger) *runs.Engine {
	d := Settings{}.WithDefaults()
	return runs.NewEngine(r, log, runs.Defaults{
		MaxRecoveries: d.MaxRecoveries, QueueMaxAttempts: d.QueueMaxAttempts, QueueRetry: d.QueueRetry, RunTimeout: d.RunTimeout,
	})
}
