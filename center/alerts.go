package center

import (
	"github.com/dutyrota/rota/internal/condition"
	"github.com/dutyrota/rota/internal/roster"
)

// Alert is a condition that an operator should know.
type Alert = roster.Alert

// The kinds of alerts.
const (
	AlertStandby  = condition.Standby  // a server has had no queue for long: there are more servers than can work
	AlertNoFetch  = condition.NoFetch  // a server has queues and has not selected for a long time
	AlertStalled  = condition.Stalled  // a call of the dealer does not end
	AlertUnheard  = condition.Unheard  // the replies to heartbeats come too late: the server gave its queues away
	AlertCrashes  = condition.Crashes  // servers were expired one after the other with the same queue
	AlertKiller   = condition.Killer   // an item is dead because the process ended while it executed the item alone
	AlertUnserved = condition.Unserved // a task type has queues and no live worker
	AlertFailing  = condition.Failing  // the calls of a server's dealer do nothing but fail
	AlertParked   = condition.Parked   // a queue has so many failed items that its selects may miss others

	AlertQueueFailing = condition.QueueFailing // the calls for a queue do nothing but fail, while others of its server may succeed

	AlertOutage   = condition.Outage   // items fail and nothing succeeds: the circuit breaker of a server is open
	AlertBacklog  = condition.Backlog  // counts of the backlogs fail
	AlertNoEffect = condition.NoEffect // Execute succeeds, and the selects of a queue return the same items again
	AlertLimit    = condition.Limit    // the selects of a queue seem to ignore their limit
	AlertPage     = condition.BadPage  // a select returns an item twice, or items of other queues
	AlertWitness  = condition.Witness  // other processes of the host cannot notice the end of a server's process at once
)
