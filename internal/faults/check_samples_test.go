package faults

import (
	"testing"
	"time"
)

// 22: the tries of a process are counted from success to success.
func TestCheckTries(t *testing.T) {
	tries := func(selects, calls int, seconds float64, done bool) (list []Try) {
		add := func(n int, isSelect bool) {
			for i := range n {
				at := time.Duration(float64(i) / float64(n) * seconds * float64(time.Second))
				list = append(list, Try{Process: 1, At: time.Unix(0, 0).Add(at), Select: isSelect})
			}
		}
		add(selects, true)
		add(calls, false)
		if done {
			list = append(list, Try{
				Process: 1, At: time.Unix(0, 0).Add(time.Duration(seconds / 2 * float64(time.Second))),
				Done: true,
			})
		}
		return list
	}
	for _, c := range []struct {
		name  string
		tries []Try
		want  int
	}{
		{"a sample", tries(25, 990, 10, false), 0},
		{"too many selects", tries(40, 100, 10, false), 1},
		{"too many calls", tries(10, 1200, 10, false), 1},
		{"too many before and after a success", tries(10, 1400, 10, true), 2},
		{"a second that shows the outage", tries(20, 300, 1, false), 0},
		{"an idle process", tries(100, 0, 10, false), 0},
		{"two processes", append(tries(20, 990, 10, false), Try{Process: 2, At: time.Unix(5, 0)}), 0},
	} {
		found := CheckTries(c.tries)
		if len(found) != c.want {
			t.Errorf("%s: %v, want %d violations", c.name, found, c.want)
		}
	}
}
