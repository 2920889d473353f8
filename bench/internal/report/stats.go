package report

import (
	"math"
	"slices"
)

// Median returns the middle of some figures, or NaN if there are none.
func Median(of []float64) float64 { return Percentile(of, 50) }

// Percentile returns the smallest figure that so many percent of them do not exceed, or NaN if there are none.
func Percentile(of []float64, percent int) float64 {
	if len(of) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}

// Spread returns by how many percent of the median the figures lie apart, from the least to the largest.
func Spread(of []float64) float64 {
	if len(of) == 0 {
		return math.NaN()
	}
	return 100 * (slices.Max(of) - slices.Min(of)) / Median(of)
}
