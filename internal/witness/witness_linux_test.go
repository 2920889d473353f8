package witness

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dutyrota/rota/internal/witness/witnesstest"
)

// The tests start this program again as a process that holds a lock.
const holderEnv = "WITNESS_TEST_DIRECTORY"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holderEnv); dir != "" {
		holdForTest(dir)
		return
	}
	os.Exit(m.Run())
}

// holdForTest holds a lock until its input ends. A line "child" makes it start a process that outlives it.
func holdForTest(path string) {
	d, err := Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	l, err := d.Hold()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(l.ID)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		child := exec.Command("sleep", "600")
		if err := child.Start(); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(child.Process.Pid)
	}
	l.Release()
}

// testDirectory opens an empty directory.
func testDirectory(t *testing.T) *Directory {
	t.Helper()
	d, err := Open(witnesstest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// holder is another process that holds a lock.
type holder struct {
	*exec.Cmd
	id  string
	in  io.WriteCloser
	out *bufio.Scanner
}

func startHolder(t *testing.T, d *Directory) *holder {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h := &holder{Cmd: exec.Command(exe)}
	h.Env = append(os.Environ(), holderEnv+"="+d.path)
	h.Stderr = os.Stderr
	out, err := h.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if h.in, err = h.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.kill)
	h.out = bufio.NewScanner(out)
	if h.id = h.line(t); !strings.Contains(h.id, "@") {
		t.Fatalf("the holder says %q", h.id)
	}
	return h
}

func (h *holder) line(t *testing.T) string {
	t.Helper()
	if !h.out.Scan() {
		t.Fatal("the holder has ended")
	}
	return h.out.Text()
}

func (h *holder) kill() {
	_ = h.Process.Kill()
	_ = h.Wait()
}

func mustDead(t *testing.T, d *Directory) []string {
	t.Helper()
	ids, err := d.Dead()
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// watching starts Watch and returns what it finds.
func watching(t *testing.T, d *Directory, own *Lock) <-chan error {
	t.Helper()
	found := make(chan error, 100)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.Watch(t.Context(), own, func(err error) { found <- err })
	}()
	t.Cleanup(func() { <-ended })
	return found
}

func receive(t *testing.T, found <-chan error) error {
	t.Helper()
	select {
	case err := <-found:
		return err
	case <-time.After(time.Minute):
		t.Fatal("the witness has found nothing within a minute")
		return nil
	}
}

func TestKilledProcessIsFound(t *testing.T) {
	t.Parallel()
	d := testDirectory(t)
	found := watching(t, d, nil)
	a, b := startHolder(t, d), startHolder(t, d)
	if ids := mustDead(t, d); len(ids) > 0 {
		t.Fatalf("two processes run, and the witness says that %v have ended", ids)
	}
	if err := a.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, found); err != nil {
		t.Fatal(err)
	}
	if ids := mustDead(t, d); !slices.Equal(ids, []string{a.id}) {
		t.Errorf("ended are %v, want %s", ids, a.id)
	}
	b.kill()
	if err := receive(t, found); err != nil {
		t.Fatal(err)
	}
	if ids := mustDead(t, d); len(ids) != 2 {
		t.Errorf("ended are %v, want both", ids)
	}
}

// A stopped process goes on later: its lock is no proof.
func TestStoppedProcessRuns(t *testing.T) {
	t.Parallel()
	d := testDirectory(t)
	h := startHolder(t, d)
	if err := h.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if ids := mustDead(t, d); len(ids) > 0 {
		t.Errorf("a stopped process counts as ended: %v", ids)
	}
}

// What a dealer has started goes on when its process is killed, and may still work for the queues.
func TestChildInheritsTheLock(t *testing.T) {
	t.Parallel()
	d := testDirectory(t)
	h := startHolder(t, d)
	if _, err := io.WriteString(h.in, "child\n"); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(h.line(t), &pid); err != nil {
		t.Fatal(err)
	}
	found := watching(t, d, nil)
	h.kill()
	if ids := mustDead(t, d); len(ids) > 0 {
		t.Errorf("a child runs, and its parent counts as ended: %v", ids)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, found); err != nil {
		t.Fatal(err)
	}
	if ids := mustDead(t, d); !slices.Equal(ids, []string{h.id}) {
		t.Errorf("ended are %v, want %s", ids, h.id)
	}
}

