package testdb

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// OwnClock returns a private server as [Own] does, whose clock the test can set with [Server.SetClock]. It needs
// libfaketime, which runs on Linux.
func OwnClock(t testing.TB, kind string) *Server {
	t.Helper()
	skipUnwanted(t, kind)
	library := clockLibrary()
	if library == "" {
		t.Fatal("libfaketime is not installed: make check installs it, on Debian and as root")
	}
	server, err := start(planOf(kind, "CLOCK="+library))
	return kept(t, server, err)
}

// SetClock sets the clock of a server that [OwnClock] returned: so much ahead of that of the machine.
func (s *Server) SetClock(ahead time.Duration) error {
	return s.say(fmt.Sprintf("clock %+d", int64(ahead/time.Second)))
}

// MissingClock returns the package of Debian that [OwnClock] needs for the kinds of database, unless it is installed.
func MissingClock(kinds []string) []string {
	if clockLibrary() != "" || !slices.ContainsFunc(kinds, func(kind string) bool { return kind != SQLite }) {
		return nil
	}
	return []string{"libfaketime"}
}

// clockLibrary returns the path of libfaketime for programs with threads, or "" if it is not installed.
func clockLibrary() string {
	found, _ := filepath.Glob("/usr/lib*/*/faketime/libfaketimeMT.so.1") // fails only for a malformed pattern
	return append(found, "")[0]
}
