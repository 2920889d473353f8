package condition

import "cmp"

// The kinds of conditions of which the processes raise alerts.
const (
	Standby  = "STANDBY"   // a server has had no queue for long: there are more servers than can work
	NoFetch  = "NO_FETCH"  // a server has queues and has not selected for long
	Stalled  = "STALLED"   // a call of the dealer does not end
	Unheard  = "UNHEARD"   // the replies to heartbeats come too late: the server gave its queues away
	Crashes  = "CRASHES"   // servers were expired one after the other with the same queue
	Killer   = "KILLER"    // an item is dead because the process ended while it executed the item alone
	Unserved = "UNSERVED"  // a task type has queues and no live worker; a server of another task type raises it
	Failing  = "FAILING"   // the calls of a server's dealer do nothing but fail
	Parked   = "PARKED"    // a queue has so many failed items that its selects may miss others
	Outage   = "OUTAGE"    // items fail and nothing succeeds: the circuit breaker of a server is open
	Backlog  = "BACKLOG"   // counts of the backlogs fail
	NoEffect = "NO_EFFECT" // Execute succeeds, and the selects of a queue return the same items again
	Limit    = "LIMIT"     // the selects of a queue seem to ignore their limit
	BadPage  = "BAD_PAGE"  // a select returns an item twice, or items of other queues
	Witness  = "WITNESS"   // other processes of the host cannot notice the end of a server's process at once

	QueueFailing = "QUEUE_FAILING" // the calls for a queue do nothing but fail, while others of its server may succeed
	RunFailed    = "RUN_FAILED"    // a run is FAILED or DEPENDENT_FAILED, and no later run of its trigger has succeeded
	RunStalled   = "RUN_STALLED"   // no item of an open run has ended for half an hour
	SlotSkipped  = "SLOT_SKIPPED"  // three slots of a trigger in a row were skipped, or all slots of a day
	RunCancelled = "RUN_CANCELLED" // an operator has cancelled a run; only the doctor tells
	RunOverdue   = "RUN_OVERDUE"   // an open run has used 90 % of run_timeout
	SlotMissed   = "SLOT_MISSED"   // a slot of a trigger never fires, and no run of a later slot has succeeded
	TriggerLate  = "TRIGGER_LATE"  // a trigger is due, and no server fires it
	TriggerError = "TRIGGER_ERROR" // a trigger cannot fire, because its row is invalid
)

