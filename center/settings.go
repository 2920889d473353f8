package center

import (
	"reflect"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/runs"
)

// What can be even among the servers of a task type.
const (
	// BalanceQueues gives the servers equal numbers of queues, in proportion to their weights.
	BalanceQueues = roster.BalanceQueues
	// BalanceLoad gives the servers equal loads, in proportion to their weights: of the executors that their queues need
	// to keep up with what arrives. The dealer must be a Backlogger, beside whose counts the load is measured. Until
	// then, all queues count alike.
	BalanceLoad = roster.BalanceLoad
)

// The processor types. They are TBSchedule's.
const (
	// ProcessorSleep selects from a queue when nothing of it is in flight.
	ProcessorSleep = "SLEEP"
	// ProcessorNotSleep selects while other items of the queue are executed. The dealer must be Keyed.
	ProcessorNotSleep = "NOTSLEEP"
)

// What a dead item does to the items behind it that have its order key (X10).
const (
	// OnDeadHold makes them wait until an operator retries or drops the item.
	OnDeadHold = "HOLD"
	// OnDeadPass lets them go on.
	OnDeadPass = "PASS"
)

// The modes of a task type.
const (
	// ModeContinuous works on queues as long as a server owns them.
	ModeContinuous = "CONTINUOUS"
	// ModeRun works in runs: each sweeps all queues once, until they are drained.
	ModeRun = "RUN"
)

