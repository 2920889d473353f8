package report

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Median returns the middle of some figures, or NaN if there are none.
func Median(of []float64) float64 { return Percentile(of, 50) }

// Percentile returns the smallest figure that at least this percentage of the figures does not exceed, or NaN if there
// are none.
func Percentile(of []float64, percent int) float64 {
	if len(of) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}

// Spread returns the distance between the smallest and the largest figure, in percent of the median.
func Spread(of []float64) float64 {
	if len(of) == 0 {
		return math.NaN()
	}
	return 100 * (slices.Max(of) - slices.Min(of)) / Median(of)
}

// Millis returns durations in milliseconds.
func Millis(of ...time.Duration) (list []float64) {
	for _, d := range of {
		list = append(list, float64(d)/float64(time.Millisecond))
	}
	return list
}

// MS returns a text for milliseconds with this number of decimals.
func MS(decimals int, ms float64) string { return fmt.Sprintf("%.*f ms", decimals, ms) }
