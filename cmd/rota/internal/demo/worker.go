package demo

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// worker is one `rota worker` process.
type worker struct {
	number  int
	pid     int
	process *os.Process
	log     string // the file that gets its output
	killed  bool   // by us
	leaving bool   // told to

	gone chan struct{} // closed when the process has ended
	err  error         // how; to be read after gone
}

func (w *worker) String() string { return fmt.Sprintf("worker %d", w.number) }

// startWorker starts `program worker -c rota.yaml` in the folder.
func startWorker(number int, program, folder string) (*worker, error) {
	w := &worker{number: number, log: filepath.Join(folder, fmt.Sprintf("worker-%d.log", number)), gone: make(chan struct{})}
	log, err := os.Create(w.log)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, "worker", "-c", configName)
	cmd.Dir, cmd.Env = folder, ownEnviron()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = dieWithParent()
	started := make(chan error, 1)
	go func() {
		// Linux ends the child when the thread that started it ends, so this goroutine keeps its thread until then.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(w.gone)
		err := cmd.Start()
		started <- err
		if err == nil {
			w.err = cmd.Wait()
		}
		_ = log.Close() // it was the child's to write to
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", w, err)
	}
	w.process, w.pid = cmd.Process, cmd.Process.Pid
	return w, nil
}

// ownEnviron is the environment without what would win over rota.yaml: with the user's ROTA_DATABASE the workers
// would go to the user's roster. What the tests say to the program is passed on.
func ownEnviron() []string {
	var list []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "ROTA_") || strings.HasPrefix(v, "ROTA_TEST_") {
			list = append(list, v)
		}
	}
	return list
}

// kill ends the process as a crash would.
func (w *worker) kill() {
	w.killed = true
	_ = w.process.Kill() // it fails if there is nobody to kill
}

// terminate asks the process to leave in order.
func (w *worker) terminate() {
	w.leaving = true
	_ = w.process.Signal(syscall.SIGTERM) // a process that has ended by itself is found out soon
}

func (w *worker) ended() bool {
	select {
	case <-w.gone:
		return true
	default:
		return false
	}
}

// failure is how the process ended and the last line that it wrote.
func (w *worker) failure() error {
	err := w.err
	if err == nil {
		err = errors.New("exit status 0")
	}
	text, readErr := os.ReadFile(w.log)
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	text = bytes.TrimSpace(text)
	last := string(text[bytes.LastIndexByte(text, '\n')+1:])
	if last == "" {
		return err
	}
	return fmt.Errorf("%w; its last words: %s", err, last)
}
