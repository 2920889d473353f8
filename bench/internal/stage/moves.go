package stage

import "slices"

// FewestMoves returns the smallest number of moves that balances the queues over the servers in now. held has the
// number of queues of each server before. The queues of the other servers must move, and so must the queues that a
// server holds beyond its quota.
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
	slices.SortFunc(kept, func(a, b int) int { return b - a }) // the servers with the most queues get the larger quotas
	for i, n := range kept {
		quota := total / len(kept)
		if i < total%len(kept) {
			quota++
		}
		left += max(0, n-quota)
	}
	return int64(left)
}
