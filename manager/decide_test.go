package manager

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/processor"
)

// The row of queue 7, in the states that a server may read it in.
var (
	owned     = roster.ViewQueue{ID: "7", Owner: "me", Epoch: 5}
	requested = roster.ViewQueue{ID: "7", Owner: "me", Requester: "you", Epoch: 5, RequesterInformed: true}
	unknown   = roster.ViewQueue{ID: "7", Owner: "me", Requester: "you", Epoch: 5} // the requester does not know yet
	awaited   = roster.ViewQueue{ID: "7", Owner: "you", Requester: "me", Epoch: 5}
	removing  = roster.ViewQueue{ID: "7", Owner: "me", Epoch: 5, Changing: true}
	returned  = roster.ViewQueue{ID: "7", Owner: "me", Epoch: 9} // it was lost and came back
)

// What the processor does with queue 7.
func working() engine.QueueState {
	return engine.QueueState{Queue: processor.Queue{ID: "7", Epoch: 5}, InFlight: 1}
}

func draining() engine.QueueState {
	h := working()
	h.Draining = true
	return h
}

func drained() engine.QueueState {
	h := draining()
	h.InFlight, h.Drained = 0, true
	return h
}

// releaseSent are the retired epochs after a release of queue 7 under epoch 5.
var releaseSent = map[string]int64{"7": 5}

// decisions are what decide does with queue 7. The names cite the rules.
var decisions = []struct {
	name      string
	row       *roster.ViewQueue
	holding   *engine.QueueState
	want      string
	retired   map[string]int64
	blocked   bool
	halted    bool
	handsOver handOverStage
}{
	{name: "new queue: grant", row: &owned, want: "grant"},
	{name: "worked: keep", row: &owned, holding: new(working())},
	{name: "awaited: nothing", row: &awaited},

	{name: "H1 requested: drain", row: &requested, holding: new(working()), want: "drain"},
	{name: "H1 requested and in flight: wait", row: &requested, holding: new(draining())},
	{name: "H2 requested and drained: release", row: &requested, holding: new(drained()), want: "release"},
	{name: "requested before it was granted: release", row: &requested, want: "release"},
	{name: "H3 withdrawn while draining: resume", row: &owned, holding: new(draining()), want: "resume"},
	{name: "H3 withdrawn when drained: resume", row: &owned, holding: new(drained()), want: "resume"},
	{name: "H3 withdrawn after a release was sent: retake", row: &owned, retired: releaseSent, want: "retake"},
	{name: "H3 a release that did not happen: release again", row: &requested, retired: releaseSent, want: "release"},
	{name: "H3 retaken: grant under the new epoch", row: &returned, retired: releaseSent, want: "grant"},

	{name: "lost while worked: revoke", holding: new(working()), want: "revoke"},
	{name: "lost to its requester: revoke", row: &awaited, holding: new(draining()), want: "revoke"},
	{name: "lost and drained: forget", holding: new(drained()), want: "forget"},
	{name: "another epoch: revoke what is in flight", row: &returned, holding: new(working()), want: "revoke"},
	{name: "another epoch, drained: forget before the grant", row: &returned, holding: new(drained()), want: "forget"},

	{name: "L5 blocked: drain", row: &owned, holding: new(working()), blocked: true, want: "drain"},
	{name: "L5 blocked and drained: replan", row: &owned, holding: new(drained()), blocked: true, want: "replan"},
	{name: "L5 the request is written: release", row: &requested, holding: new(drained()), blocked: true, want: "release"},
	{name: "L5 blocked and not granted: wait", row: &owned, blocked: true},

	{name: "N2 removing: drain", row: &removing, holding: new(working()), want: "drain"},
	{name: "N2 removing and in flight: wait", row: &removing, holding: new(draining())},
	{name: "N2 removing and drained: give up", row: &removing, holding: new(drained()), want: "give up"},
	{name: "N2 removing before it was granted: give up", row: &removing, want: "give up"},
	{name: "N2 a removal that did not happen: give up again", row: &removing, retired: releaseSent, want: "give up"},
	{name: "N2 kept after all, still draining: resume", row: &owned, holding: new(draining()), want: "resume"},
	{name: "N2 kept after it was given up: retake", row: &owned, retired: releaseSent, want: "retake"},

	{name: "requester does not know: keep", row: &unknown, holding: new(working())},
	{name: "requester does not know any more: resume", row: &unknown, holding: new(draining()), want: "resume"},
	{name: "requester does not know, but drained for another: release", row: &unknown, holding: new(drained()), want: "release"},

	{name: "H4 handing over, requester does not know: keep", row: &unknown, holding: new(working()), handsOver: awaitsNews},
	{name: "H4 handing over, requester knows: drain", row: &requested, holding: new(working()), handsOver: awaitsNews, want: "drain"},
	{name: "H4 handing over, no requester: drain", row: &owned, holding: new(working()), handsOver: awaitsNews, want: "drain"},
	{name: "H4 handing over, not announced yet: keep", row: &owned, holding: new(working()), handsOver: notAnnounced},
	{name: "H4 handing over, not granted: nothing", row: &owned, handsOver: awaitsNews},
	{name: "H4 paused, drained and no requester: keep", row: &owned, holding: new(drained()), handsOver: awaitsNews},
	{name: "H4 overdue, requester does not know: drain", row: &unknown, holding: new(working()), handsOver: waitsNoLonger, want: "drain"},
	{name: "H4 overdue: drain", row: &owned, holding: new(working()), handsOver: waitsNoLonger, want: "drain"},
	{name: "H4 overdue, drained: Leave hands it over", row: &owned, holding: new(drained()), handsOver: waitsNoLonger},
	{name: "H4 overdue, requested: release", row: &requested, holding: new(drained()), handsOver: waitsNoLonger, want: "release"},
	{name: "H4 overdue, not granted: nothing", row: &owned, handsOver: waitsNoLonger},
	{name: "H4 overdue after a release was sent: no retake", row: &owned, retired: releaseSent, handsOver: waitsNoLonger},

	{name: "halted: drain", row: &owned, holding: new(working()), halted: true, want: "drain"},
	{name: "halted, drained: keep", row: &owned, holding: new(drained()), halted: true},
	{name: "halted, not granted: nothing", row: &owned, halted: true},
	{name: "halted, requested: release", row: &requested, holding: new(drained()), halted: true, want: "release"},
}

