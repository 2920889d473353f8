package center

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/maruel/natural"
)

// compareIDs sorts naturally, 2 before 10 (P1); ids that natural order cannot tell apart
// ("1" and "01") fall back to bytes.
func compareIDs(a, b string) int {
	switch {
	case natural.Less(a, b):
		return -1
	case natural.Less(b, a):
		return 1
	}
	return cmp.Compare(a, b)
}

// inOrder returns the queues in natural order of their ids. The ids of numbered queues are read once
// rather than at each comparison: with 100,000 queues that was half of the planning.
func inOrder(queues []PlanQueue) []PlanQueue {
	numbers := make([]numberedRow, len(queues))
	for i, q := range queues {
		n, err := strconv.ParseUint(q.ID, 10, 64)
		if err != nil || len(q.ID) > 1 && q.ID[0] == '0' { // two ids may be one number
			sorted := slices.Clone(queues)
			slices.SortFunc(sorted, func(a, b PlanQueue) int { return compareIDs(a.ID, b.ID) })
			return sorted
		}
		numbers[i] = numberedRow{n, i}
	}
	slices.SortFunc(numbers, func(a, b numberedRow) int { return cmp.Compare(a.number, b.number) })
	sorted := make([]PlanQueue, len(queues))
	for i, row := range numbers {
		sorted[i] = queues[row.at]
	}
	return sorted
}

// numberedRow is the number that an id is, and where its row is.
type numberedRow struct {
	number uint64
	at     int
}
