package witness

import (
	"errors"
	"regexp"
	"time"
)

// The errors of Open.
var (
	// ErrUnsupported says that this system has no witness.
	ErrUnsupported = errors.New("a witness needs Linux")
	// ErrFileSystem says that the directory is on a file system that is not known to be local to this host.
	ErrFileSystem = errors.New("the file system is not known to be local")
	// ErrShared says that another host writes into the directory.
	ErrShared = errors.New("another host writes into the directory")
	// ErrWritable says that another user may remove or replace the files of the directory.
	ErrWritable = errors.New("other users may write into the directory, and it has no sticky bit")
	// ErrRemoved says that the lock file of this process is gone, so that no process can prove its end.
	ErrRemoved = errors.New("the lock file of this process was removed")
)

const (
	suffix  = ".lock"
	unnamed = ".new" // of a file that is not locked yet
	// keepDead is how long the file of an ended process stays, for the processes that have not looked.
	keepDead     = time.Minute
	slowPoll     = 10 * time.Second       // in case that an event is missing
	fastPoll     = 250 * time.Millisecond // without events
	lockPatience = time.Second            // for the lock on a new file
)

// looks are the pauses before each look after an event, which comes before the kernel has released the lock.
var looks = []time.Duration{
	0, time.Millisecond, 2 * time.Millisecond, 4 * time.Millisecond, 8 * time.Millisecond,
	16 * time.Millisecond, 32 * time.Millisecond, 64 * time.Millisecond, 128 * time.Millisecond,
}

// fileName matches the name of a lock file: the boot, 16 hexadecimal digits, and the suffix.
var fileName = regexp.MustCompile(`^([0-9a-f-]{36})\.[0-9a-f]{16}(\.lock|\.new)$`)
