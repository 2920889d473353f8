//go:build race

package runs_test

// raced reports whether the race detector is on. It makes random histories many times slower, and has nothing to find in
// them: they run in one goroutine.
const raced = true
