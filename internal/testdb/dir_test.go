package testdb

import (
	"path/filepath"
	"testing"
)

// Benchmarks have their data on a disk, and a machine without much memory too.
func TestDirOfAServer(t *testing.T) {
	if dir := inMemory(1 << 62); dir != "" {
		t.Errorf("%q has room for 4 EB", dir)
	}
	wanted := t.TempDir()
	t.Setenv(dirVariable, wanted)
	dir, err := newDir()
	if err != nil || filepath.Dir(dir) != wanted {
		t.Errorf("%s names %s, and the directory is %q, %v", dirVariable, wanted, dir, err)
	}
}
