// Package nearest finds what a misspelt word may stand for.
package nearest

import "strings"

// To returns the key that is most like word, or "". The two may differ in case and
// separators, and in one letter out of three.
func To(word string, keys []string) string {
	best, limit := "", -1
	for _, key := range keys {
		d := distance(fold(word), fold(key))
		if d <= len(key)/3 && (limit < 0 || d < limit) {
			best, limit = key, d
		}
	}
	return best
}

func fold(s string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(s))
}

// distance returns the Levenshtein distance: the least number of letters to
// insert, remove or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
