package manager

import (
	"slices"
	"strconv"
	"time"

	"github.com/dutyrota/rota/internal/roster"
)

// The model is several servers, their processors, a database and the network between them, in discrete time, small
// enough to be explored. The real code makes all decisions: plan.Plan, decide, watch, margin and the lease's
// arithmetic, ownView.matches, heartbeatTimeout. The model only copies what these are embedded in: the transactions of
// internal/roster as atomic steps (model_database_test.go), the order in which a server takes its steps
// (model_server_test.go), and what a processor does with queues (model_processor_test.go). The steps are in
// model_step_test.go, and what must hold is in model_check_test.go.

const (
	modelHeartbeat = 2 * time.Second
	modelJudgeDead = 10 * time.Second
	modelLonger    = 40 * time.Second // what an operator may change it to
	modelAudit     = 30 * time.Second // the AuditInterval of internal/roster
	modelSkipRetry = time.Second      // the skipRetryInterval of internal/roster
)

// scene is what all states of an exploration have in common.
type scene struct {
	tick    time.Duration
	faults  int           // how many may happen
	menu    []stepKind    // the kinds of faults that may happen; nil: all
	witness bool          // the ends of processes may be proved (S15)
	returns time.Duration // for which servers that leave reserve their queues (P13); 0: not at all
	retimed bool          // judge_dead_interval may be changed (S5)
	rolled  bool          // processes may start with another version of the planner's rules (P11)
	placed  bool          // queues may be pinned, shares rounded up first, and loads be even (P14, P15, P16)
	limit   int           // max_queues_per_server; 0: none
	loses   bool          // the database may lose history (H7, H8)
	resized bool          // queues may be split and merged (N3)
	without without
}

// without names the rule that a mutant lacks.
type without struct {
	drainWait, lease, margin, watch, ownBeat, dbClock, consent, newUUID                                 bool
	fence, fenceOwner, fenceLock, requester, releaseEpoch, retired, retakeEpoch                         bool
	unassignEpoch, grantEpoch, eligibleCheck, compare, removeEpoch, epochHigh                           bool
	firstReply, joinHeartbeat, edits, hungQueues, lock, reserved, rowFirst, leaseFirst, sameBeat, rules bool
	drainStop, balance, pins, limit, sentAfter                                                          bool
	memory, raise                                                                                       bool
	splitEpoch, totals                                                                                  bool
}

// world is a state of the model: all servers, the database and the calls under way. It has about 100 methods, one for
// each step, transaction and check of the model, in files by subject. All of them read and change this one state, which
// an exploration copies and compares.
type world struct {
	*scene
	now    time.Duration // the true time
	db     database
	procs  []process
	late   []call // given up by their senders, and still under way
	outage bool
	faults int
	edited bool // by hand, so that only the audit repairs it

	backup    *database // to which the database may fall back; nil: none; never changed
	restored  bool      // the database has fallen back
	unnoticed bool      // and no plan has raised the epochs since
	// steady is the time before which the database's clock is not set again. Walks of tens of millions of steps find an
	// assign that is applied minutes late, after the clock was set back twice to about the time of its reply, and that
	// expires healthy servers. The real assign is given up after judge_dead_interval.
	steady time.Duration
	wrong  string // the first violation
}

// startTime is an arbitrary moment at which all clocks agree.
var startTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// newWorld returns a world with servers that have not joined yet and queues without owners.
func newWorld(s *scene, servers, queues int) *world {
	w := &world{scene: s, db: database{audited: startTime, judgeDead: modelJudgeDead}}
	for i := range servers {
		w.procs = append(w.procs, process{index: i, name: string(rune('a' + i)), pace: 100})
	}
	for i := range queues {
		w.db.rows = append(w.db.rows, queueRow{id: strconv.Itoa(i), index: i, total: queues})
	}
	return w
}

// clone copies everything that a step may change.
func (w *world) clone() *world {
	c := *w
	c.db.servers, c.db.rows = slices.Clone(w.db.servers), slices.Clone(w.db.rows)
	c.late, c.procs = slices.Clone(w.late), slices.Clone(w.procs)
	for i := range c.procs {
		c.procs[i].detach()
	}
	return &c
}

