package center_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dutyrota/rota/center"
)

var epochZero = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func servers(uuids ...string) []center.PlanServer {
	list := make([]center.PlanServer, len(uuids))
	for i, u := range uuids {
		list[i] = center.PlanServer{UUID: u, RegisterTime: epochZero.Add(time.Duration(i) * time.Second), Eligible: true}
	}
	return list
}

// apply writes changes as the store does, refusing what its compare-and-set would refuse.
func apply(t interface{ Fatalf(string, ...any) }, queues []center.PlanQueue, changes []center.Change) []center.PlanQueue {
	out := slices.Clone(queues)
	for _, c := range changes {
		i := slices.IndexFunc(out, func(q center.PlanQueue) bool { return q.ID == c.QueueID })
		if i < 0 || out[i].Cur != c.OldCur || out[i].Epoch != c.OldEpoch {
			t.Fatalf("change %+v does not fit the row", c)
		}
		out[i].Cur, out[i].Req = c.Cur, c.Req
		if c.Regrants() {
			out[i].Epoch++
		}
	}
	return out
}

// release does what owners do with requests once they have drained.
func release(queues []center.PlanQueue, owner string) []center.PlanQueue {
	out := slices.Clone(queues)
	for i, q := range out {
		if q.Req != "" && (owner == "" || q.Cur == owner) {
			out[i].Cur, out[i].Req = q.Req, ""
			out[i].Epoch++
		}
	}
	return out
}

func show(queues []center.PlanQueue) []string {
	rows := make([]string, len(queues))
	for i, q := range queues {
		rows[i] = q.Cur
		if q.Req != "" {
			rows[i] += ", req " + q.Req
		}
	}
	return rows
}

func numbered(first, n int) []center.PlanQueue {
	queues := make([]center.PlanQueue, n)
	for i := range queues {
		queues[i].ID = fmt.Sprint(first + i)
	}
	return queues
}

// The table of PROTOCOL P8, which comes from TBSchedule's own documentation.
func TestPlanSeedTable(t *testing.T) {
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
		queues = apply(t, queues, center.Plan(queues, servers(step.live...), 0))
		if diff := cmp.Diff(step.want, show(queues)); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	if diff := cmp.Diff([]string{"A", "B", "C", "D", "A"}, show(release(queues, "A"))); diff != "" {
		t.Fatalf("A releases (-want +got):\n%s", diff)
	}
}

