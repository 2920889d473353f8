package witness

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Lock is held by this process, and by the processes that it starts, until all of them have ended or closed the
// descriptor.
type Lock struct {
	// ID names the file for the row in schedule_server.
	ID string

	path string
	fd   int // not an os.File, which the garbage collector would close
}

// Hold makes a file for this process and locks it. The process holds the lock until it ends, unless it calls Release. A
// process may hold several.
func (d *Directory) Hold() (*Lock, error) {
	l, err := d.hold()
	if err != nil {
		return nil, fmt.Errorf("make a lock file in %s: %w", d.path, err)
	}
	return l, nil
}

func (d *Directory) hold() (*Lock, error) {
	random := make([]byte, 8)
	_, _ = rand.Read(random) // never returns an error
	name := d.boot + "." + hex.EncodeToString(random)
	temporary := filepath.Join(d.path, name+unnamed)
	// Without O_CLOEXEC: processes that a dealer starts inherit the lock.
	fd, err := unix.Open(temporary, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, d.mode())
	if err != nil {
		return nil, err
	}
	l := &Lock{path: filepath.Join(d.path, name+suffix), fd: fd}
	var stat unix.Stat_t
	if err = lockNew(fd); err == nil {
		err = unix.Fstat(fd, &stat)
	}
	if err == nil {
		// Only now witnesses see the file: a file with a name and without a lock has lost its process.
		err = os.Rename(temporary, l.path)
	}
	if err != nil {
		_ = os.Remove(temporary)
		_ = unix.Close(fd)
		return nil, err
	}
	l.ID = fileID(name, &stat)
	return l, nil
}

// fileID names a file of a boot, which the name begins with.
func fileID(name string, stat *unix.Stat_t) string {
	device := uint64(stat.Dev) //nolint:unconvert // Dev is smaller on some processors
	return fmt.Sprintf("%s@%d:%d/%d", name, unix.Major(device), unix.Minor(device), stat.Ino)
}

// lockNew locks a file that no other process has to lock. One that looks into every file may hold it for a moment.
func lockNew(fd int) error {
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		err := flock(fd, unix.LOCK_EX)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Since(began) > lockPatience {
			return err
		}
	}
}

// flock tries to lock a file and does not wait.
func flock(fd, how int) error {
	for {
		if err := unix.Flock(fd, how|unix.LOCK_NB); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Release removes the file and unlocks it. The caller has no row any more, or nothing in flight.
func (l *Lock) Release() {
	_ = os.Remove(l.path)
	_ = unix.Close(l.fd)
}

// check returns an error if the file does not have its name any more.
func (l *Lock) check() error {
	var named, open unix.Stat_t
	if err := unix.Lstat(l.path, &named); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrRemoved, l.path, err)
	}
	if err := unix.Fstat(l.fd, &open); err != nil || named.Ino != open.Ino || named.Dev != open.Dev {
		return fmt.Errorf("%w: another file has its name %s", ErrRemoved, l.path)
	}
	return nil
}