func TestDecide(t *testing.T) {
	for _, c := range decisions {
		t.Run(c.name, func(t *testing.T) {
			f := facts{uuid: "me", retired: c.retired, handsOver: c.handsOver, halted: c.halted}
			if c.blocked {
				f.blocked = map[string]bool{"7": true}
			}
			if c.row != nil {
				f.rows = append(f.rows, *c.row)
			}
			if c.holding != nil {
				f.holdings = append(f.holdings, *c.holding)
			}
			got := ""
			for _, a := range decide(f) {
				got += fmt.Sprint(a.verb)
				if a.id != "7" {
					t.Errorf("the action is about queue %q, want 7", a.id)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
		})
	}
}

// In mode RUN an own queue that is not swept is closed, and a claim grants it. It is retaken even so.
func TestDecideInRuns(t *testing.T) {
	for _, c := range []struct {
		name string
		row  roster.ViewQueue
		want string
	}{
		{"H3 withdrawn after a release was sent: retake", owned, "retake"},
		{"H3 a release that did not happen: release again", requested, "release"},
		{"retaken: wait for the claim", returned, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := facts{uuid: "me", rows: []roster.ViewQueue{c.row}, retired: releaseSent, closed: map[string]bool{"7": true}, inRuns: true}
			got := ""
			for _, a := range decide(f) {
				got += fmt.Sprint(a.verb)
			}
			if got != c.want {
				t.Fatalf("decide returns %q, want %q", got, c.want)
			}
		})
	}
}
