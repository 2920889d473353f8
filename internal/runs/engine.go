package runs

import (
	"time"

	"github.com/sirupsen/logrus"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// modeRun is the mode of a task type that works in runs.
const ModeRun = "RUN"

// Engine makes, opens, sweeps and ends the runs of one own_sign. All methods may be called concurrently.
type Engine struct {
	db       *sqldb.DB
	roster   *roster.Roster
	ownSign  string
	log      logrus.FieldLogger
	defaults Defaults
	ends     *endCounts
}

// Defaults are the values of settings that the row of a task type leaves open.
type Defaults struct {
	MaxRecoveries    int
	QueueMaxAttempts int
	QueueRetry       time.Duration
	RunTimeout       time.Duration
}

// NewEngine returns an engine for the runs of the roster.
func NewEngine(r *roster.Roster, log logrus.FieldLogger, d Defaults) *Engine {
	r.QueuesRemoved = endQueuesOfOpenRun
	return &Engine{db: r.DB, roster: r, ownSign: r.OwnSign, log: log, defaults: d, ends: &endCounts{runs: map[RunEnd]int64{}}}
}
