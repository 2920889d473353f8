package runs

import (
	"time"

	"github.com/sirupsen/logrus"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// ModeRun is the mode of a task type that works in runs.
const ModeRun = "RUN"

// Engine makes, opens, sweeps and ends the runs of one own_sign. Its methods are safe for concurrent use.
type Engine struct {
	db       *sqldb.DB
	roster   *roster.Roster
	ownSign  string
	log      logrus.FieldLogger
	defaults Defaults
	ends     *endCounts
}

// Defaults are the values of the settings that the row of a task type leaves open, or of a row that is deleted.
type Defaults struct {
	MaxRecoveries    int
	QueueMaxAttempts int
	QueueRetry       time.Duration
	RunTimeout       time.Duration
}

// NewEngine returns an engine for the runs of the roster's own_sign. It registers with the roster: when queues are removed,
// their rows in the open run end in the same transaction.
func NewEngine(r *roster.Roster, log logrus.FieldLogger, d Defaults) *Engine {
	r.QueuesRemoved = endQueuesOfOpenRun
	return &Engine{db: r.DB, roster: r, ownSign: r.OwnSign, log: log, defaults: d, ends: &endCounts{runs: map[RunEnd]int64{}}}
}
