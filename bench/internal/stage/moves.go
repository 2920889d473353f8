package stage

import "slices"

// FewestMoves is the least number of moves that balances the queues, of which each server held so many, over the servers
// that are there now: those of who is gone, and what the others held beyond their quotas.
func FewestMoves(held map[string]int, now []string) (moves int64) {
	var total int
	for _, n := range held {
		total += n
	}
	left := total
	var kept []int
	for _, uuid := range now {
		kept = append(kept, held[uuid])
		left -= held[uuid]
	}
	slices.SortFunc(kept, func(a, b int) int { return b - a }) // who holds most gets the larger quotas
	for i, n := range kept {
		quota := total / len(kept)
		if i < total%len(kept) {
			quota++
		}
		left += max(0, n-quota)
	}
	return int64(left)
}
