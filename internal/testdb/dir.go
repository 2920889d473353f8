package testdb

import (
	"cmp"
	"os"
)

// dirVariable names the directory of the private servers' data. Benchmarks set it to a directory on a disk.
const dirVariable = "ROTA_TEST_DIR"

// memoryNeeded is how many bytes have to be free in memory for the data of servers: several times what all tests use.
const memoryNeeded = 4 << 30

// newDir creates the directory of a server: in memory where there is room, because on a disk the files of a fresh
// database cost ten times as much to create and to remove. It is not in os.TempDir, which may be too long for a
// socket (107 bytes) or closed to the user of the server.
func newDir() (string, error) {
	return os.MkdirTemp(cmp.Or(os.Getenv(dirVariable), inMemory(memoryNeeded), "/tmp"), "rota_testdb_")
}
