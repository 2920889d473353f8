package witness

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Watch calls found(nil) when a process has ended whose lock was in the directory, within milliseconds, until ctx is
// done. Dead then has it. Watch calls found with an error when the directory cannot be read any more, or the file of
// own was removed: once for each text. It also removes files that nobody needs. own may be nil. Watch may be called
// once at a time.
func (d *Directory) Watch(ctx context.Context, own *Lock, found func(error)) {
	l := looker{d: d, own: own, found: found}
	every := slowPoll
	events, err := d.subscribe()
	if err != nil { // the number of inotify instances is limited
		every = fastPoll
	}
	defer func() { events.stop() }()
	l.look()
	for tick := time.NewTicker(every); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
			if every == slowPoll && !events.current(d.path) { // another directory has its name now
				events.stop()
				events, _ = d.subscribe() // nil while there is none
			}
			l.look()
			d.clean(time.Now())
		case <-events.channel():
			for _, pause := range looks {
				time.Sleep(pause)
				l.look()
			}
		}
	}
}

// looker remembers what a watch has found.
type looker struct {
	d     *Directory
	own   *Lock
	found func(error)

	known   []string // the ended processes of the last look
	failure string   // what it could not do; empty: nothing
}

func (l *looker) look() {
	ids, err := l.d.Dead()
	if err == nil && l.own != nil {
		err = l.own.check()
	}
	if slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(l.known, id) }) {
		l.found(nil)
	}
	l.known = ids
	if err == nil {
		l.failure = ""
	} else if l.failure != err.Error() {
		l.failure = err.Error()
		l.found(err)
	}
}

// events are the events of a directory. The nil value has none.
type events struct {
	signal chan struct{}
	file   *os.File
	dir    os.FileInfo
}

// subscribe returns events, which come when a process closes the file that it holds, which it does at its end, and
// when a file or the directory is removed.
func (d *Directory) subscribe() (*events, error) {
	dir, err := os.Stat(d.path)
	if err != nil {
		return nil, err
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("inotify: %w", err)
	}
	e := &events{signal: make(chan struct{}, 1), file: os.NewFile(uintptr(fd), "inotify"), dir: dir}
	if _, err := unix.InotifyAddWatch(fd, d.path,
		unix.IN_CLOSE_WRITE|unix.IN_DELETE|unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_ONLYDIR); err != nil {
		e.stop()
		return nil, fmt.Errorf("inotify: watch %s: %w", d.path, err)
	}
	go e.read()
	return e, nil
}

func (e *events) read() {
	buffer := make([]byte, 64<<10)
	for {
		if _, err := e.file.Read(buffer); err != nil { // closed by stop
			return
		}
		select {
		case e.signal <- struct{}{}:
		default:
		}
	}
}

// channel receives after an event.
func (e *events) channel() <-chan struct{} {
	if e == nil {
		return nil
	}
	return e.signal
}

// current reports whether the events are those of the directory that has the name now.
func (e *events) current(path string) bool {
	dir, err := os.Stat(path)
	return e != nil && err == nil && os.SameFile(e.dir, dir)
}

func (e *events) stop() {
	if e != nil {
		_ = e.file.Close()
	}
}