// process is a server over all its sessions, with its heartbeater and its processor. It has a field for each thing that
// two states of the model may differ in, so that key can write all of them down.
type process struct {
	index    int
	name     string
	token    int // of the last heartbeat that was confirmed
	sessions int
	uuid     string

	endedSessions int // the sessions of former processes of this name

	state                  processState
	paused, stop, cutShort bool
	upgraded               bool // its program knows the newer rules of the planner
	noHeartbeat, noRoster  bool // the connections of the heartbeater and of the server's own goroutine are cut
	registered, gone       bool

	skew        time.Duration // of the wall clock
	pace        time.Duration // of its clocks, in percent
	unannounced bool          // it leaves, and the roster does not know it yet
	handOverBy  time.Time     // until when it waits for requesters, after it has handed everything over; zero before
	start       time.Time     // of the last successful heartbeat
	tried       time.Time     // when the last heartbeat was sent
	judgeDead   time.Duration // that the lease follows
	wanted      time.Duration // that the settings say, as the server knows them
	next        announcement
	watch       watch
	joined      time.Time              // by the database's clock
	reply       *roster.HeartbeatReply // of the last heartbeat, not followed yet

	unconfirmed bool          // no reply has been read since the server joined, or since its lease last expired
	lapsedAt    time.Duration // when its lease last expired
	replyStale  bool          // the reply that waits is to a heartbeat that was sent before the lease expired
	halted      bool          // the last reply said that the task type is paused

	view     roster.View
	mustRead bool
	retired  map[string]int64 // replaced, never changed
	blocked  map[string]bool  // replaced, never changed
	retried  map[string]bool  // replaced, never changed
	listed   map[string]int64 // hungCalls.listed; replaced, never changed
	watched  time.Duration    // came with the reply
	steps    []action         // that take a call; replaced, never changed
	agenda   agenda           // its times tell only whether a duty is due
	asked    *call            // the rebalance that is due; replaced, never changed

	memory           *roster.Memory // replaced, never changed; nil if the database loses nothing
	membership, plan int64          // the versions in the last reply
	heardAt          time.Time      // when the newest acknowledged heartbeat of the session arrived
	floor            int64          // the highest epoch_floor in its replies
	lost             string         // what it knows and the database has lost; ends with the process

	queues    []heldQueue // that the processor has
	calls     []execution
	drained   bool  // the processor's signal
	heartbeat *call // that the heartbeater waits for
	request   *call // that the server's own goroutine waits for
	job       *call // that runs beside it
}

type processState int

const (
	away    processState = iota // not started, crashed, or at its end
	joining                     // between two attempts to register, or in one
	serving
	fenced     // the lease has expired
	forgetting // the row is gone, and something is still in flight
	leaving
)

func (s processState) String() string {
	return [...]string{"away", "joining", "serving", "fenced", "forgetting", "leaving"}[s]
}

func (p *process) detach() {
	p.queues, p.calls = slices.Clone(p.queues), slices.Clone(p.calls)
	for _, c := range []**call{&p.heartbeat, &p.request, &p.job} {
		if *c != nil {
			copied := **c
			*c = &copied
		}
	}
}

// local returns what the process's own clock says.
func (w *world) local(p *process) time.Time {
	return startTime.Add(p.skew + w.now*p.pace/100)
}

// over reports whether the lease of the process has expired (S5), as the mutant computes it.
func (w *world) over(p *process) bool {
	switch {
	case w.without.lease:
		return false
	case w.without.margin:
		return elapsed(p.start, w.local(p)) >= p.judgeDead
	case w.without.rowFirst:
		return elapsed(p.start, w.local(p)) >= modelIntervals(max(p.judgeDead, p.wanted)).lease()
	}
	return !w.trusted(p)
}

// trusted reports whether the lease is valid by the rules, whatever the mutant does.
func (w *world) trusted(p *process) bool {
	return elapsed(p.start, w.local(p)) < modelIntervals(p.judgeDead).lease()
}

// longest is the longest judge_dead_interval of the scene.
func (s *scene) longest() time.Duration {
	if s.retimed {
		return modelLonger
	}
	return modelJudgeDead
}

func modelIntervals(judgeDead time.Duration) intervals { return intervals{modelHeartbeat, judgeDead} }

func (p *process) running() bool { return p.state != away && !p.paused }

// idle reports whether the server's own goroutine waits for something to happen.
func (p *process) idle() bool { return p.running() && p.request == nil }

// ownView returns what the real server would know of its queues.
func (p *process) ownView() *ownView {
	return &ownView{base: &base{uuid: p.uuid}, View: p.view}
}
