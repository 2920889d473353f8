package center

import "github.com/dutyrota/rota/internal/condition"

// The kinds of alerts. docs/conditions.md says what each of them means. The kinds of RunProblem are alerts, too.
const (
	AlertStandby      = condition.Standby
	AlertNoFetch      = condition.NoFetch
	AlertStalled      = condition.Stalled
	AlertUnheard      = condition.Unheard
	AlertCrashes      = condition.Crashes
	AlertKiller       = condition.Killer
	AlertUnserved     = condition.Unserved
	AlertFailing      = condition.Failing
	AlertParked       = condition.Parked
	AlertQueueFailing = condition.QueueFailing
	AlertOutage       = condition.Outage
	AlertBacklog      = condition.Backlog
	AlertNoEffect     = condition.NoEffect
	AlertLimit        = condition.Limit
	AlertPage         = condition.BadPage
	AlertWitness      = condition.Witness
)
