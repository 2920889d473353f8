package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/internal/plan"
)

var epochZero = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func servers(uuids ...string) []plan.Server {
	list := make([]plan.Server, len(uuids))
	for i, u := range uuids {
		list[i] = plan.Server{UUID: u, RegisterTime: epochZero.Add(time.Duration(i) * time.Second), Eligible: true}
	}
	return list
}

// apply writes the changes as center does. It fails where the compare-and-set (L4) would miss.
func apply(t interface{ Fatalf(string, ...any) }, queues []plan.Queue, changes []plan.Change) []plan.Queue {
	out := slices.Clone(queues)
	for _, c := range changes {
		i := slices.IndexFunc(out, func(q plan.Queue) bool { return q.ID == c.QueueID })
		if i < 0 || out[i].Owner != c.OldOwner || out[i].Epoch != c.OldEpoch {
			t.Fatalf("change %+v does not fit the row", c)
		}
		out[i].Owner, out[i].Requester = c.Owner, c.Requester
		if c.ChangesOwner() {
			out[i].Epoch++
		}
	}
	return out
}

// release hands over the requested queues of owner, or of all owners if it is empty.
func release(queues []plan.Queue, owner string) []plan.Queue {
	out := slices.Clone(queues)
	for i, q := range out {
		if q.Requester != "" && (owner == "" || q.Owner == owner) {
			out[i].Owner, out[i].Requester = q.Requester, ""
			out[i].Epoch++
		}
	}
	return out
}

func show(queues []plan.Queue) []string {
	rows := make([]string, len(queues))
	for i, q := range queues {
		rows[i] = q.Owner
		if q.Requester != "" {
			rows[i] += ", req " + q.Requester
		}
	}
	return rows
}

func numbered(first, n int) []plan.Queue {
	queues := make([]plan.Queue, n)
	for i := range queues {
		queues[i].ID = fmt.Sprint(first + i)
	}
	return queues
}

