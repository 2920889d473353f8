//go:build unix

package program

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/dutyrota/rota/cmd/rota/internal/environ"
)

// buffer is a log that several goroutines write.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func newCommand(t *testing.T) (*Command, *buffer) {
	t.Helper()
	log, out := logrus.New(), &buffer{}
	log.SetOutput(out)
	c, err := NewCommand([]string{os.Args[0], beProgram}, nil, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, out
}

func (c *Command) mustExecute(t *testing.T, keys ...string) {
	t.Helper()
	if got := describe(c.Ask(t.Context(), batch(keys...))); got != "" {
		t.Fatalf("%v: %s", keys, got)
	}
}

// pids returns the processes of the program.
func (c *Command) pids() (list []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := range c.all {
		list = append(list, p.cmd.Process.Pid)
	}
	return list
}

// alive reports whether a process runs. A zombie does not.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	if err != nil {
		return syscall.Kill(pid, 0) == nil
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timeout: %s", what)
		}
	}
}

// One process executes one batch after the other, and each batch beside others has its own.
func TestProcessesAreKept(t *testing.T) {
	t.Parallel()
	c, _ := newCommand(t)
	for range 10 {
		c.mustExecute(t, "a", "b")
	}
	if pids := c.pids(); len(pids) != 1 {
		t.Fatalf("the processes are %v, want one", pids)
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if _, err := c.Ask(t.Context(), batch("sleep 300ms")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if pids := c.pids(); len(pids) != 3 {
		t.Errorf("the processes are %v, want three", pids)
	}
	c.Close()
	if _, err := c.Ask(t.Context(), batch("a")); err == nil {
		t.Error("a batch is executed after Close")
	}
}

// A process that is killed because its context has ended gets no other batch, although it has replied.
func TestKilledAtItsReply(t *testing.T) {
	t.Parallel()
	c, _ := newCommand(t)
	c.mustExecute(t, "a")
	ctx, cancel := context.WithCancel(t.Context())
	p, err := c.take(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	p.kill()
	c.put(ctx, p)
	c.mustExecute(t, "b")
}

// When its context ends, the process dies with all that it has started, before Ask returns.
func TestKilledWithItsChildren(t *testing.T) {
	t.Parallel()
	c, _ := newCommand(t)
	file := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancelCause(t.Context())
	lost := errors.New("the queue is lost")
	var child int
	go func() {
		eventually(t, "the grandchild runs", func() bool {
			text, err := os.ReadFile(file)
			child, _ = strconv.Atoi(string(text))
			return err == nil && child > 0
		})
		cancel(lost)
	}()
	_, err := c.Ask(ctx, batch("child "+file))
	if !errors.Is(err, lost) {
		t.Errorf("error %v, want %v", err, lost)
	}
	if pids := c.pids(); len(pids) > 0 {
		t.Errorf("the processes are %v, want none", pids)
	}
	eventually(t, "the grandchild is dead", func() bool { return !alive(child) })
	c.mustExecute(t, "a") // without a pause: the program is not at fault
}

// A process that ends in a batch fails the batch with its status. A new one starts for the next batch.
func TestEndsInABatch(t *testing.T) {
	t.Parallel()
	c, _ := newCommand(t)
	c.mustExecute(t, "a")
	_, err := c.Ask(t.Context(), batch("a", "exit"))
	want := filepath.Base(os.Args[0]) + " be-program: the program has ended before its reply: exit status 3"
	if errorText(err) != want {
		t.Errorf("error %v, want %s", err, want)
	}
	c.mustExecute(t, "a")
}

// A process that is killed between two batches costs no batch.
func TestKilledBetweenBatches(t *testing.T) {
	t.Parallel()
	c, log := newCommand(t)
	c.mustExecute(t, "a")
	pid := c.pids()[0]
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	p := c.idle[0]
	c.mu.Unlock()
	<-p.exited
	c.mustExecute(t, "a")
	if !strings.Contains(log.String(), "the program has ended between two batches") || !strings.Contains(log.String(), "signal: killed") {
		t.Errorf("the log does not say it:\n%s", log)
	}
}

// The pause before a start doubles while processes end without a reply.
func TestRestartsPause(t *testing.T) {
	t.Parallel()
	c, _ := newCommand(t)
	pauses := map[int]time.Duration{0: firstPause, 3: 8 * firstPause, 8: mostPause}
	for i := range 9 {
		c.mu.Lock()
		before := time.Now()
		c.delayLocked()
		least, most := time.Until(c.startAt), c.startAt.Sub(before)
		c.mu.Unlock()
		if want, ok := pauses[i]; ok && (want < least || want > most) {
			t.Errorf("pause %d takes %s to %s, want %s", i, least, most, want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Ask(ctx, batch("a")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("in a pause of 10 s: error %v, want the end of the context", err)
	}
	c.mu.Lock()
	c.startAt = time.Time{}
	c.mu.Unlock()
	c.mustExecute(t, "a")
	if c.failures != 0 || !c.startAt.IsZero() {
		t.Error("a reply does not end the pauses")
	}
}

// A reply that is wrong or too long fails the batch, and the process is replaced, as its next reply may be wrong, too.
func TestWrongReplyReplacesTheProcess(t *testing.T) {
	t.Parallel()
	c, _ := newCommand(t)
	for key, want := range map[string]string{
		"print hello":                           `the reply "hello\n" is not as the protocol says`,
		"flood":                                 "the reply is longer than 73728 bytes",
		`print {"batch":"other","fenced":true}`: `the reply is for batch "other"`,
	} {
		if _, err := c.Ask(t.Context(), batch(key)); !strings.Contains(errorText(err), want) {
			t.Errorf("%s: error %v, want %s", key, err, want)
		}
		if pids := c.pids(); len(pids) > 0 {
			t.Errorf("%s: the processes are %v, want none", key, pids)
		}
		c.mustExecute(t, "a")
	}
}

// The lines of stderr are in the log with the name of the program, in pieces if they are long.
func TestStderrIsLogged(t *testing.T) {
	t.Parallel()
	c, log := newCommand(t)
	c.mustExecute(t, "say hello", "mumble")
	c.Close()
	if text := log.String(); !strings.Contains(text, "msg=hello") || strings.Count(text, "y") < 100_000 ||
		!strings.Contains(text, `program="`+filepath.Base(os.Args[0])+` be-program"`) || strings.Count(text, "\n") < 12 {
		t.Errorf("the log is\n%.3000s", text)
	}
}

// A program that floods stderr does not flood the log, which says how many lines it lacks.
func TestStderrIsBounded(t *testing.T) {
	t.Parallel()
	c, log := newCommand(t)
	c.mustExecute(t, "shout")
	c.Close()
	logged, leftOut := strings.Count(log.String(), "msg=z"), 0
	for _, m := range regexp.MustCompile(`(\d+) lines of stderr are left out`).FindAllStringSubmatch(log.String(), -1) {
		n, _ := strconv.Atoi(m[1])
		leftOut += n
	}
	if leftOut == 0 || logged+leftOut != shouted {
		t.Errorf("%d lines are logged and %d left out, want %d together", logged, leftOut, shouted)
	}
}

// A program gets the variables that all get and those that its dealer names, and no other one.
func TestEnvironment(t *testing.T) {
	for name, value := range map[string]string{"LC_ALL": "C", "HOOK_SECRET": "x", "ROTA_DATABASE": "x", "NOTIFY_SOCKET": "x", "SHOP": "y", "PATH": "/bin"} {
		t.Setenv(name, value)
	}
	env, err := environment([]string{"SHOP"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, entry := range env {
		got[entry] = true
		if name, _, _ := strings.Cut(entry, "="); !environ.Passed(name) && name != "SHOP" && name != "ROTA_PROTOCOL" {
			t.Errorf("the program gets %s", entry)
		}
	}
	for _, want := range []string{"PATH=/bin", "LC_ALL=C", "SHOP=y", "ROTA_PROTOCOL=1"} {
		if !got[want] {
			t.Errorf("%s is not in %v", want, env)
		}
	}
	if _, err := environment([]string{"NO_SUCH_VARIABLE"}); errorText(err) != "env (NO_SUCH_VARIABLE): the environment has no such variable" {
		t.Errorf("error %v", err)
	}
	c, log := newCommand(t)
	c.mustExecute(t, "env")
	c.Close()
	if text := log.String(); !strings.Contains(text, "ROTA_PROTOCOL=1") || strings.Contains(text, "HOOK_SECRET") {
		t.Errorf("the program has another environment:\n%s", text)
	}
}

// A program that is missing is told before a worker starts.
func TestNoSuchProgram(t *testing.T) {
	t.Parallel()
	if _, err := NewCommand([]string{"no-such-program"}, nil, logrus.New()); errorText(err) != `command: exec: "no-such-program": executable file not found in $PATH` {
		t.Errorf("error %v", err)
	}
}

// A program that does not end at the end of its stdin is killed.
func TestCloseKills(t *testing.T) {
	t.Parallel()
	log, out := logrus.New(), &buffer{}
	log.SetOutput(out)
	c, err := NewCommand([]string{"sleep", "3600"}, nil, log)
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.put(t.Context(), p)
	begun := time.Now()
	c.Close()
	if took := time.Since(begun); took < endPatience || !p.hasEnded() || !strings.Contains(out.String(), "the program was killed") {
		t.Errorf("after %s ended %t, log\n%s", took, p.hasEnded(), out)
	}
}
