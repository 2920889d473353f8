package roster

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// H7: which rows of a queue contradict what its process remembers.
func TestOwnershipIsContradicted(t *testing.T) {
	t.Parallel()
	known := Ownership{Owner: "A", Epoch: 7}
	for _, c := range []struct {
		row  Ownership
		want bool
	}{
		{Ownership{Owner: "A", Epoch: 7}, false},
		{Ownership{Owner: "B", Epoch: 8}, false},
		{Ownership{Owner: "", Epoch: 8}, false},
		{Ownership{Owner: "A", Epoch: 6}, true},
		{Ownership{Owner: "B", Epoch: 6}, true},
		{Ownership{Owner: "B", Epoch: 7}, true},
		{Ownership{Owner: "", Epoch: 7}, true},
		{Ownership{"A", 7, Items{"x", 1, 4}}, false}, // the memory does not know which items it had
	} {
		if got := known.contradictedBy(c.row); got != c.want {
			t.Errorf("%v contradicts %v: %t, want %t", c.row, known, got, c.want)
		}
	}
}

// H7 N3: a queue has the same items as long as it has the same epoch.
func TestItemsContradict(t *testing.T) {
	t.Parallel()
	known := Ownership{"A", 7, Items{"x", 1, 4}}
	for _, c := range []struct {
		row  Ownership
		want bool
	}{
		{known, false},
		{Ownership{"A", 8, Items{"x", 1, 8}}, false},
		{Ownership{"A", 7, Items{"x", 1, 8}}, true},
		{Ownership{"A", 7, Items{"y", 1, 4}}, true},
		{Ownership{Owner: "A", Epoch: 7}, false},
	} {
		if got := known.contradictedBy(c.row); got != c.want {
			t.Errorf("%v contradicts %v: %t, want %t", c.row, known, got, c.want)
		}
	}
}

// H7 F11: what a data database has fenced is the proof if it has a later epoch than the memory, or the same one for
// another server, which the process has not owned since.
func TestMemorySaw(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ known, saw, want Ownership }{
		{Ownership{Owner: "A", Epoch: 7}, Ownership{Owner: "B", Epoch: 8}, Ownership{Owner: "B", Epoch: 8}},
		{Ownership{Owner: "A", Epoch: 7}, Ownership{Owner: "B", Epoch: 7}, Ownership{Owner: "B", Epoch: 7}},
		{Ownership{Owner: "A", Epoch: 7}, Ownership{Owner: "B", Epoch: 6}, Ownership{Owner: "A", Epoch: 7}},
	} {
		m := NewMemory()
		m.Note(View{Queues: []ViewQueue{{ID: "0", Owner: c.known.Owner, Epoch: c.known.Epoch}}}, c.known.Owner)
		m.Saw("0", c.saw)
		if got := m.queues["0"]; got != c.want {
			t.Errorf("%v, and then %v: the memory is %v, want %v", c.known, c.saw, got, c.want)
		}
		rows := Rows{Queues: map[string]Ownership{"0": c.known}}
		if list := m.Contradictions(rows, "settle"); len(list) > 0 != (c.want != c.known) {
			t.Errorf("%v, and then %v: the proofs are %v", c.known, c.saw, list)
		}
	}
}

// H7: which remains of a session prove that its heartbeats are lost.
func TestBeatsAreLost(t *testing.T) {
	t.Parallel()
	last := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b := Beats{UUID: "host:1:00000001", Tokens: []string{"first", "second", "third"}, Last: last}
	for _, c := range []struct {
		token string
		found bool
		since time.Duration // from the last heartbeat until the history of servers is complete
		want  string
	}{
		{"third", true, 0, ""},
		{"sent, and not acknowledged", true, 0, ""},
		{"second", true, 0, "heartbeats of host:1:00000001 from"},
		{"first", true, time.Hour, "heartbeats of host:1:00000001 from"},
		{"", false, -time.Hour, "the registration of host:1:00000001 is lost"},
		{"", false, -time.Microsecond, "the registration of host:1:00000001 is lost"},
		{"", false, 0, ""},
		{"", false, time.Hour, ""},
	} {
		got := b.lostBy(Remains{Token: c.token, Heartbeat: last}, c.found, last.Add(c.since))
		if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%+v: %q, want %q", c, got, c.want)
		}
	}
}

