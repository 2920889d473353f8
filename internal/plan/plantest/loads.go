package plantest

import (
	"cmp"
	"slices"

	"github.com/dutyrota/rota/internal/plan"
)

// FewestMoves returns a number of moves below which no plan by load gets each server within the bound (P16). In the end
// some server has the largest queue, and beside it only as much as the bound leaves. Each server must give away what is
// too much, and it needs the fewest moves if these are its largest queues.
func FewestMoves(queues []plan.Queue, loads map[string]float64, bound float64) int {
	largest := slices.MaxFunc(queues, func(a, b plan.Queue) int { return cmp.Compare(loads[a.ID], loads[b.ID]) })
	others := map[string][]float64{}
	for _, q := range queues {
		if q.ID != largest.ID {
			others[q.Owner] = append(others[q.Owner], loads[q.ID])
		}
	}
	fewest := len(queues)
	for holder := range others {
		moves := 0
		if holder != largest.Owner {
			moves = 1
		}
		for owner, list := range others {
			most := bound
			if owner == holder {
				most -= loads[largest.ID]
			}
			moves += tooMany(list, most)
		}
		fewest = min(fewest, moves)
	}
	return fewest
}

// tooMany returns how many of the loads must go so that the sum of the others is within the bound.
func tooMany(loads []float64, bound float64) (n int) {
	var sum float64
	for _, load := range loads {
		sum += load
	}
	slices.Sort(loads)
	for ; sum > bound+1e-9; n++ {
		sum -= loads[len(loads)-1-n]
	}
	return n
}
