//go:build unix

package daemon

import (
	"os"

	"golang.org/x/sys/unix"
)

// unread reports whether nobody reads what is written to the file.
func unread(f *os.File) (gone bool) {
	conn, err := f.SyscallConn() // Fd would make the file a blocking one
	if err != nil {
		return false
	}
	err = conn.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd)}}
		_, err := unix.Poll(fds, 0)
		gone = err == nil && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	})
	return err == nil && gone
}
