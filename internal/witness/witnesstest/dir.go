// Package witnesstest helps tests of package witness and of what uses it.
package witnesstest

import (
	"os"
	"testing"
)

// memory is where Linux has a file system in memory, whose locks are a proof.
const memory = "/dev/shm"

// Dir returns an empty directory for the locks of a test. The temporary directory of a test may be on a file system that a
// witness refuses, such as the overlay of a container.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(memory, "witness") //nolint:usetesting // that of the test may be elsewhere
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
