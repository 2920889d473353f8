package witness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// localFileSystems are the file systems whose locks all processes of the host see, and only they.
var localFileSystems = map[int64]bool{
	unix.TMPFS_MAGIC:       true,
	unix.RAMFS_MAGIC:       true,
	unix.EXT4_SUPER_MAGIC:  true, // of ext2 and ext3, too
	unix.XFS_SUPER_MAGIC:   true,
	unix.BTRFS_SUPER_MAGIC: true,
}

// bootIDFile has an id that the kernel makes at each boot.
const bootIDFile = "/proc/sys/kernel/random/boot_id"

// Directory is the directory in which the processes of this host hold their locks. Its methods may be called
// concurrently, except Watch.
type Directory struct {
	path   string
	boot   string
	booted time.Time
	shared bool // several users may make files in it

	since map[string]time.Time // since when Watch has seen files without a lock, by path
}

// Open opens the directory, and makes it if it is missing. It returns an error if a lock in it would prove nothing:
// ErrFileSystem, ErrShared, ErrWritable.
func Open(path string) (*Directory, error) {
	d := &Directory{path: filepath.Clean(path), since: map[string]time.Time{}}
	err := os.MkdirAll(d.path, 0o755)
	if err == nil {
		err = d.readBoot()
	}
	if err == nil {
		err = d.check()
	}
	if err != nil {
		return nil, fmt.Errorf("open the witness directory %s: %w", path, err)
	}
	return d, nil
}

func (d *Directory) readBoot() error {
	id, err := os.ReadFile(bootIDFile)
	if err != nil {
		return err
	}
	d.boot = strings.TrimSpace(string(id))
	if !fileName.MatchString(d.boot + ".0123456789abcdef" + suffix) {
		return fmt.Errorf("%s (%q) must be a uuid", bootIDFile, d.boot)
	}
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		return err
	}
	d.booted = time.Now().Add(-time.Duration(up.Nano()))
	return nil
}

// check returns an error if the locks in the directory prove nothing about the processes of this host.
func (d *Directory) check() error {
	var fs unix.Statfs_t
	if err := unix.Statfs(d.path, &fs); err != nil {
		return err
	}
	info, err := os.Stat(d.path)
	if err != nil {
		return err
	}
	d.shared = info.Mode().Perm()&0o022 != 0
	if d.shared && info.Mode()&os.ModeSticky == 0 {
		return fmt.Errorf("%w: they could replace its files; use a directory that only the user of the workers may write "+
			"to, or chmod +t", ErrWritable)
	}
	if !localFileSystems[int64(fs.Type)] { //nolint:unconvert // Type is smaller on some processors
		return fmt.Errorf("%w: type 0x%x; use a directory on tmpfs, ext4, xfs or btrfs, such as one under /run",
			ErrFileSystem, fs.Type)
	}
	return d.eachFile(func(f file) error {
		// A file that is older than this boot is left from an earlier one.
		if f.boot != d.boot && f.modified.After(d.booted) {
			return fmt.Errorf("%w: %s is of boot %s, and this host runs boot %s; give each host a directory of its own",
				ErrShared, f.path, f.boot, d.boot)
		}
		return nil
	})
}

// Shared reports whether several users may make files in the directory. Each of them can then lock the files of the
// others and so delay, but never bring about, that the end of a process is noticed.
func (d *Directory) Shared() bool { return d.shared }

// mode returns the mode of a lock file. Other users may open the file only where the workers have several users,
// because a user that may open it may also lock it.
func (d *Directory) mode() uint32 {
	if d.shared {
		return 0o644
	}
	return 0o600
}

// file is a file of the directory.
type file struct {
	path, name, boot string
	locked           bool // it has the name that it gets when it is locked
	modified         time.Time
}

// eachFile calls f for each file of a process, and ends at the first error.
func (d *Directory) eachFile(f func(file) error) error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		parts := fileName.FindStringSubmatch(e.Name())
		info, err := e.Info()
		if parts == nil || err != nil { // not ours, or removed meanwhile
			continue
		}
		err = f(file{
			filepath.Join(d.path, e.Name()), strings.TrimSuffix(e.Name(), parts[2]), parts[1], parts[2] == suffix,
			info.ModTime(),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Dead returns the IDs of the locks whose processes have ended.
func (d *Directory) Dead() (ids []string, err error) {
	err = d.eachFile(func(f file) error {
		if f.boot == d.boot && f.locked {
			if id, free := try(f); free {
				ids = append(ids, id)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the witness directory: %w", err)
	}
	return ids, nil
}

// try reports whether no process has the lock. What cannot be tried is not free.
func try(f file) (id string, free bool) {
	// It opens for reading only, so that its own close is no event for the others.
	fd, err := unix.Open(f.path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", false
	}
	defer unix.Close(fd) //nolint:errcheck // it was only read
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return "", false
	}
	if err := flock(fd, unix.LOCK_SH); err != nil { // shared: several processes may look at a time
		return "", false
	}
	return fileID(f.name, &stat), true
}

// clean removes the files of ended processes after keepDead, and those of earlier boots.
func (d *Directory) clean(now time.Time) {
	seen := map[string]time.Time{}
	_ = d.eachFile(func(f file) error {
		if f.boot != d.boot {
			if f.modified.Before(d.booted) {
				_ = os.Remove(f.path)
			}
			return nil
		}
		if _, free := try(f); !free {
			return nil
		}
		first, ok := d.since[f.path]
		if !ok {
			first = now
		}
		if seen[f.path] = first; now.Sub(first) >= keepDead {
			if err := os.Remove(f.path); err == nil || errors.Is(err, os.ErrNotExist) {
				delete(seen, f.path)
			}
		}
		return nil
	})
	d.since = seen
}
