//go:build race

package runs_test

// raced: the race detector makes random histories many times slower, and has nothing to find in them.
const raced = true