// The kinds of conditions that only the doctor finds.
const (
	NoTasks         = "NO_TASKS"         // there are no task types
	Healthy         = "HEALTHY"          // nothing is wrong with a task type
	Paused          = "PAUSED"           // a task type is paused
	NeverServed     = "NEVER_SERVED"     // no server has ever served a task type
	NoEligible      = "NO_ELIGIBLE"      // no server may take queues
	ServerPaused    = "SERVER_PAUSED"    // a server is paused
	ServerDrained   = "SERVER_DRAINED"   // a server is drained and still runs
	ServerSilent    = "SERVER_SILENT"    // a server sends no heartbeats
	NoCalls         = "NO_CALLS"         // a server owns queues and gets no call of max_in_flight
	PlannerVersion  = "PLANNER_VERSION"  // servers know other rules of the planner than those in force
	Unwitnessed     = "UNWITNESSED"      // the other processes of its host cannot prove a server's end
	SameName        = "SAME_NAME"        // two servers have one name
	RequireUnmet    = "REQUIRE_UNMET"    // no server has the labels of require
	PinUnmet        = "PIN_UNMET"        // no server has the labels of a pin
	LastError       = "LAST_ERROR"       // a call of the dealer has failed
	Hung            = "HUNG"             // a queue has no owner, because a call of a former session hangs
	NoOwner         = "NO_OWNER"         // a queue has no owner
	Reserved        = "RESERVED"         // a queue waits for the return of a worker
	Orphan          = "ORPHAN"           // the owner of a queue is not registered
	LateHandover    = "LATE_HANDOVER"    // a queue was requested long ago
	DeadItems       = "DEAD_ITEMS"       // items have failed for good
	RetryItems      = "RETRY_ITEMS"      // items have failed and are retried
	BacklogStuck    = "BACKLOG_STUCK"    // the oldest item of a queue stays the oldest
	BacklogOld      = "BACKLOG_OLD"      // counts of backlogs are old
	NoUpstream      = "NO_UPSTREAM"      // the file of a worker names an upstream that does not exist
	BacklogGrowing  = "BACKLOG_GROWING"  // more items come than are executed
	LoadUnknown     = "LOAD_UNKNOWN"     // no queue has a measured load
	LoadIncomplete  = "LOAD_INCOMPLETE"  // the loads of some queues are not known
	LoadTooLarge    = "LOAD_TOO_LARGE"   // a queue has more load than a server should have
	LoadBudget      = "LOAD_BUDGET"      // the load is uneven, and the budget of moves is used up
	RepartitionWait = "REPARTITION_WAIT" // another number of queues waits for servers to drain
	PlanSkipped     = "PLAN_SKIPPED"     // a plan could not move queues, because transactions hold their rows
	RemovalWait     = "REMOVAL_WAIT"     // a queue that is to be removed waits for its owner
	SettingsGone    = "SETTINGS_GONE"    // a task type has no row of settings
	SettingsInvalid = "SETTINGS_INVALID" // workers refuse the row of settings
	SettingsDiffer  = "SETTINGS_DIFFER"  // a program or a file gives other settings than the row
	InvalidValue    = "INVALID_VALUE"    // servers ignore a value of a row
	JoinUnmet       = "JOIN_UNMET"       // no trigger leads to an upstream of a join

	Database   = "DATABASE"   // the database, and whether it can be reached
	Clock      = "CLOCK"      // the clocks of the database and of hosts
	Schema     = "SCHEMA"     // the version of the tables
	Privileges = "PRIVILEGES" // the rights of this role
	Statements = "STATEMENTS" // the statements of the file
	Cursor     = "CURSOR"     // a transaction that holds a cursor back
)

// alerts is the check of conditions that only the process that raises the alert can see. The doctor knows them from the
// events, and therefore not whether they still last.
const alerts = "alerts"

// OnlyAlert reports whether the tables show a condition of this kind only by the event of its alert.
func OnlyAlert(kind string) bool { return checkOf(kind) == alerts }

// checks says to which check a kind belongs.
var checks = map[string]string{
	NoFetch: "dealer", Stalled: "dealer", Failing: "failing", QueueFailing: "failing", LastError: "errors",
	Standby: alerts, Unheard: alerts, Parked: alerts, Outage: alerts, Backlog: alerts, NoEffect: alerts, Limit: alerts, BadPage: alerts,
	Witness:   alerts,
	RunFailed: "runs", RunOverdue: "runs", RunStalled: "runs", RunCancelled: "runs", SlotSkipped: "triggers", SlotMissed: "triggers", TriggerLate: "triggers", TriggerError: "triggers",
	JoinUnmet: "joins",

	NoTasks: "tasks", Healthy: "roster", Paused: "pause",
	Unserved: "servers", NoEligible: "servers", ServerPaused: "servers", ServerDrained: "servers", ServerSilent: "servers",
	PlannerVersion: "planner", Unwitnessed: "witness", SameName: "names", RequireUnmet: "labels", PinUnmet: "pins",
	NeverServed: "queues", NoCalls: "queues", Crashes: "queues", Hung: "queues", NoOwner: "queues", Reserved: "queues",
	Orphan: "queues", LateHandover: "requests",
	Killer: "items", DeadItems: "items", RetryItems: "items",
	BacklogStuck: "backlog", BacklogGrowing: "backlog", BacklogOld: "backlog",
	LoadUnknown: "load", LoadIncomplete: "load", LoadTooLarge: "load", LoadBudget: "load",
	RepartitionWait: "repartition", PlanSkipped: "plan", RemovalWait: "removal",
	SettingsGone: "settings", NoUpstream: "settings", SettingsInvalid: "settings", SettingsDiffer: "settings", InvalidValue: "values",

	Database: "database", Clock: "clock", Schema: "schema", Privileges: "privileges", Statements: "statements", Cursor: "cursor",
}

// checkOf returns the check of a kind. A program may raise alerts of kinds of its own.
func checkOf(kind string) string { return cmp.Or(checks[kind], alerts) }
