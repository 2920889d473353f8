package testdb

import (
	"cmp"
	"os"
	"testing"
)

// dirVariable names the directory of the private servers' data. Benchmarks set it to a directory on a disk.
const dirVariable = "ROTA_TEST_DIR"

// memoryNeeded is how many bytes have to be free in memory for the data of databases: several times what all tests use.
const memoryNeeded = 4 << 30

// ownDir returns a directory for the file of a database, which is removed with the test.
func ownDir(t testing.TB) string {
	t.Helper()
	dir, err := newDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// newDir creates the directory of a database: in memory where there is room, because on a disk the files of a fresh
// database cost ten times as much to create and to remove. It is not in os.TempDir, which may be too long for a
// socket (107 bytes) or closed to the user of the server.
func newDir() (string, error) {
	return os.MkdirTemp(cmp.Or(os.Getenv(dirVariable), inMemory(memoryNeeded), "/tmp"), "rota_testdb_")
}
