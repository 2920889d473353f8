package center

import (
	"github.com/dutyrota/rota/internal/roster"
)

// Alert is a condition that an operator should know.
type Alert = roster.Alert

// The kinds of alerts.
const (
	AlertStandby  = roster.AlertStandby  // a server has had no queue for long: there are more servers than can work
	AlertNoFetch  = roster.AlertNoFetch  // a server has queues and has not selected for a long time
	AlertStalled  = roster.AlertStalled  // a call of the dealer does not end
	AlertUnheard  = roster.AlertUnheard  // the replies to heartbeats come too late: the server gave its queues away
	AlertCrashes  = roster.AlertCrashes  // servers were expired one after the other with the same queue
	AlertKiller   = roster.AlertKiller   // an item is dead because the process ended while it executed the item alone
	AlertUnserved = roster.AlertUnserved // a task type has queues and no live worker
	AlertFailing  = roster.AlertFailing  // the calls of a server's dealer do nothing but fail
	AlertParked   = roster.AlertParked   // a queue has so many failed items that its selects may miss others

	AlertOutage   = roster.AlertOutage   // items fail and nothing succeeds: the circuit breaker of a server is open
	AlertBacklog  = roster.AlertBacklog  // counts of the backlogs fail
	AlertNoEffect = roster.AlertNoEffect // Execute succeeds, and the selects of a queue return the same items again
	AlertLimit    = roster.AlertLimit    // the selects of a queue seem to ignore their limit
	AlertWitness  = roster.AlertWitness  // other processes of the host cannot notice the end of a server's process at once
)
