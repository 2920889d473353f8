//go:build race

package runs_test

// raceEnabled reports whether the race detector is on. It makes random histories many times slower and finds nothing in
// them: one goroutine runs at a time.
const raceEnabled = true