// H7: a process remembers the last hundred heartbeats of a session, and the last ten sessions.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	m := NewMemory()
	for session := range 12 {
		b := Beats{UUID: fmt.Sprint(session)}
		for beat := range 120 {
			b.Add(fmt.Sprint(beat), time.Time{}, int64(beat))
		}
		if len(b.Tokens) != 100 || b.Tokens[0] != "20" || b.Tokens[99] != "119" || b.Floor != 119 {
			t.Fatalf("the session remembers %v, want the last hundred", b)
		}
		m.EndSession(b)
	}
	if len(m.ended) != 10 || m.ended[0].UUID != "2" {
		t.Fatalf("%d sessions are remembered, the oldest is %s, want the last ten", len(m.ended), m.ended[0].UUID)
	}
}

// H7: which views call for a comparison, and what the memory keeps of it.
func TestMemoryDoubts(t *testing.T) {
	t.Parallel()
	view := func(queues ...ViewQueue) View { return View{Queues: queues} }
	own := ViewQueue{ID: "0", Owner: "me", Epoch: 5}
	m := NewMemory()
	m.Note(view(own, ViewQueue{ID: "1", Owner: "me", Epoch: 5}, ViewQueue{ID: "2", Owner: "other", Epoch: 9}), "me")
	m.Released(Handover{QueueID: "1", Epoch: 5, Requester: "other"})
	for name, c := range map[string]struct {
		view View
		want bool
	}{
		"as it was":              {view(own), false},
		"a higher epoch":         {view(ViewQueue{ID: "0", Owner: "me", Epoch: 6}), false},
		"a lower epoch":          {view(ViewQueue{ID: "0", Owner: "me", Epoch: 4}), true},
		"another owner":          {view(ViewQueue{ID: "0", Owner: "other", Epoch: 5}), true},
		"a queue is gone":        {view(), true},
		"a released one is back": {view(own, ViewQueue{ID: "1", Owner: "me", Epoch: 5}), true},
		"one that was not mine":  {view(own, ViewQueue{ID: "2", Owner: "other", Epoch: 1}), false},
	} {
		if got := m.Doubts(c.view, "me"); got != c.want {
			t.Errorf("%s: doubts %t, want %t", name, got, c.want)
		}
	}

	known := m.Snapshot()
	rows := map[string]Ownership{"0": {Owner: "other", Epoch: 8}, "1": {Owner: "me", Epoch: 5}}
	m.Settle(known, HistoryCheck{Waiting: true, Rows: rows})
	if m.queues["0"] != (Ownership{Owner: "me", Epoch: 5}) || m.High() != 6 {
		t.Fatalf("the memory is %v, want it unchanged while an operator is waited for", m.queues)
	}
	m.Settle(known, HistoryCheck{Rows: rows})
	if _, there := m.queues["1"]; there || m.queues["0"] != (Ownership{Owner: "other", Epoch: 8}) || m.Doubts(view(), "me") {
		t.Fatalf("the memory is %v, want the row of queue 0, and nothing of queue 1", m.queues)
	}
}

// H8: two branches of one history that raise their epochs must not use the same ones.
func TestFloorsAreRandom(t *testing.T) {
	t.Parallel()
	floors := map[int64]bool{}
	for range 20 {
		floor := floorAbove(7)
		if floor < 1_000_007 || floor >= 2_000_007 {
			t.Fatalf("the floor above 7 is %d", floor)
		}
		floors[floor] = true
	}
	if len(floors) < 2 {
		t.Fatalf("20 floors are all %v", floors)
	}
}