// Settings are the settings of a task type in code or in rota.yaml. The zero value of a field means its
// default. The first worker to start writes them to the task type's row; after that the row is in force.
//
// settingTable has a row for each field: its name in rota.yaml, its column, its default and its bounds.
type Settings struct {
	// Queues is the number of numbered queues, "0" to Queues-1: an item's queue is mod(id, Queues). Either this or
	// QueueNames must be given.
	Queues int
	// QueueNames are the names of the queues of a task type whose items are divided by name, for example by region. A
	// name has at most 150 bytes.
	QueueNames []string

	// Mode is CONTINUOUS or RUN: servers work on the queues all the time, or in runs. Defaults to CONTINUOUS.
	Mode string
	// ProcessorType is SLEEP or NOTSLEEP. Defaults to SLEEP.
	ProcessorType string
	// HeartbeatInterval is the pause between two heartbeats. Defaults to 2 s.
	HeartbeatInterval time.Duration
	// JudgeDeadInterval is how long a server may be silent before others take over its queues; at least five
	// heartbeats. Defaults to 10 s.
	JudgeDeadInterval time.Duration
	// ThreadNumber is how many calls of the dealer one server has in flight at once. Defaults to 5.
	ThreadNumber int
	// FetchNumber is how many items one select is asked for at most, besides failed items: fewer, if they take over a
	// second. The dealer may return more or fewer. Defaults to 500.
	FetchNumber int
	// ExecuteNumber is how many items one call of Execute gets at most. Defaults to 1.
	ExecuteNumber int
	// SleepTimeNoData is the pause after a select that returned no items. Defaults to 500 ms.
	SleepTimeNoData time.Duration
	// SleepTimeInterval is the pause between the end of one page of items and the next select. Defaults to none.
	SleepTimeInterval time.Duration
	// TaskParameter is handed to the dealer in each Selection.
	TaskParameter string
	// Database names the data databases that have the items of the queues, as Center.FenceIn has added them (F11): one
	// name for all queues; a name with {{queue}}, which stands for the id of the queue; or a list such as
	// "0-3=a,4-7=b,eu=c", by the numbers or the names of queues. It takes effect when a worker starts, and can change only
	// while no worker serves the task type. Defaults to none: the items are in the roster's database, or the dealer needs
	// no fence.
	Database string
	// MaxQueuesPerServer is the most queues that one server may own. Queues beyond all limits wait for more servers.
	// Defaults to no limit.
	MaxQueuesPerServer int
	// MaxServers is the most servers that own queues, and MaxServersPerHost the most of one host: the servers with the
	// largest weights, among equal ones those with most queues, and then the oldest. The others stand by, and take over
	// when one of them is gone. Default to no limit.
	MaxServers        int
	MaxServersPerHost int

	// Require says which labels a server must have to own queues: a list such as "disk=ssd|nvme,zone=b". The label host is
	// the name of its host. A server that has queues already keeps those that no server with the labels may take.
	// Defaults to none.
	Require string
	// Prefer says which labels a server should have, as Require does. The others own queues only if no server with a
	// weight has the labels, or if the servers that have them have no room. Defaults to none.
	Prefer string
	// Spread is the name of a label, such as zone, whose values share the queues evenly, in proportion to the weights of
	// their servers: the loss of one value takes at most its share. Defaults to none.
	Spread string
	// Balance says what is even among the servers: BalanceQueues or BalanceLoad. Defaults to BalanceQueues.
	Balance string
	// LoadMovesPerHour is how many queues an hour may move only to even the load, with BalanceLoad: with 60, 60 may move
	// at once, and then one a minute. Queues that move because a server joins, leaves or dies do not count. Defaults to
	// 60.
	LoadMovesPerHour int
	// Splittable says that numbered queues may be split and merged one by one (N3), because each select of the dealer
	// divides the items by Selection.Total, which may differ from queue to queue. Defaults to false: another number of
	// queues is a barrier for the whole task type (N1).
	Splittable bool
	// Hinted says that each program that adds items sends a hint for them (Center.Wake), so that a server that hears hints
	// polls an empty queue only once in 30 s. Defaults to false.
	Hinted bool
	// DrainTimeout is how long a leaving server waits for its calls in flight. Defaults to 30 s.
	DrainTimeout time.Duration
	// PermitRunStartTime and PermitRunEndTime are when a window of permitted work begins and ends: cron expressions
	// with seconds, in Quartz's syntax. Without an end, or with "-1", the window of a queue closes with its first
	// empty select. With the prefix "startrun:" a window also begins when a server starts. Default to no limit.
	PermitRunStartTime string
	PermitRunEndTime   string
	// TimeZone is the time zone of the cron expressions, such as Europe/Berlin. Defaults to UTC.
	TimeZone string
	// RatePerSecond is the most items that the whole task type executes in a second, over a long time. Each server
	// takes a share in proportion to its queues. Defaults to no limit.
	RatePerSecond float64
	// MaxInFlight is the most calls of Execute that the whole task type has in flight, over all servers of an environment,
	// for example for a service that limits its connections. Each server takes a share in proportion to its queues. If
	// there are more servers than calls, the others stand by. Defaults to no limit.
	MaxInFlight int
	// QueueRatePerSecond is the most items that each queue executes in a second, over a long time, and
	// QueueMaxInFlight the most calls of Execute that each queue has in flight. A burst is the items of a second.
	// Default to 0: no limit.
	QueueRatePerSecond float64
	QueueMaxInFlight   int
	// BatchTimeout ends the context of a call of the dealer that takes longer. Defaults to none.
	BatchTimeout time.Duration
	// StallAfter is after how long a call of the dealer raises an alert. Defaults to 5 min.
	StallAfter time.Duration
	// ItemMaxAttempts is after how many failures an item is dead, if the dealer is Keyed or Cursored. Defaults to 25.
	ItemMaxAttempts int
	// ItemRetry is the pause of an item after its first failure, or of a queue if the dealer is not Keyed. Defaults to
	// 1 s.
	ItemRetry time.Duration
	// ItemRetryFactor is the factor by which the pause grows with each further failure, from 1 to 100. Defaults to 2.
	ItemRetryFactor float64
	// ItemRetryJitter is the part of a pause by which it is longer or shorter at random, up to 1. Defaults to 0.5.
	ItemRetryJitter float64
	// ItemRetryMax is the longest such pause. A queue pauses for a minute at most. Defaults to 6 h: the 24 pauses
	// between 25 attempts then last 2.3 days on average, and at least 1.3 days.
	ItemRetryMax time.Duration
	// CountInOutage counts each failure as an attempt of its item although nothing else succeeds. Items are then dead as
	// soon as the retry policy says, poison and healthy ones. Defaults to false: in an outage no item dies, and a cursor
	// passes an item only after something else has succeeded.
	CountInOutage bool
	// OnDead is HOLD or PASS. With HOLD a dead item holds back the items behind it that have its order key, until an
	// operator retries or drops it; with PASS they go on. Defaults to HOLD. It concerns dealers that are Ordered.
	OnDead string
	// FailingAfter is the number of failed calls in a row after which a task type is FAILING, if no item has succeeded
	// for 30 s. Each 10 s that these calls took together count as one more call, if at least two have failed. Calls
	// that all executed one and the same item do not count. Defaults to 5.
	FailingAfter int
	// Cron is, in mode RUN, when runs begin: a cron expression with seconds, in Quartz's syntax and in TimeZone. It
	// defines the trigger that has the task type's name. Defaults to none: runs are submitted.
	Cron string
	// Every is, in mode RUN and without Cron, the interval at which runs begin, at least 1 s. Defaults to none.
	Every time.Duration
	// After lists, in mode RUN, the upstream task types. When the runs of all of them are there for one slot or one
	// key, this task type has a run, which waits for them. Where an After says Any, each run of its upstream makes one.
	// Defaults to none.
	After []runs.After
	// QueueMaxAttempts is, in mode RUN, how often the sweep of a queue may begin before its failure fails the run.
	// Defaults to 3.
	QueueMaxAttempts int
	// SweepMaxRepeats is, in mode RUN, how many selects of a sweep in a row may return only items that it has executed
	// already. Then the sweep fails. A dealer that works on an item in steps needs as many as an item has steps. Defaults
	// to 3.
	SweepMaxRepeats int
	// QueueRetry is the pause of a queue of a run after its first failure. It doubles with each further failure, up to
	// a day. Defaults to 30 s.
	QueueRetry time.Duration
	// MaxRecoveries is how often in a row servers may take a queue over from an expired server without progress. Beyond
	// it, the owner executes the items of the queue one by one, to find the item that ends its process. In mode RUN, the
	// last of these takeovers does so, and the next fails the queue if no item is found. Defaults to 5.
	MaxRecoveries int
	// RunTimeout is how long a run may take from its opening on. After that it fails, whatever the state of its queues.
	// Defaults to 24 h.
	RunTimeout time.Duration
	// RunStartTimeout is how long a run may wait until it is opened. After that it fails. It counts from the moment at
	// which the run is made or reopened. Defaults to no limit.
	RunStartTimeout time.Duration
	// Coalesce lets a run that a trigger has caused end SKIPPED if its upstreams have succeeded while another run of the
	// same trigger is READY: that run does the work of both. Defaults to false: each slot has its run.
	Coalesce bool
	// ExpireOwnSignInterval is how long an environment may be without servers before its queues are deleted; see
	// ops.Client.ExpireOwnSigns. Defaults to 24 h.
	ExpireOwnSignInterval time.Duration
}

// WithDefaults returns the settings with each zero field replaced by its default.
func (s Settings) WithDefaults() Settings {
	for _, row := range settingTable {
		value := reflect.ValueOf(row.Field(&s)).Elem()
		if row.Default != nil && value.IsZero() {
			value.Set(reflect.ValueOf(row.Default))
		}
	}
	return s
}