// A user who may open a lock file may lock it, and so delay an expiry. Only where several users run workers may others.
func TestModeOfLockFiles(t *testing.T) {
	t.Parallel()
	for mode, want := range map[os.FileMode]os.FileMode{0o700: 0o600, 0o755: 0o600, 0o777 | os.ModeSticky: 0o644, 0o775 | os.ModeSticky: 0o644} {
		path := witnesstest.Dir(t)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		d, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		l, err := d.Hold()
		if err != nil {
			t.Fatal(err)
		}
		defer l.Release()
		info, err := os.Stat(l.path)
		if err != nil || info.Mode().Perm()&^0o022 != want || d.Shared() != (want == 0o644) {
			t.Errorf("in a directory of mode %s a lock file has mode %v, want %s; shared: %t (%v)", mode, info.Mode(), want, d.Shared(), err)
		}
	}
}

// Another user could remove a file and make one of the same name without a lock.
func TestDirectoryThatOthersMayWriteIsRefused(t *testing.T) {
	t.Parallel()
	for _, mode := range []os.FileMode{0o777, 0o775, 0o757} {
		path := witnesstest.Dir(t)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); !errors.Is(err, ErrWritable) {
			t.Errorf("mode %s: %v, want ErrWritable", mode, err)
		}
	}
}

// A program that closes what it inherits drops the lock of its parent. What it starts is not covered, as doc.go says.
// It runs alone: processes that other tests start meanwhile would inherit the lock.
func TestGrandchildWithoutDescriptorsIsNotCovered(t *testing.T) {
	d := testDirectory(t)
	l, err := d.Hold()
	if err != nil {
		t.Fatal(err)
	}
	// The shell closes the lock in what it starts, as Python's subprocess does, and ends.
	cmd := exec.Command("sh", "-c", fmt.Sprintf("sleep 600 %d>&- >&- 2>&- & echo $!", l.fd))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(out), &pid); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // the process of the test
	if err := unix.Close(l.fd); err != nil { // as the end of this process does
		t.Fatal(err)
	}
	if ids := mustDead(t, d); !slices.Equal(ids, []string{l.ID}) {
		t.Errorf("ended are %v, want %s: say in doc.go what is covered", ids, l.ID)
	}
}

func TestReleasedLockIsNoDeath(t *testing.T) {
	t.Parallel()
	d := testDirectory(t)
	h := startHolder(t, d)
	if err := h.in.Close(); err != nil { // it releases the lock and ends
		t.Fatal(err)
	}
	if err := h.Wait(); err != nil {
		t.Fatal(err)
	}
	if ids := mustDead(t, d); len(ids) > 0 {
		t.Errorf("a process that has left counts as ended: %v", ids)
	}
	if left, err := os.ReadDir(d.path); err != nil || len(left) > 0 {
		t.Errorf("it left %v behind (%v)", left, err)
	}
}

// Another file with the name of the lock file has another inode, as long as the process runs.
func TestCopiedFileProvesNothing(t *testing.T) {
	t.Parallel()
	d := testDirectory(t)
	l, err := d.Hold()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	for range 100 {
		if err := os.Remove(l.path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(l.path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if ids := mustDead(t, d); len(ids) != 1 || ids[0] == l.ID {
			t.Fatalf("a copy of the file %s says that %v have ended", l.ID, ids)
		}
	}
}

// A witness that looks while a process makes its file must not see it free: the process registers with it a moment later.
func TestFileIsLockedBeforeItHasItsName(t *testing.T) {
	t.Parallel()
	d := testDirectory(t)
	var mu sync.Mutex
	ended := map[string]bool{}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			ids, err := d.Dead()
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			for _, id := range ids {
				ended[id] = true
			}
			mu.Unlock()
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	for range 2000 {
		l, err := d.Hold()
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		if ended[l.ID] {
			t.Errorf("%s counted as ended before it was held", l.ID)
		}
		mu.Unlock()
		l.Release()
	}
	close(stop)
	<-stopped
}

func TestOtherFileSystemsAreRefused(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/proc", "/sys"} {
		if _, err := Open(path); !errors.Is(err, ErrFileSystem) {
			t.Errorf("Open(%s): %v, want ErrFileSystem", path, err)
		}
	}
}

func TestDirectoryOfTwoHostsIsRefused(t *testing.T) {
	t.Parallel()
	d := testDirectory(t)
	other := filepath.Join(d.path, "01234567-89ab-cdef-0123-456789abcdef.0123456789abcdef.lock")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(d.path); !errors.Is(err, ErrShared) {
		t.Errorf("another boot has written into the directory since this one began: %v, want ErrShared", err)
	}
	if ids := mustDead(t, d); len(ids) > 0 {
		t.Errorf("a file of another boot counts as ended: %v", ids)
	}
	before := d.booted.Add(-time.Hour)
	if err := os.Chtimes(other, before, before); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(d.path); err != nil {
		t.Errorf("the file is left from an earlier boot: %v", err)
	}
	d.clean(time.Now())
	if _, err := os.Stat(other); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file of an earlier boot is still there (%v)", err)
	}
}