func TestPlanCases(t *testing.T) {
	draining := func(s []center.PlanServer, uuid string) []center.PlanServer {
		for i := range s {
			if s[i].UUID == uuid {
				s[i].Eligible = false
			}
		}
		return s
	}
	cases := []struct {
		name    string
		queues  []center.PlanQueue
		servers []center.PlanServer
		limit   int
		want    []string
	}{
		{
			"P1 ids sort naturally",
			[]center.PlanQueue{{ID: "10"}, {ID: "2"}, {ID: "1"}},
			servers("A", "B", "C"), 0,
			[]string{"C", "B", "A"}, // rows 10, 2, 1
		},
		{
			"P2 the larger quota goes to the one that holds most",
			[]center.PlanQueue{{ID: "0", Cur: "B"}, {ID: "1", Cur: "B"}, {ID: "2"}},
			servers("A", "B"), 0,
			[]string{"B", "B", "A"},
		},
		{
			"P2 ties go to the older",
			numbered(0, 3), servers("A", "B"), 0,
			[]string{"A", "B", "A"},
		},
		{
			"P3 a server keeps the queues of its own position first",
			[]center.PlanQueue{{ID: "0", Cur: "B"}, {ID: "1", Cur: "B"}, {ID: "2", Cur: "B"}, {ID: "3", Cur: "B"}},
			servers("A", "B"), 0,
			[]string{"B, req A", "B", "B, req A", "B"},
		},
		{
			"P4 a queue goes to its own position, or to the next with room",
			[]center.PlanQueue{{ID: "0", Cur: "C"}, {ID: "1"}, {ID: "2"}, {ID: "3"}},
			servers("A", "B", "C", "D"), 0,
			[]string{"C", "B", "D", "A"},
		},
		{
			"P6 requests are planned over what was granted",
			[]center.PlanQueue{{ID: "0", Cur: "A"}, {ID: "1", Cur: "A"}, {ID: "2", Cur: "A"}, {ID: "3"}},
			servers("A", "B"), 0,
			[]string{"A", "A, req B", "A", "B"},
		},
		{
			"P5 the dead owner's queue goes at once, the living one's is requested",
			[]center.PlanQueue{{ID: "0", Cur: "dead"}, {ID: "1", Cur: "A"}, {ID: "2", Cur: "A"}},
			servers("A", "B"), 0,
			[]string{"B", "A", "A"},
		},
		{
			"P5 a request that is not needed is withdrawn",
			[]center.PlanQueue{{ID: "0", Cur: "A", Req: "gone"}, {ID: "1", Cur: "B", Req: "A"}},
			servers("A", "B"), 0,
			[]string{"A", "B"},
		},
		{
			"P7 beyond all limits there is no owner",
			numbered(0, 5), servers("A", "B"), 2,
			[]string{"A", "B", "A", "B", ""},
		},
		{
			"P7 an owner over its limit keeps what nobody may take",
			[]center.PlanQueue{{ID: "0", Cur: "A"}, {ID: "1", Cur: "A"}, {ID: "2", Cur: "A"}},
			servers("A"), 2,
			[]string{"A", "A", "A"},
		},
		{
			"P7 with room for one, the ownerless queue comes before the surplus",
			[]center.PlanQueue{{ID: "0", Cur: "A"}, {ID: "1", Cur: "A"}, {ID: "2"}},
			servers("A", "B"), 1,
			[]string{"A", "A", "B"},
		},
		{
			"P7 the living but not eligible keep theirs while nobody is eligible",
			[]center.PlanQueue{{ID: "0", Cur: "A"}, {ID: "1", Cur: "dead"}},
			draining(servers("A"), "A"), 0,
			[]string{"A", ""},
		},
		{
			"a draining owner is asked for its queues",
			[]center.PlanQueue{{ID: "0", Cur: "A"}, {ID: "1", Cur: "B"}},
			draining(servers("A", "B"), "A"), 0,
			[]string{"A, req B", "B"},
		},
		{
			"N2 what is being removed is asked for by nobody, and counts for nobody",
			[]center.PlanQueue{{ID: "0", Cur: "A", Req: "B", Removing: true}, {ID: "1", Cur: "A", Removing: true}, {ID: "2"}, {ID: "3"}},
			servers("A", "B"), 0,
			[]string{"A", "A", "A", "B"},
		},
		{
			"N2 what is being removed goes to nobody when its owner is dead",
			[]center.PlanQueue{{ID: "0", Cur: "dead", Removing: true}, {ID: "1", Removing: true}, {ID: "2", Cur: "dead"}},
			servers("A"), 0,
			[]string{"", "", "A"},
		},
		{
			"nobody lives",
			[]center.PlanQueue{{ID: "0", Cur: "dead", Req: "B"}},
			nil, 0,
			[]string{""},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := show(apply(t, c.queues, center.Plan(c.queues, c.servers, c.limit)))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
		})
	}
}

// P1: ids sort as people sort them, whether all are numbers or not. Each queue goes to the server at its place.
func TestPlanSortsNaturally(t *testing.T) {
	for _, want := range [][]string{
		{"0", "2", "3", "10", "100"},
		{"01", "1", "2", "10", "18446744073709551616"},
		{"2", "10", "a2", "a10", "b"},
	} {
		var queues []center.PlanQueue
		for _, id := range want {
			queues = append(queues, center.PlanQueue{ID: id})
		}
		slices.Reverse(queues)
		var got []string
		for i, c := range center.Plan(queues, servers("A", "B", "C", "D", "E"), 0) {
			got = append(got, c.QueueID)
			if c.Cur != string(rune('A'+i)) {
				t.Errorf("queue %s went to %s, want %c", c.QueueID, c.Cur, 'A'+i)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("in order: %v, want %v", got, want)
		}
	}
}

// drawRoster draws any roster, hand-edited nonsense included.
func drawRoster(t *rapid.T) ([]center.PlanQueue, []center.PlanServer, int) {
	live := servers("A", "B", "C", "D", "E", "F")[:rapid.IntRange(0, 6).Draw(t, "servers")]
	for i := range live {
		live[i].Eligible = rapid.IntRange(0, 4).Draw(t, "eligible") > 0
	}
	name := rapid.SampledFrom([]string{"", "A", "B", "C", "D", "E", "F", "dead"})
	queues := numbered(0, rapid.IntRange(0, 30).Draw(t, "queues"))
	for i := range queues {
		queues[i].Cur, queues[i].Req = name.Draw(t, "cur"), name.Draw(t, "req")
		queues[i].Epoch = int64(rapid.IntRange(0, 9).Draw(t, "epoch"))
		queues[i].Removing = rapid.IntRange(0, 9).Draw(t, "removing") == 0
	}
	return queues, live, rapid.SampledFrom([]int{0, 0, 1, 3, 100}).Draw(t, "limit")
}

// tally counts the queues by owner.
func tally(queues []center.PlanQueue) map[string]int {
	held := map[string]int{}
	for _, q := range queues {
		held[q.Cur]++
	}
	return held
}

// Rule P8, over arbitrary rosters.
func TestPlanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		queues, live, limit := drawRoster(t)
		changes := center.Plan(queues, live, limit)
		after := apply(t, queues, changes)

		alive, eligible := map[string]bool{}, map[string]bool{}
		for _, s := range live {
			alive[s.UUID] = true
			if s.Eligible {
				eligible[s.UUID] = true
			}
		}
		checkNeverRobbed(t, queues, after, alive, eligible)
		checkRemoving(t, after, alive)
		staying := slices.DeleteFunc(slices.Clone(after), func(q center.PlanQueue) bool { return q.Removing })
		checkBalance(t, release(staying, ""), eligible, alive, limit)
		checkMoves(t, staying, eligible, limit)

		if again := center.Plan(after, live, limit); len(again) > 0 {
			t.Fatalf("planning again changes %+v", again)
		}
		settled := release(after, "")
		if again := center.Plan(settled, live, limit); len(again) > 0 {
			t.Fatalf("after the moves are done, planning again changes %+v", again)
		}
		shuffled := center.Plan(rapid.Permutation(queues).Draw(t, "rows"), rapid.Permutation(live).Draw(t, "live"), limit)
		if diff := cmp.Diff(changes, shuffled); diff != "" {
			t.Fatalf("the order of the input matters:\n%s", diff)
		}
	})
}

