package center

import (
	"github.com/dutyrota/rota/internal/roster"
)

// Roster returns the ownership protocol: register, heartbeat, rebalance, release, leave. It is for package manager, and
// its type is internal: what users and operators need is in the bundles.
func (c *Center) Roster() *roster.Roster { return c.roster }

// DefaultOwnSign is the environment of rosters that name none.
const DefaultOwnSign = roster.DefaultOwnSign

// QueueEpoch is a queue and the epoch under which a server owns it.
type QueueEpoch = roster.QueueEpoch

// Alert is something that an operator should know.
type Alert = roster.Alert

// The kinds of alerts.
const (
	AlertStandby = roster.AlertStandby // a server has had no queue for long: there are more servers than queues
	AlertNoFetch = roster.AlertNoFetch // a server has queues and has not selected for long
	AlertStalled = roster.AlertStalled // a call of the dealer does not end
	AlertParked  = roster.AlertParked  // a queue has so many failed items that its selects may miss others
)

// The states of a server. Only SERVING and STANDBY servers may own queues.
const (
	StateServing  = roster.StateServing  // owns queues
	StateStandby  = roster.StateStandby  // owns none: there are more servers than queues; first in line
	StatePaused   = roster.StatePaused   // an operator paused it
	StateDraining = roster.StateDraining // about to leave
)

// The kinds of schedule_event.
const (
	EventJoined     = roster.EventJoined     // a server registered
	EventLeft       = roster.EventLeft       // a server left in order
	EventExpired    = roster.EventExpired    // a server was silent for too long
	EventRequested  = roster.EventRequested  // a queue is to move away from a live owner
	EventGranted    = roster.EventGranted    // a queue without an owner got one
	EventReleased   = roster.EventReleased   // a drained queue was handed over
	EventTakenOver  = roster.EventTakenOver  // a queue whose owner is gone got another
	EventUnassigned = roster.EventUnassigned // a queue lost its owner, and no server can take it
	EventForced     = roster.EventForced     // a queue was taken although its owner had it in flight
	EventDraining   = roster.EventDraining   // a server is to own nothing any more
	EventPaused     = roster.EventPaused     // a task type or a server was paused
	EventResumed    = roster.EventResumed    // a task type or a server was resumed

	EventRepartition   = roster.EventRepartition   // another number of queues was requested: every server drains
	EventRepartitioned = roster.EventRepartitioned // the number of queues has changed

	EventAdded    = roster.EventAdded    // a named queue was added
	EventRemoving = roster.EventRemoving // a named queue is to be removed: its owner drains it
	EventRemoved  = roster.EventRemoved  // a named queue was removed

	EventForgotten = roster.EventForgotten // an environment that no server had served for long was deleted
	EventSettings  = roster.EventSettings  // an operator changed the settings of a task type
	EventItems     = roster.EventItems     // an operator changed failed items
	EventAlert     = roster.EventAlert     // an alert was raised

	EventRun     = roster.EventRun     // an operator changed a run
	EventTrigger = roster.EventTrigger // an operator changed a trigger

	EventRetaken = roster.EventRetaken // an owner kept a queue that it had been about to release
)

// EventKinds lists the kinds of events.
func EventKinds() []string { return roster.EventKinds() }

// ServerName is what people call a server: host:pid, its uuid without the random end. A process that serves several task
// types has that name in each.
func ServerName(uuid string) string { return roster.ServerName(uuid) }
