package center

import (
	"log/slog"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/runs"
)

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
