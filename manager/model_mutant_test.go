package manager

import (
	"testing"

	"github.com/dutyrota/rota/internal/racetest"
)

// mutants lack a rule each, and the walks must notice. Some rules have no mutant here, because the model has shown that
// other rules cover them. S2, queues read before the version, or not stamped with it: a heartbeat's reply is compared by
// counts and sums too, and a release for an earlier requester is rejected. S6, a fresh read before work resumes: while the
// row is there no other server has taken a queue, and the retired epochs are known. S6, a heartbeat that inserts the row
// again: heartbeats from the future count as dead, and the epochs have risen meanwhile. H7, a comparison because of a
// view: a server reads its rows after a heartbeat, which is lost too. H8, no release below the floor: a plan raises the
// row before, unless a transaction holds it just then.
var mutants = []struct {
	name  string
	lacks without
	late  bool // only walks that begin with a late release notice it
}{
	{"release without waiting for the drain (H1)", without{drainWait: true}, false},
	{"no lease (S5)", without{lease: true}, false},
	{"a lease without a margin (S5)", without{margin: true}, false},
	{"no watch before an expiry (S7)", without{watch: true}, false},
	{"an expiry by a server that was away itself (S7)", without{ownBeat: true}, false},
	{"no watch, and an expiry by a server that was away itself (S7)", without{watch: true, ownBeat: true}, false},
	{"the local clock decides which server is dead (L2)", without{dbClock: true}, false},
	{"take queues from live servers (P5)", without{consent: true}, false},
	{"the old uuid is registered again (S6)", without{newUUID: true}, false},
	{"no fence (F1)", without{fence: true}, false},
	{"a fence of the epoch only (F1)", without{fenceOwner: true}, false},
	{"a fence that locks nothing (F1)", without{fenceLock: true}, false},
	{"release without the requester's name (H2)", without{requester: true}, false},
	{"release to a server that is not eligible (H2)", without{eligibleCheck: true}, false},
	{"release without the epoch (H2)", without{releaseEpoch: true}, true},
	{"a retired epoch is resumed after a lost reply (H3)", without{retired: true}, true},
	{"retake under the same epoch (H3)", without{retakeEpoch: true}, false},
	{"a queue is unassigned under the same epoch (H6)", without{unassignEpoch: true}, false},
	{"a queue is granted under the same epoch (P5)", without{grantEpoch: true}, false},
	{"a queue is removed under any epoch (N2 H3)", without{removeEpoch: true}, true},
	{"a queue that comes back begins with its old epochs (H6)", without{epochHigh: true}, false},
	{"work before the first reply of a session (S11)", without{firstReply: true}, false},
	{"a reply to a heartbeat from before the lease expired counts (S11)", without{sentAfter: true}, false},
	{"no heartbeat at the join, because another server of the process has a longer interval (S1)", without{joinHeartbeat: true}, false},
	{"a server gets the queue of its own hung call (P9)", without{hungQueues: true}, false},
	{"a longer lease before the row (S5)", without{rowFirst: true}, false},
	{"a shorter row before the lease (S5)", without{leaseFirst: true}, false},
	{"a heartbeat that is sent again announces another interval (S5)", without{sameBeat: true}, false},
	{"others get reserved queues (P13)", without{reserved: true}, false},
	{"a program plans although an older one lives (P11)", without{rules: true}, false},
	{"a stopped process counts as ended (S15)", without{lock: true}, false},
	{"a draining queue is worked on (H1)", without{drainStop: true}, false},
	{"no plan requests a queue to even the servers (P8)", without{balance: true}, false},
	{"any server gets a pinned queue (P14)", without{pins: true}, false},
	{"a server gets more queues than its limit (P7)", without{limit: true}, false},
	{"the next session begins with an empty memory (H7)", without{memory: true}, false},
	{"after a loss the epochs stay (H8)", without{raise: true}, false},
	{"replies are not compared with the view (S2)", without{compare: true}, false},
	{"the total is read in another statement than the epoch (N3)", without{totals: true}, false},
	{"the old epoch stays valid after a split (N3)", without{splitEpoch: true}, false},
}

// begins are the seeds of walks that noticed a mutant that few walks notice. The search begins there, because it would
// take many seconds otherwise. It goes on from there if a change of the model has made these walks others.
var begins = map[string]uint64{
	"no heartbeat at the join, because another server of the process has a longer interval (S1)": 3890,
	"a reply to a heartbeat from before the lease expired counts (S11)":                          1622,
	"the next session begins with an empty memory (H7)":                                          942,
	"an expiry by a server that was away itself (S7)":                                            757,
	"no watch, and an expiry by a server that was away itself (S7)":                              703,
	"no watch before an expiry (S7)":                                                             703,
	"work before the first reply of a session (S11)":                                             399,
	"the total is read in another statement than the epoch (N3)":                                 647,
	"a heartbeat that is sent again announces another interval (S5)":                             226,
}

// sound reports whether the walk finds nothing without the mutation.
func sound(seed uint64) bool {
	k, r := newWalk(seed, without{})
	k.run(r)
	return k.wrong == ""
}

func TestModelFindsEachMutant(t *testing.T) {
	racetest.Skip(t)
	if testing.Short() {
		t.Skip("takes ten seconds of a core")
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			each := uint64(1)
			if m.late {
				each = strandEach
			}
			for n := each; n <= 6000; n += each {
				seed := n
				if begin := begins[m.name]; begin > 0 {
					seed += begin - 1
				}
				k, r := newWalk(seed, m.lacks)
				if k.run(r); k.wrong != "" && sound(seed) {
					t.Logf("seed %d: %s", seed, k.wrong)
					return
				}
			}
			t.Error("no walk noticed the mutant")
		})
	}
}
