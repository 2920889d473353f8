package witness

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Watch calls found(nil) when a process has ended whose lock was in the directory, within milliseconds, until ctx is done.
// Dead then has it. Watch calls found with an error when the directory cannot be watched any more, or the file of own was
// removed: once for each text. It also removes files that nobody needs. own may be nil. Watch may be called once at a time.
func (d *Directory) Watch(ctx context.Context, own *Lock, found func(error)) {
	closed, stop, err := d.closeEvents()
	defer func() { stop() }()
	every := slowPoll
	if err != nil { // the number of inotify instances is limited
		every = fastPoll
	}
	var known []string
	var failure string
	look := func() {
		ids, err := d.Dead()
		if err == nil && own != nil {
			err = own.check()
		}
		if slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(known, id) }) {
			found(nil)
		}
		known = ids
		if err == nil {
			failure = ""
		} else if failure != err.Error() {
			failure = err.Error()
			found(err)
		}
	}
	look()
	for tick := time.NewTicker(every); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
			look()
			d.clean(time.Now())
			if failure != "" && every == slowPoll { // the directory may be another one with the same name
				stop()
				closed, stop, _ = d.closeEvents() // nil after an error
			}
		case <-closed:
			for _, pause := range looks {
				time.Sleep(pause)
				look()
			}
		}
	}
}

// closeEvents returns a channel that receives when a process closes the file that it holds, which it does at its end, and
// when a file or the directory is removed.
func (d *Directory) closeEvents() (closed <-chan struct{}, stop func(), err error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, func() {}, fmt.Errorf("inotify: %w", err)
	}
	events := os.NewFile(uintptr(fd), "inotify")
	if _, err := unix.InotifyAddWatch(fd, d.path, unix.IN_CLOSE_WRITE|unix.IN_DELETE|unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_ONLYDIR); err != nil {
		_ = events.Close()
		return nil, func() {}, fmt.Errorf("inotify: watch %s: %w", d.path, err)
	}
	signal := make(chan struct{}, 1)
	go func() {
		buffer := make([]byte, 64<<10)
		for {
			if _, err := events.Read(buffer); err != nil { // closed by stop
				return
			}
			select {
			case signal <- struct{}{}:
			default:
			}
		}
	}()
	return signal, func() { _ = events.Close() }, nil
}
