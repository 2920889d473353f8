// Package proctest starts processes for tests, which kill them, stop them in the middle of a call, and let them leave.
// A package's test binary becomes such a process by a variable of its environment, which TestMain looks for. A Process
// is for Linux.
package proctest
