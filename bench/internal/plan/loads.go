package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/dutyrota/rota/bench/internal/report"
	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/plan/plantest"
)

// The sizes of a roster whose loads are uneven, and the times at which workers measure and even them.
const (
	loadQueues, loadServers = 256, 8

	countInterval = 10 * time.Second // between two counts of the backlog of a queue
	countWindow   = 10               // the counts from which the load follows
	AuditInterval = 30 * time.Second
)

// LoadResult is how a roster evens its loads. The times are virtual.
type LoadResult struct {
	Seed          uint64
	Before, After float64       // the load of the busiest worker, by what is possible
	Mean          float64       // the same after, by the mean of the servers
	Took          time.Duration // until it was within 15 percent
	Moves, Least  int           // changes of owner until then, and a lower bound of their number
	Later         int           // changes of owner in the hour after that, while the loads vary by five percent
}

// loads are the loads of the queues of a roster, as they are and as their owners measure them.
type loads struct {
	*roster
	actual map[string]float64
	owners map[string]string    // at the last count
	counts map[string][]float64 // since the owner got the queue
	known  map[string]float64
}

// evenLoads plays rosters in which the loads of the queues suddenly follow Zipf's law, with other queues in each.
func evenLoads(rosters int) (results []LoadResult) {
	for seed := range uint64(rosters) {
		results = append(results, newLoads(seed).play(seed))
	}
	return results
}

// newLoads returns a roster that is balanced by the numbers of queues.
func newLoads(seed uint64) *loads {
	r := newRoster(Options{Queues: loadQueues, Servers: loadServers, Heartbeat: 2 * time.Second, Seed: seed, instant: true})
	for i := range r.rows.Servers {
		r.rows.Servers[i].Weight = 1
	}
	l := &loads{roster: r, actual: map[string]float64{}, owners: map[string]string{}, counts: map[string][]float64{}, known: map[string]float64{}}
	r.rows.Limits.Loads = &plan.Loads{Of: l.known, Start: plan.LoadStart, Stop: plan.LoadStop, Budget: -1}
	for _, s := range r.watched {
		r.after(r.upTo(countInterval), func() { l.count(s) })
	}
	r.after(r.upTo(AuditInterval), l.audit)
	return l
}

// count measures the loads of the queues of a server: from two counts of an owner on, the mean between the first and the last.
func (l *loads) count(s *server) {
	for _, q := range l.rows.Queues {
		if q.Owner != s.uuid {
			continue
		}
		if l.owners[q.ID] != s.uuid {
			l.owners[q.ID], l.counts[q.ID] = s.uuid, nil
		}
		l.counts[q.ID] = append(l.counts[q.ID], l.actual[q.ID])
		window := l.counts[q.ID][max(0, len(l.counts[q.ID])-countWindow):]
		if len(window) < 2 {
			continue
		}
		sum := 0.0
		for _, load := range window[1:] { // a count measures what has been done since the one before
			sum += load
		}
		l.known[q.ID] = sum / float64(len(window)-1)
	}
	l.after(countInterval, func() { l.count(s) })
}

// audit plans, though the membership is the same.
func (l *loads) audit() {
	l.underLock(l.rebalance)
	l.after(AuditInterval, l.audit)
}

func (l *loads) play(seed uint64) LoadResult {
	chance := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // it is repeatable
	for rank, at := range chance.Perm(loadQueues) {
		l.actual[l.rows.Queues[at].ID] = 10 / float64(rank+1)
	}
	possible := l.possible()
	result := LoadResult{Seed: seed, Before: l.busiest() / possible, Least: plantest.FewestMoves(l.rows.Queues, l.actual, 1.15*possible)}
	since, moves := l.now, l.moves
	for l.busiest() > 1.15*possible || l.requests > 0 {
		l.pass(100 * time.Millisecond)
		if l.now-since > time.Hour {
			break
		}
	}
	result.Took, result.Moves = l.now-since, l.moves-moves
	result.After, result.Mean = l.busiest()/possible, l.busiest()*loadServers/l.total()
	base := maps.Clone(l.actual)
	moves = l.moves
	for range 360 {
		for _, id := range slices.Sorted(maps.Keys(base)) {
			l.actual[id] = base[id] * (0.95 + 0.1*chance.Float64())
		}
		l.pass(10 * time.Second)
	}
	result.Later = l.moves - moves
	return result
}

func (l *loads) total() (sum float64) {
	for _, q := range l.rows.Queues {
		sum += l.actual[q.ID]
	}
	return sum
}

// possible returns a lower bound of the load of the busiest worker: the mean, or the largest queue.
func (l *loads) possible() float64 {
	largest := slices.Max(slices.Collect(maps.Values(l.actual)))
	return max(l.total()/loadServers, largest)
}

func (l *loads) busiest() (most float64) {
	sums := map[string]float64{}
	for _, q := range l.rows.Queues {
		sums[q.Owner] += l.actual[q.ID]
		most = max(most, sums[q.Owner])
	}
	return most
}

// loadTable shows the results, and adds the goals to the part.
func loadTable(part *report.Part, results []LoadResult) {
	t := report.Table{
		Title:   fmt.Sprintf("Even loads: %d queues whose loads follow Zipf's law, %d workers", loadQueues, loadServers),
		Columns: []string{"seed", "busiest / possible before", "after", "busiest / mean after", "took", "moves", "at least", "moves in the next hour, loads ±5 %"},
	}
	var moves, least, later int
	var took time.Duration
	var after float64
	for _, r := range results {
		t.Add(r.Seed, fmt.Sprintf("%.2f", r.Before), fmt.Sprintf("%.2f", r.After), fmt.Sprintf("%.2f", r.Mean), r.Took, r.Moves, r.Least, r.Later)
		moves, least, later = moves+r.Moves, least+r.Least, later+r.Later
		took, after = max(took, r.Took), max(after, r.After)
	}
	part.Tables = append(part.Tables, t)
	part.Goals = append(part.Goals,
		report.AtMost("uneven loads: busiest worker / possible", "%.2f", 1.15, after),
		report.AtMost("uneven loads: seconds until they are even", "%.0f", 60, took.Seconds()),
		report.AtMost("uneven loads: moves / lower bound, of all rosters", "%.2f", 1.2, float64(moves)/float64(least)),
		report.AtMost("even loads that vary by 5 %: moves in an hour", "%.0f", 0, float64(later)))
}
