package plan_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dutyrota/rota/internal/plan"
)

// oddIDs are all ids of up to three characters, of digits that make numbers with leading zeros and of characters that
// sort before and after digits.
var oddIDs = func() (ids []string) {
	last := []string{""}
	for range 3 {
		var longer []string
		for _, id := range last {
			for _, c := range "012-a" {
				longer = append(longer, id+string(c))
			}
		}
		ids, last = append(ids, longer...), longer
	}
	return ids
}()

// P1: the order of ids is total. It is checked for all pairs and triples of short ids.
func TestOrderOfShortIDsIsTotal(t *testing.T) {
	less := make([][]bool, len(oddIDs))
	for i, a := range oddIDs {
		less[i] = make([]bool, len(oddIDs))
		for j, b := range oddIDs {
			less[i][j] = checkPair(t, a, b) < 0
		}
	}
	for i, a := range oddIDs {
		for j, b := range oddIDs {
			if !less[i][j] {
				continue
			}
			for k, c := range oddIDs {
				if less[j][k] && !less[i][k] {
					t.Fatalf("%q < %q < %q, but %q is not before %q", a, b, c, a, c)
				}
			}
		}
	}
}

// P1: the order of ids is total, and a sort has one result.
func TestOrderOfIDsIsTotal(t *testing.T) {
	part := rapid.SampledFrom([]string{"0", "1", "00", "10", "18446744073709551616", "-", ".", "a", "é"})
	odd := rapid.Map(rapid.SliceOfN(part, 1, 4), func(parts []string) string { return strings.Join(parts, "") })
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.OneOf(odd, odd, odd, rapid.String()), 30, 40, rapid.ID[string]).Draw(t, "ids")
		slices.SortFunc(ids, plan.CompareIDs)
		for i, a := range ids {
			for _, b := range ids[i+1:] {
				if checkPair(t, a, b) >= 0 {
					t.Fatalf("%q is not before %q in %q, which is sorted", a, b, ids)
				}
			}
		}
	})
}

// checkPair compares two ids in both directions. Only equal ids compare as equal.
func checkPair(t interface{ Fatalf(string, ...any) }, a, b string) int {
	c := plan.CompareIDs(a, b)
	if back := plan.CompareIDs(b, a); c != -back || (c == 0) != (a == b) {
		t.Fatalf("%q compares with %q as %d, and back as %d", a, b, c, back)
	}
	return c
}

// P1: ids of common forms sort as people expect.
func TestOrderOfIDs(t *testing.T) {
	for _, want := range [][]string{
		{"", "0", "00", "1", "2", "10"},
		{"01", "1", "1-a", "01a", "2"},
		{"eu-1", "eu-2", "eu-10", "us-1"},
		{"a01b2", "a1b2", "a1b10", "a2"},
		{"-", "1", "a", "a-", "a1", "aa"},
	} {
		got := slices.Clone(want)
		slices.Reverse(got)
		slices.SortFunc(got, plan.CompareIDs)
		if !slices.Equal(got, want) {
			t.Errorf("in order: %q, want %q", got, want)
		}
	}
}