func checkNeverRobbed(t *rapid.T, before, after []center.PlanQueue, alive, eligible map[string]bool) {
	for i, q := range after {
		if was := before[i].Cur; alive[was] && q.Cur != was {
			t.Fatalf("queue %s was taken from %s, which lives", q.ID, was)
		}
		if q.Cur != "" && !alive[q.Cur] {
			t.Fatalf("queue %s stays with %s, which is dead", q.ID, q.Cur)
		}
		if q.Req != "" && (!eligible[q.Req] || q.Req == q.Cur || q.Cur == "") {
			t.Fatalf("queue %s: bad request %+v", q.ID, q)
		}
	}
}

// checkRemoving: rule N2.
func checkRemoving(t *rapid.T, after []center.PlanQueue, alive map[string]bool) {
	for _, q := range after {
		if q.Removing && (q.Req != "" || q.Cur != "" && !alive[q.Cur]) {
			t.Fatalf("queue %s is being removed: %+v", q.ID, q)
		}
	}
}

// checkBalance looks at the state after all requests are granted.
func checkBalance(t *rapid.T, settled []center.PlanQueue, eligible, alive map[string]bool, limit int) {
	if len(eligible) == 0 {
		return
	}
	held := tally(settled)
	least, most, room := len(settled), 0, false
	for s := range eligible {
		least, most = min(least, held[s]), max(most, held[s])
		room = room || limit == 0 || held[s] < limit
	}
	if limit == 0 && most-least > 1 {
		t.Fatalf("balance is %d: %v", most-least, held)
	}
	if room && held[""] > 0 {
		t.Fatalf("%d queues without owner though there is room: %v", held[""], held)
	}
	for s := range maps.Keys(alive) {
		if room && !eligible[s] && held[s] > 0 {
			t.Fatalf("%s is not eligible and keeps %d queues though there is room", s, held[s])
		}
	}
}

// checkMoves: without limits the number of requests is the least that balances.
func checkMoves(t *rapid.T, after []center.PlanQueue, eligible map[string]bool, limit int) {
	if len(eligible) == 0 || limit > 0 {
		return
	}
	held := tally(after)
	byHeld := slices.SortedFunc(maps.Keys(eligible), func(a, b string) int { return held[b] - held[a] })
	least := 0
	for s, n := range held {
		if !eligible[s] {
			least += n // must go, whoever takes them
		}
	}
	floor, ceilings := len(after)/len(eligible), len(after)%len(eligible)
	for i, s := range byHeld {
		quota := floor
		if i < ceilings {
			quota++
		}
		least += max(0, held[s]-quota)
	}
	moves := 0
	for _, q := range after {
		if q.Req != "" {
			moves++
		}
	}
	if moves != least {
		t.Fatalf("%d moves, the least is %d: %v", moves, least, held)
	}
}

func BenchmarkPlan(b *testing.B) {
	for _, size := range []struct{ queues, servers int }{{100, 10}, {10_000, 1_000}, {100_000, 10_000}} {
		b.Run(fmt.Sprintf("join/%dx%d", size.queues, size.servers), func(b *testing.B) {
			uuids := make([]string, size.servers+1)
			for i := range uuids {
				uuids[i] = fmt.Sprintf("host-%05d:1:00000000", i)
			}
			all := servers(uuids...)
			queues := numbered(0, size.queues)
			queues = apply(b, queues, nil)
			for i := range queues {
				queues[i].Cur = uuids[i%size.servers]
			}
			b.ReportAllocs()
			for b.Loop() {
				center.Plan(queues, all, 0)
			}
		})
	}
}
