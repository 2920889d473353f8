package regular

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A regular file is read, also behind a symbolic link. A directory, a device and what is not there are not.
func TestReadFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	paths := []string{file}
	if os.Symlink(file, link) == nil { // Windows may not
		paths = append(paths, link)
	}
	for _, path := range paths {
		if text, err := ReadFile(path); string(text) != "text" || err != nil {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
	for path, want := range map[string]string{dir: "must be a regular file, not a directory", os.DevNull: "not a device"} {
		_, err := ReadFile(path)
		if e, ok := errors.AsType[*fs.PathError](err); !ok || e.Path != path || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := ReadFile(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
}