func TestRemovedDirectoryIsReported(t *testing.T) {
	t.Parallel()
	d := testDirectory(t)
	l, err := d.Hold()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	found := watching(t, d, l)
	if err := os.RemoveAll(d.path); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, found); err == nil {
		t.Error("the directory is gone, and the witness says that a process has ended")
	}
}

// systemd removes the directory when the last worker stops, and makes it anew for the next one.
func TestDirectoryIsMadeAnew(t *testing.T) {
	t.Parallel()
	d := testDirectory(t)
	first, err := d.subscribe()
	if err != nil {
		t.Fatal(err)
	}
	defer first.stop()
	if !first.current(d.path) {
		t.Error("the events of a new subscription are not those of the directory")
	}
	if err := os.Rename(d.path, d.path+".old"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(d.path + ".old") })
	if first.current(d.path) {
		t.Error("there is no directory, and its events count as current")
	}
	if err := os.Mkdir(d.path, 0o700); err != nil {
		t.Fatal(err)
	}
	if first.current(d.path) {
		t.Error("the events are those of another directory")
	}
}

func TestRemovedLockFileIsReported(t *testing.T) {
	t.Parallel()
	d := testDirectory(t)
	l, err := d.Hold()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	if err := l.check(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(l.path); err != nil {
		t.Fatal(err)
	}
	if err := l.check(); !errors.Is(err, ErrRemoved) {
		t.Errorf("the file is gone: %v, want ErrRemoved", err)
	}
	if err := os.WriteFile(l.path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.check(); !errors.Is(err, ErrRemoved) {
		t.Errorf("another file has its name: %v, want ErrRemoved", err)
	}
}

// The processes that have not looked yet find the file of an ended process for a while.
func TestFilesOfEndedProcessesAreRemovedLater(t *testing.T) {
	t.Parallel()
	d := testDirectory(t)
	live, ended := startHolder(t, d), startHolder(t, d)
	ended.kill()
	now := time.Now()
	d.clean(now)
	if ids := mustDead(t, d); !slices.Equal(ids, []string{ended.id}) {
		t.Errorf("ended are %v, want %s", ids, ended.id)
	}
	d.clean(now.Add(keepDead))
	if ids := mustDead(t, d); len(ids) > 0 {
		t.Errorf("after %s ended are %v, want none", keepDead, ids)
	}
	left, err := os.ReadDir(d.path)
	if name, _, _ := strings.Cut(live.id, "@"); err != nil || len(left) != 1 || !strings.HasPrefix(left[0].Name(), name) {
		t.Errorf("left are %v (%v), want the file of the process that runs", left, err)
	}
}

func TestFullDirectory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "full")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("witness", path, "tmpfs", 0, "nr_inodes=2"); err != nil {
		t.Skipf("no right to mount: %v", err)
	}
	defer unix.Unmount(path, unix.MNT_DETACH) //nolint:errcheck // the machine ends with the test
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	l, err := d.Hold()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	if _, err := d.Hold(); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("no file fits any more: %v, want ENOSPC", err)
	}
	if ids := mustDead(t, d); len(ids) > 0 {
		t.Errorf("ended are %v", ids)
	}
}
