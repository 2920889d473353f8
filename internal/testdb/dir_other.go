//go:build !linux

package testdb

// inMemory returns "": other systems have no directory in memory that every user may write.
func inMemory(uint64) string { return "" }
