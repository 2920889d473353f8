// Package regular opens the files that a configuration names. It refuses what is no regular file: to open a named pipe
// waits for a writer, for ever, and to read a device may never end.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Open opens a file for reading. A symbolic link counts as what it leads to. The error is a *fs.PathError.
func Open(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, &fs.PathError{Op: "open", Path: path, Err: e.Err}
	}
	if !info.Mode().IsRegular() {
		err := fmt.Errorf("must be a regular file, not a %s", kind(info.Mode()))
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.Open(path)
}

// ReadFile returns what is in a file. Its errors are those of Open and of os.File.
func ReadFile(path string) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return io.ReadAll(f)
}

func kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "directory"
	case mode&fs.ModeNamedPipe != 0:
		return "named pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}
