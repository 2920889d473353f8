package plan

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/maruel/natural"
)

// CompareIDs compares queue ids in natural order: 2 comes before 10 (P1). Ids that natural order cannot tell apart, such as
// "1" and "01", compare as bytes.
func CompareIDs(a, b string) int {
	switch {
	case natural.Less(a, b):
		return -1
	case natural.Less(b, a):
		return 1
	}
	return cmp.Compare(a, b)
}

// sorted returns a copy of the queues in natural order of their ids. It parses the ids of numbered queues once and not at
// each comparison: with 100,000 queues that was half of the time of a plan.
func sorted(queues []Queue) []Queue {
	rows := make([]numberedRow, len(queues))
	for i, q := range queues {
		n, err := strconv.ParseUint(q.ID, 10, 64)
		if err != nil || len(q.ID) > 1 && q.ID[0] == '0' { // with leading zeros, two ids may be the same number
			sorted := slices.Clone(queues)
			slices.SortFunc(sorted, func(a, b Queue) int { return CompareIDs(a.ID, b.ID) })
			return sorted
		}
		rows[i] = numberedRow{n, i}
	}
	slices.SortFunc(rows, func(a, b numberedRow) int { return cmp.Compare(a.number, b.number) })
	sorted := make([]Queue, len(queues))
	for i, row := range rows {
		sorted[i] = queues[row.at]
	}
	return sorted
}

// numberedRow is a numeric id and the index of its row.
type numberedRow struct {
	number uint64
	at     int
}
