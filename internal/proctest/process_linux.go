package proctest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Process is a process of a test. It ends with the test's own process at the latest.
type Process struct {
	PID   int
	Gone  chan struct{} // closed when the process has ended
	Err   error         // of its end; read it only after Gone
	Ended time.Time     // read it only after Gone

	t     testing.TB
	cmd   *exec.Cmd
	input io.Writer
	log   string
	holds int
}

// Start starts a program with variables, each as NAME=VALUE, beside those of this process. Its output goes to the file
// log. If the test fails, Start logs the end of it.
func Start(t testing.TB, program, log string, variables ...string) *Process {
	t.Helper()
	output, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{t: t, cmd: exec.Command(program), log: log, Gone: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), variables...)
	p.cmd.Stdout, p.cmd.Stderr = output, output
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	started := make(chan error, 1)
	go func() {
		// Linux ends the child when the thread that started it ends, so this goroutine keeps its thread until then.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.Gone)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.Err = p.cmd.Wait()
		}
		p.Ended = time.Now()
		_ = output.Close() // only the child has written to it
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	p.PID = p.cmd.Process.Pid
	t.Cleanup(func() { // also ends a stopped process
		_ = p.cmd.Process.Kill() // fails if the process has ended
		<-p.Gone
		if t.Failed() {
			t.Logf("process %d:\n%s", p.PID, p.Tail(40))
		}
	})
	return p
}

// Signal sends a signal.
func (p *Process) Signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("signal %s to process %d: %v", s, p.PID, err)
	}
}

// Kill ends the process as a crash does, and waits for its end.
func (p *Process) Kill() {
	p.t.Helper()
	p.Signal(syscall.SIGKILL)
	<-p.Gone
}

// Leave ends the process in order, and waits for its end.
func (p *Process) Leave() {
	p.t.Helper()
	p.Signal(syscall.SIGTERM)
	p.Left()
}

// Left waits for the end of a process that leaves in order.
func (p *Process) Left() {
	p.t.Helper()
	select {
	case <-p.Gone:
	case <-time.After(time.Minute):
		p.t.Fatalf("process %d has not left within a minute", p.PID)
	}
	if p.Err != nil {
		p.t.Errorf("process %d has ended with %v", p.PID, p.Err)
	}
}

// Say writes a line to the standard input of the process.
func (p *Process) Say(line string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.input, line); err != nil {
		p.t.Fatal(err)
	}
}

// Hold makes the next call stay at the Gate of the process until Release. Held reports whether a call does so by now.
func (p *Process) Hold() {
	p.t.Helper()
	p.holds++
	p.Say("hold")
}

// Held reports whether a call stays at the Gate since Hold.
func (p *Process) Held() bool {
	p.t.Helper()
	return strings.Count(p.Log(), staying) == p.holds
}

// Release lets the call go that stays at the Gate.
func (p *Process) Release() {
	p.t.Helper()
	p.Say("release")
}

// Stopped reports whether the process stands still, according to the kernel.
func (p *Process) Stopped() bool {
	p.t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
	if err != nil {
		p.t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(stat, []byte(") ")) // the state follows the name
	return bytes.HasPrefix(rest, []byte("T"))
}

// Alive reports whether the process has not ended yet.
func (p *Process) Alive() bool {
	select {
	case <-p.Gone:
		return false
	default:
		return true
	}
}

// Log returns the output of the process.
func (p *Process) Log() string {
	p.t.Helper()
	text, err := os.ReadFile(p.log)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// Tail returns the last lines of the output.
func (p *Process) Tail(lines int) string {
	p.t.Helper()
	all := strings.Split(strings.TrimSpace(p.Log()), "\n")
	// the driver repeats itself
	all = slices.DeleteFunc(all, func(line string) bool { return strings.HasPrefix(line, "[mysql]") })
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
