package program

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
)

// process is a running program. One goroutine at a time asks it.
type process struct {
	cmd    *exec.Cmd
	in     *os.File // its stdin
	out    *os.File // its stdout
	lines  *bufio.Reader
	log    logrus.FieldLogger
	exited chan struct{} // closed when the process has ended, and err is set
	logged chan struct{} // closed at the end of its stderr
	err    error         // of Wait

	mu     sync.Mutex
	reaped bool // its id may belong to another process by now
}

// The longest pause between the death of a process and the end of what holds its stderr.
const stderrPatience = time.Second

// start starts a program with an environment in a process group of its own.
func start(args, env []string, log logrus.FieldLogger) (*process, error) {
	p := &process{cmd: exec.Command(args[0], args[1:]...), exited: make(chan struct{}), logged: make(chan struct{})}
	p.cmd.Env = env
	lead(p.cmd)
	files, err := pipes(3)
	if err != nil {
		return nil, err
	}
	p.cmd.Stdin, p.in = files[0].r, files[0].w
	p.out, p.cmd.Stdout = files[1].r, files[1].w
	p.lines = bufio.NewReaderSize(p.out, 64<<10)
	stderr := files[2].r
	p.cmd.Stderr = files[2].w
	started := make(chan error)
	go p.run(started)
	err = <-started
	for _, file := range []*os.File{files[0].r, files[1].w, files[2].w} {
		_ = file.Close() // the process has its own
	}
	if err != nil {
		for _, file := range []*os.File{p.in, p.out, stderr} {
			_ = file.Close()
		}
		return nil, err
	}
	p.log = log.WithField("pid", p.cmd.Process.Pid)
	go p.copyStderr(stderr)
	return p, nil
}

type pipe struct{ r, w *os.File }

func pipes(n int) (list []pipe, err error) {
	for range n {
		r, w, err := os.Pipe()
		if err != nil {
			for _, p := range list {
				_, _ = p.r.Close(), p.w.Close()
			}
			return nil, err
		}
		list = append(list, pipe{r, w})
	}
	return list, nil
}

// run starts the process and waits for its end. It keeps its thread, because Linux kills the process when the thread
// that has started it ends.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	started <- nil
	p.err = p.cmd.Wait()
	p.mu.Lock()
	p.reaped = true
	killGroup(p.cmd) // what it has started: nothing waits for that, and it may hold the pipes
	p.mu.Unlock()
	close(p.exited)
	collectGroup(p.cmd)
}

// mostLines is how many lines of stderr are logged in a second: a program that floods it would fill the disk.
const mostLines = 1_000

// copyStderr logs the lines of stderr.
func (p *process) copyStderr(stderr *os.File) {
	const longest = 8 << 10
	defer close(p.logged)
	defer func() { _ = stderr.Close() }()
	go func() {
		<-p.exited
		select {
		case <-p.logged:
		case <-time.After(stderrPatience):
			_ = stderr.Close() // a process outside of the group holds the other end
		}
	}()
	var since time.Time
	written := 0 // lines since then
	endSecond := func() {
		if n := written - mostLines; n > 0 {
			p.log.Warnf("%d lines of stderr are left out: at most %d are logged in a second", n, mostLines)
		}
		since, written = time.Now(), 0
	}
	defer endSecond()
	for lines := bufio.NewReaderSize(stderr, longest); ; {
		line, err := lines.ReadSlice('\n') // in pieces, if it is longer
		if time.Since(since) >= time.Second {
			endSecond()
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 {
			if written++; written <= mostLines {
				p.log.Info(string(line))
			}
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// ask sends a request and returns the line of the reply, which is not longer than the limit.
func (p *process) ask(ctx context.Context, request []byte, limit int) (line []byte, err error) {
	stop := context.AfterFunc(ctx, p.kill)
	defer stop()
	if _, err := p.in.Write(append(request, '\n')); err != nil {
		return nil, err
	}
	return p.readLine(limit)
}

// errLong is the error of a reply that is not read to its end.
type errLong int

func (e errLong) Error() string { return fmt.Sprintf("the reply is longer than %d bytes", int(e)) }

func (p *process) readLine(limit int) (line []byte, err error) {
	for {
		part, err := p.lines.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > limit:
			return nil, errLong(limit)
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}

// explain kills the process after a failed request, and returns why it has failed.
func (p *process) explain(ctx context.Context, err error) error {
	if ctx.Err() == nil && !errors.As(err, new(errLong)) {
		select { // it ends by itself, and its status says why
		case <-p.exited:
			return fmt.Errorf("the program has ended before its reply: %s", p.status())
		case <-time.After(time.Second):
		}
	}
	p.kill()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("the program was killed: %w", context.Cause(ctx))
	case errors.Is(err, io.EOF):
		return errors.New("the program has closed its stdout before its reply")
	}
	return err
}

func (p *process) hasEnded() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// status says how the process has ended.
func (p *process) status() string {
	if p.err == nil {
		return "exit status 0"
	}
	return p.err.Error()
}

// kill kills the process group, and unblocks what reads or writes.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		killGroup(p.cmd)
	}
	_, _ = p.in.Close(), p.out.Close() // an error means that they are closed
}

// await waits for the end of a process that was killed or has ended. It does not wait for ever: a process in a system
// call that hangs does not end.
func (p *process) await() {
	select {
	case <-p.exited:
	case <-time.After(endPatience):
		p.log.Error("the program was killed and does not end")
		return
	}
	p.kill()
	<-p.logged
}

// end ends the input of a process that has no batch, and waits for its end.
func (p *process) end() {
	_ = p.in.Close()
	select {
	case <-p.exited:
	case <-time.After(endPatience):
		p.log.Warnf("the program was killed: it has not ended within %s of the end of its stdin", endPatience)
		p.kill()
	}
	p.await()
}
