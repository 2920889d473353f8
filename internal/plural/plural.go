// Package plural puts numbers before nouns, in texts for people.
package plural

import "fmt"

// Of returns "1 queue" or "3 queues". The words may go on: Of(n, "queue is", "queues are").
func Of[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
