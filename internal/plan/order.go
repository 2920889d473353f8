package plan

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// CompareIDs compares queue ids in natural order: 2 comes before 10 (P1). Ids that differ only in leading zeros, such
// as "1" and "01", compare as bytes. It is a total order, so that a sort has one result for all orders of its input.
func CompareIDs(a, b string) int {
	return cmp.Or(compareTokens(a, b), cmp.Compare(a, b))
}

// compareTokens compares two ids token by token. A token is a number, which is a run of digits, or any other byte.
// Tokens have a total order of their own: numbers compare by value, and with any other byte as their digits do. An
// order that compares some numbers as bytes, because of their zeros or their length, has cycles such as "1" < "1-a" <
// "01a" < "1".
func compareTokens(a, b string) int {
	for a != "" && b != "" {
		digitsA, digitsB := leadingDigits(a), leadingDigits(b)
		if digitsA > 0 && digitsB > 0 {
			if c := compareNumbers(a[:digitsA], b[:digitsB]); c != 0 {
				return c
			}
			a, b = a[digitsA:], b[digitsB:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b)) // the end of an id comes before any token
}

// leadingDigits returns how many digits the text begins with.
func leadingDigits(text string) int {
	n := 0
	for n < len(text) && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	return n
}

// compareNumbers compares digits by the value of their number, which may have any length.
func compareNumbers(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// order returns the indexes of the queues in natural order of their ids. It parses the ids of numbered queues once:
// a parse at each comparison takes half of the time of a plan of 100,000 queues.
func order(queues []Queue) []int {
	indexes := make([]int, len(queues))
	for i := range indexes {
		indexes[i] = i
	}
	if numbers := numericIDs(queues); numbers != nil {
		slices.SortFunc(indexes, func(a, b int) int { return cmp.Compare(numbers[a], numbers[b]) })
	} else {
		slices.SortFunc(indexes, func(a, b int) int { return CompareIDs(queues[a].ID, queues[b].ID) })
	}
	return indexes
}

// numericIDs returns the ids as numbers, or nil if an id is not a number without leading zeros. With leading zeros, two
// ids may be the same number.
func numericIDs(queues []Queue) []uint64 {
	numbers := make([]uint64, len(queues))
	for i, q := range queues {
		n, err := strconv.ParseUint(q.ID, 10, 64)
		if err != nil || len(q.ID) > 1 && q.ID[0] == '0' {
			return nil
		}
		numbers[i] = n
	}
	return numbers
}