// The table of rule P8. It comes from the documentation of TBSchedule.
func TestPlanTableOfP8(t *testing.T) {
	queues := numbered(1, 5)
	steps := []struct {
		name string
		live []string
		want []string
	}{
		{"A alone", []string{"A"}, []string{"A", "A", "A", "A", "A"}},
		{"B joins", []string{"A", "B"}, []string{"A", "A, req B", "A", "A, req B", "A"}},
		{"C joins", []string{"A", "B", "C"}, []string{"A", "A, req B", "A, req C", "A", "A, req B"}},
		{"D joins", []string{"A", "B", "C", "D"}, []string{"A", "A, req B", "A, req C", "A, req D", "A"}},
	}
	for _, step := range steps {
		queues = apply(t, queues, plan.Plan(queues, servers(step.live...), 0))
		if diff := cmp.Diff(step.want, show(queues)); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	if diff := cmp.Diff([]string{"A", "B", "C", "D", "A"}, show(release(queues, "A"))); diff != "" {
		t.Fatalf("A releases (-want +got):\n%s", diff)
	}
}

func TestPlanCases(t *testing.T) {
	draining := func(s []plan.Server, uuid string) []plan.Server {
		for i := range s {
			if s[i].UUID == uuid {
				s[i].Eligible = false
			}
		}
		return s
	}
	cases := []struct {
		name    string
		queues  []plan.Queue
		servers []plan.Server
		limit   int
		want    []string
	}{
		{
			"P1 ids sort naturally",
			[]plan.Queue{{ID: "10"}, {ID: "2"}, {ID: "1"}},
			servers("A", "B", "C"), 0,
			[]string{"C", "B", "A"}, // rows 10, 2, 1
		},
		{
			"P2 the larger quota goes to the server with most queues",
			[]plan.Queue{{ID: "0", Owner: "B"}, {ID: "1", Owner: "B"}, {ID: "2"}},
			servers("A", "B"), 0,
			[]string{"B", "B", "A"},
		},
		{
			"P2 among equals, the larger quota goes to the older server",
			numbered(0, 3), servers("A", "B"), 0,
			[]string{"A", "B", "A"},
		},
		{
			"P3 a server keeps the queues of its own position first",
			[]plan.Queue{{ID: "0", Owner: "B"}, {ID: "1", Owner: "B"}, {ID: "2", Owner: "B"}, {ID: "3", Owner: "B"}},
			servers("A", "B"), 0,
			[]string{"B, req A", "B", "B, req A", "B"},
		},
		{
			"P4 a queue goes to its own position, or to the next with room",
			[]plan.Queue{{ID: "0", Owner: "C"}, {ID: "1"}, {ID: "2"}, {ID: "3"}},
			servers("A", "B", "C", "D"), 0,
			[]string{"C", "B", "D", "A"},
		},
		{
			"P6 requests are computed over the result of the first pass",
			[]plan.Queue{{ID: "0", Owner: "A"}, {ID: "1", Owner: "A"}, {ID: "2", Owner: "A"}, {ID: "3"}},
			servers("A", "B"), 0,
			[]string{"A", "A, req B", "A", "B"},
		},
		{
			"P5 a queue of a dead owner is assigned at once",
			[]plan.Queue{{ID: "0", Owner: "dead"}, {ID: "1", Owner: "A"}, {ID: "2", Owner: "A"}},
			servers("A", "B"), 0,
			[]string{"B", "A", "A"},
		},
		{
			"P5 an unneeded request is withdrawn",
			[]plan.Queue{{ID: "0", Owner: "A", Requester: "gone"}, {ID: "1", Owner: "B", Requester: "A"}},
			servers("A", "B"), 0,
			[]string{"A", "B"},
		},
		{
			"P7 a queue beyond all limits gets no owner",
			numbered(0, 5), servers("A", "B"), 2,
			[]string{"A", "B", "A", "B", ""},
		},
		{
			"P7 an owner over its limit keeps the queues that no server may take",
			[]plan.Queue{{ID: "0", Owner: "A"}, {ID: "1", Owner: "A"}, {ID: "2", Owner: "A"}},
			servers("A"), 2,
			[]string{"A", "A", "A"},
		},
		{
			"P7 a queue without an owner comes before the surplus of an owner",
			[]plan.Queue{{ID: "0", Owner: "A"}, {ID: "1", Owner: "A"}, {ID: "2"}},
			servers("A", "B"), 1,
			[]string{"A", "A", "B"},
		},
		{
			"P7 a live owner that is not eligible keeps its queues while no server is eligible",
			[]plan.Queue{{ID: "0", Owner: "A"}, {ID: "1", Owner: "dead"}},
			draining(servers("A"), "A"), 0,
			[]string{"A", ""},
		},
		{
			"P5 the queues of a draining owner are requested",
			[]plan.Queue{{ID: "0", Owner: "A"}, {ID: "1", Owner: "B"}},
			draining(servers("A", "B"), "A"), 0,
			[]string{"A, req B", "B"},
		},
		{
			"N2 a queue being removed has no requester and counts in no quota",
			[]plan.Queue{{ID: "0", Owner: "A", Requester: "B", Removing: true}, {ID: "1", Owner: "A", Removing: true}, {ID: "2"}, {ID: "3"}},
			servers("A", "B"), 0,
			[]string{"A", "A", "A", "B"},
		},
		{
			"N2 a queue being removed loses a dead owner and gets no other",
			[]plan.Queue{{ID: "0", Owner: "dead", Removing: true}, {ID: "1", Removing: true}, {ID: "2", Owner: "dead"}},
			servers("A"), 0,
			[]string{"", "", "A"},
		},
		{
			"P5 without any live server, owners and requests are cleared",
			[]plan.Queue{{ID: "0", Owner: "dead", Requester: "B"}},
			nil, 0,
			[]string{""},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := show(apply(t, c.queues, plan.Plan(c.queues, c.servers, c.limit)))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
		})
	}
}

// P1: ids sort naturally, whether all are numbers or not. Each queue goes to the server at its position.
func TestPlanSortsNaturally(t *testing.T) {
	for _, want := range [][]string{
		{"0", "2", "3", "10", "100"},
		{"01", "1", "2", "10", "18446744073709551616"},
		{"2", "10", "a2", "a10", "b"},
	} {
		var queues []plan.Queue
		for _, id := range want {
			queues = append(queues, plan.Queue{ID: id})
		}
		slices.Reverse(queues)
		var got []string
		for i, c := range plan.Plan(queues, servers("A", "B", "C", "D", "E"), 0) {
			got = append(got, c.QueueID)
			if c.Owner != string(rune('A'+i)) {
				t.Errorf("queue %s went to %s, want %c", c.QueueID, c.Owner, 'A'+i)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("in order: %v, want %v", got, want)
		}
	}
}
