package manager

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
)

// The model: several servers, their processors, a database and the network between them, in discrete
// time, small enough to be explored. What is decided is decided by the real code: plan.Plan, decide,
// watch, margin and the lease's arithmetic, life.matches, statementTimeout. The model only copies
// what those are embedded in: the transactions of package center as atomic steps (model_database_test.go),
// the order in which a server takes its steps (model_server_test.go), and what a processor does with queues
// (model_processor_test.go). The steps are in model_step_test.go, what must hold in model_check_test.go.

const (
	modelHeartbeat = 2 * time.Second
	modelJudgeDead = 10 * time.Second
	modelAudit     = 30 * time.Second // center's auditInterval
)

// scene is what all states of an exploration have in common.
type scene struct {
	tick    time.Duration
	faults  int        // how many may happen
	menu    []stepKind // of which kinds; nil: of all
	without without
}

// without names the rule that a mutant lacks.
type without struct {
	drainWait, lease, margin, watch, ownBeat, dbClock, consent, newUUID       bool
	fence, fenceOwner, fenceLock, requester, releaseEpoch, spent, retakeEpoch bool
	unassignEpoch, grantEpoch, freshView, resumeView, eligibleCheck, compare  bool
	removeEpoch, epochHigh                                                    bool
}

// world is a state of the model.
type world struct {
	*scene
	now    time.Duration // the true time
	db     database
	procs  []process
	late   []call // given up by their senders, and still under way
	outage bool
	faults int
	edited bool // by hand, so that only the audit repairs it
	// steady: until then the database's clock is not set again. Even so, walks of tens of millions of steps
	// find an assign that is applied minutes late, after the clock was set back twice to about the time of
	// its pulse, and buries the healthy. The real one is given up after judge_dead_interval.
	steady time.Duration
	wrong  string // the first violation
}

// withoutRaceDetector skips what the race detector makes ten times slower, where it has nothing to find: the model
// is one goroutine. make test runs it once more without.
func withoutRaceDetector(t *testing.T) {
	t.Helper()
	if raced {
		t.Skip("the model is run without the race detector")
	}
}

// dawn is an arbitrary moment at which all clocks agree.
var dawn = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// newWorld has servers that have not joined yet, and queues without owners.
func newWorld(s *scene, servers, queues int) *world {
	w := &world{scene: s, db: database{audited: dawn}}
	for i := range servers {
		w.procs = append(w.procs, process{index: i, name: string(rune('a' + i)), pace: 100})
	}
	for i := range queues {
		w.db.rows = append(w.db.rows, row{id: strconv.Itoa(i)})
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

// process is a server over all its lives, with its heart and its processor.
type process struct {
	index int
	name  string
	token int // of the last beat that was confirmed
	lives int
	uuid  string

	state                   lifeState
	paused, stop, cutShort  bool
	noHeart, noStore        bool // its connections are cut
	beating, gone, entering bool

	skew   time.Duration // of the wall clock
	pace   time.Duration // of its clocks, in percent
	giveBy time.Time     // leaving or paused: how long requesters are waited for
	start  time.Time     // of the last successful heartbeat
	tried  time.Time     // when the heart beat last
	watch  watch
	joined time.Time     // by the database's clock
	pulse  *center.Pulse // the mailbox, of capacity 1

	view     center.View
	stale    bool
	spent    map[string]int64
	auditDue bool
	changed  bool
	replan   bool
	lapsed   bool // the lease was over since the view was read
	blocked  map[string]bool
	watched  time.Duration // what came with the pulse
	todo     []action
	handover []center.Handover

	held    []held
	calls   []execution
	drained bool  // the processor's signal
	heart   *call // what the heart waits for,
	store   *call // and what the server's own goroutine waits for
}

type lifeState int

const (
	away    lifeState = iota // not started, crashed, or at its end
	joining                  // the goroutine is between two attempts to register, or in one
	serving
	fenced     // the lease is over
	forgetting // the row is gone; waiting for what is in hand
	leaving
)

func (s lifeState) String() string {
	return [...]string{"away", "joining", "serving", "fenced", "forgetting", "leaving"}[s]
}

func (p *process) detach() {
	p.held, p.calls = slices.Clone(p.held), slices.Clone(p.calls)
	p.handover = slices.Clone(p.handover)
	if len(p.spent) > 0 {
		spent := make(map[string]int64, len(p.spent))
		maps.Copy(spent, p.spent)
		p.spent = spent
	}
	for _, c := range []**call{&p.heart, &p.store} {
		if *c != nil {
			copied := **c
			*c = &copied
		}
	}
}

// local is what the process's own clock says.
func (w *world) local(p *process) time.Time {
	return dawn.Add(p.skew + w.now*p.pace/100)
}

// over reports that the process does not trust itself any more (S5).
func (w *world) over(p *process) bool {
	if w.without.lease {
		return false
	}
	length := modelJudgeDead - margin(modelJudgeDead, modelHeartbeat)
	if w.without.margin {
		length = modelJudgeDead
	}
	return length-elapsed(p.start, w.local(p)) <= 0
}

// trusted is the lease by the rules, whatever the mutant does.
func (w *world) trusted(p *process) bool {
	return elapsed(p.start, w.local(p)) < modelJudgeDead-margin(modelJudgeDead, modelHeartbeat)
}

func (p *process) running() bool { return p.state != away && !p.paused }

// idle reports that the server's own goroutine waits for something to happen.
func (p *process) idle() bool { return p.running() && p.store == nil }
