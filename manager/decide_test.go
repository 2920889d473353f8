package manager

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/processor"
)

// What the rows say of queue 7, by a short name.
var (
	mine      = center.ViewQueue{ID: "7", Cur: "me", Epoch: 5}
	requested = center.ViewQueue{ID: "7", Cur: "me", Req: "you", Epoch: 5, Known: true}
	unknown   = center.ViewQueue{ID: "7", Cur: "me", Req: "you", Epoch: 5} // the requester does not know yet
	awaited   = center.ViewQueue{ID: "7", Cur: "you", Req: "me", Epoch: 5}
	removing  = center.ViewQueue{ID: "7", Cur: "me", Epoch: 5, Removing: true}
	returned  = center.ViewQueue{ID: "7", Cur: "me", Epoch: 9} // away and back since we had it
)

// What the processor does with it.
func working() processor.Holding {
	return processor.Holding{Queue: processor.Queue{ID: "7", Epoch: 5}, InHand: 1}
}

func draining() processor.Holding {
	h := working()
	h.Draining = true
	return h
}

func drained() processor.Holding {
	h := draining()
	h.InHand, h.Drained = 0, true
	return h
}

func TestDecide(t *testing.T) {
	sent := map[string]int64{"7": 5}
	cases := []struct {
		name    string
		row     *center.ViewQueue
		held    *processor.Holding
		spent   map[string]int64
		leaving bool // and nobody is waited for any more
		want    string
		halted  bool
		blocked bool
		giving  bool // leaving or paused
	}{
		{"a new queue is worked", &mine, nil, nil, false, "grant", false, false, false},
		{"a queue that is worked stays so", &mine, new(working()), nil, false, "", false, false, false},
		{"one that we wait for is not touched", &awaited, nil, nil, false, "", false, false, false},

		{"H1 requested: drain", &requested, new(working()), nil, false, "drain", false, false, false},
		{"H1 requested and in hand: wait", &requested, new(draining()), nil, false, "", false, false, false},
		{"H2 requested and drained: release", &requested, new(drained()), nil, false, "release", false, false, false},
		{"requested before we began: release", &requested, nil, nil, false, "release", false, false, false},
		{"H3 withdrawn while draining: resume", &mine, new(draining()), nil, false, "resume", false, false, false},
		{"H3 withdrawn when drained: resume", &mine, new(drained()), nil, false, "resume", false, false, false},
		{"H3 withdrawn after a release was sent: take it back", &mine, nil, sent, false, "retake", false, false, false},
		{"H3 a release that did not happen is sent again", &requested, nil, sent, false, "release", false, false, false},
		{"H3 taken back: work it under the new epoch", &returned, nil, sent, false, "grant", false, false, false},

		{"lost while worked: cancel", nil, new(working()), nil, false, "revoke", false, false, false},
		{"lost to one that asked: cancel", &awaited, new(draining()), nil, false, "revoke", false, false, false},
		{"lost and drained: forget", nil, new(drained()), nil, false, "forget", false, false, false},
		{"another epoch: what runs must end first", &returned, new(working()), nil, false, "revoke", false, false, false},
		{"another epoch, drained: forget, then begin anew", &returned, new(drained()), nil, false, "forget", false, false, false},

		{"H4 leaving: drain", &mine, new(working()), nil, true, "drain", false, false, false},
		{"H4 leaving, drained: Leave hands it over", &mine, new(drained()), nil, true, "", false, false, false},
		{"H4 leaving, asked for: release", &requested, new(drained()), nil, true, "release", false, false, false},
		{"H4 leaving: nothing is begun", &mine, nil, nil, true, "", false, false, false},
		{"H4 leaving: nothing is taken back", &mine, nil, sent, true, "", false, false, false},

		{name: "L5 shall move, but our transactions hold the row: drain", row: &mine, held: new(working()), blocked: true, want: "drain"},
		{name: "L5 drained for that: plan again", row: &mine, held: new(drained()), blocked: true, want: "replan"},
		{name: "L5 the request is there: release", row: &requested, held: new(drained()), blocked: true, want: "release"},
		{name: "L5 not begun before the plan is written", row: &mine, blocked: true},

		{name: "N2 to be removed: drain", row: &removing, held: new(working()), want: "drain"},
		{name: "N2 to be removed and in hand: wait", row: &removing, held: new(draining())},
		{name: "N2 to be removed, drained: give it up", row: &removing, held: new(drained()), want: "remove"},
		{name: "N2 to be removed before we began: give it up", row: &removing, want: "remove"},
		{name: "N2 what did not happen is tried again", row: &removing, spent: sent, want: "remove"},
		{name: "N2 kept after all, still draining: resume", row: &mine, held: new(draining()), want: "resume"},
		{name: "N2 kept after it was given up: take it back", row: &mine, spent: sent, want: "retake"},

		{name: "asked for by one that does not know: work on", row: &unknown, held: new(working())},
		{name: "asked for by one that does not know any more: resume", row: &unknown, held: new(draining()), want: "resume"},
		{name: "asked for by one that does not know, and drained for another: release", row: &unknown, held: new(drained()), want: "release"},
		{name: "H4 giving: work on until the requester knows", row: &unknown, held: new(working()), giving: true},
		{name: "H4 giving, and it knows: drain", row: &requested, held: new(working()), giving: true, want: "drain"},
		{name: "H4 giving, and nobody asks: drain", row: &mine, held: new(working()), giving: true, want: "drain"},
		{name: "H4 giving, too late to wait: drain", row: &unknown, held: new(working()), leaving: true, want: "drain"},
		{name: "giving: nothing is begun", row: &mine, giving: true},
		{name: "paused, drained, and nobody asks: keep it", row: &mine, held: new(drained()), giving: true},

		{name: "halted: drain", row: &mine, held: new(working()), halted: true, want: "drain"},
		{name: "halted, drained: keep it", row: &mine, held: new(drained()), halted: true},
		{name: "halted: nothing is begun", row: &mine, halted: true},
		{name: "halted, asked for: release", row: &requested, held: new(drained()), halted: true, want: "release"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := facts{uuid: "me", retired: c.spent, handingOver: c.leaving || c.giving, overdue: c.leaving, halted: c.halted}
			if c.blocked {
				f.blocked = map[string]bool{"7": true}
			}
			if c.row != nil {
				f.rows = append(f.rows, *c.row)
			}
			if c.held != nil {
				f.holdings = append(f.holdings, *c.held)
			}
			got := ""
			for _, a := range decide(f) {
				got += fmt.Sprint(a.verb)
				if a.id != "7" {
					t.Errorf("it is about queue %q", a.id)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
		})
	}
}

// In mode RUN a queue of ours that is not swept is "closed", and begun by a claim. It is taken back all the same.
func TestDecideInRuns(t *testing.T) {
	for _, c := range []struct {
		name string
		row  center.ViewQueue
		want string
	}{
		{"H3 withdrawn after a release was sent: take it back", mine, "retake"},
		{"H3 a release that did not happen is sent again", requested, "release"},
		{"taken back: wait for the claim", returned, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := facts{uuid: "me", rows: []center.ViewQueue{c.row}, retired: map[string]int64{"7": 5}, closed: map[string]bool{"7": true}, inRuns: true}
			got := ""
			for _, a := range decide(f) {
				got += fmt.Sprint(a.verb)
			}
			if got != c.want {
				t.Fatalf("%q, want %q", got, c.want)
			}
		})
	}
}
