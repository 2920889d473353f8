package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// rota is the program, built of the working tree.
var rota string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "rota-deploy-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a folder of this test alone
	rota = filepath.Join(dir, "rota")
	build := exec.CommandContext(context.Background(), "go", "build", "-C", "../..", "-o", rota, "./cmd/rota")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build rota: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// process is a rota that runs.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	end  chan struct{}
	lock sync.Mutex
	log  bytes.Buffer // of both outputs
}

// start starts the program with arguments and with variables, and without those of this test. It ends with the test.
func start(t *testing.T, args, env []string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(rota, args...), end: make(chan struct{})} //nolint:noctx // the test signals it
	p.cmd.Env, p.cmd.Dir = append(env, "HOME=/nonexistent"), t.TempDir()
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.end)
		_ = p.cmd.Wait() // ProcessState has the exit code
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.end
		if t.Failed() {
			t.Logf("rota %s\n%s", strings.Join(args, " "), p.output())
		}
	})
	return p
}

// Write takes what the program writes.
func (p *process) Write(b []byte) (int, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.log.Write(b)
}

func (p *process) output() string {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.log.String()
}

var (
	probesAddress  = regexp.MustCompile(`"address":"([^"]+)".*"msg":"serving /livez and /readyz alone`)
	workerAddress  = regexp.MustCompile(`"address":"([^"]+)".*"msg":"serving /livez, /readyz, /metrics`)
	consoleAddress = regexp.MustCompile(`console of \w+: http://(\S+)/\n`)
)

// address waits until the program tells where it serves.
func (p *process) address(expression *regexp.Regexp) (found string) {
	p.t.Helper()
	eventually(p.t, "the program serves", func() bool {
		m := expression.FindStringSubmatch(p.output())
		if m != nil {
			found = m[1]
		}
		return m != nil
	})
	return strings.Replace(found, "[::]", "127.0.0.1", 1)
}

// wantExit waits for the end.
func (p *process) wantExit(code int) {
	p.t.Helper()
	select {
	case <-p.end:
	case <-time.After(time.Minute):
		p.t.Fatal("the program does not end")
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Errorf("exit code %d, want %d", got, code)
	}
}

func (p *process) signal() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Error(err)
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not come about that %s", what)
		}
	}
}

// get returns the status and the body of a page. The header is a name and its value.
func get(t *testing.T, url string, header ...string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(header) == 2 {
		r.Header.Set(header[0], header[1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}
