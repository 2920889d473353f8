package testdb

import (
	"bufio"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

//go:embed server.sh
var keeper []byte

// Server is a private throw-away server. When the process ends that started it, the server ends too and its data is
// removed: a keeper process waits for the end of a pipe from here. The Server needs no goroutine, which a test for
// leaks would report. Its methods must not be called concurrently.
type Server struct {
	url     string
	dir     string
	keeper  *exec.Cmd
	words   io.WriteCloser
	answers *bufio.Reader
}

// StartServer starts a private server of a kind of database from installed binaries and returns when it answers. Commits survive a crash of the server but not a crash of the machine.
func StartServer(kind string) (*Server, error) { return start(planOf(kind)) }

// plan describes a server to start.
type plan struct {
	kind string
	role string // the KIND for server.sh; defaults to kind
	env  []string
	url  func(port int) string
	port func() (int, error) // chooses a port; defaults to freePort
	disk int                 // the size of a disk of its own in megabytes, which takes root; 0 means no such disk
}

// planOf is the plan of a server of a kind, with variables for server.sh.
func planOf(kind string, env ...string) plan {
	return plan{kind: kind, env: env, url: func(port int) string { return fmt.Sprintf(engines[kind].url, port) }}
}

func start(p plan) (*Server, error) {
	if !Installed(p.kind) {
		return nil, notInstalled(p.kind)
	}
	if p.port == nil {
		p.port = freePort
	}
	for tries := 3; ; tries-- {
		dir, err := newDir()
		if err != nil {
			return nil, fmt.Errorf("create the directory of a %s server: %w", p.kind, err)
		}
		s, err := launch(p, dir)
		if err == nil {
			return s, nil
		}
		_ = os.RemoveAll(dir)
		if tries == 1 || !strings.Contains(err.Error(), portTaken) {
			return nil, fmt.Errorf("start a private %s server: %w", p.kind, err)
		}
	}
}

// portTaken is in the log of a server whose port another process took while the server was prepared. It is the text
// of the C library for EADDRINUSE.
const portTaken = "Address already in use"

// URL returns the URL of an empty database on the server. Its user has all rights and no password.
func (s *Server) URL() string { return s.url }

// Stop stops the server in order and keeps its data.
func (s *Server) Stop() error { return s.say("stop") }

// Kill stops the server as a crash does and keeps its data.
func (s *Server) Kill() error { return s.say("kill") }

// Start starts the server after [Server.Stop] or [Server.Kill], with the same port and data.
func (s *Server) Start() error { return s.say("start") }

// Save copies the data of a server after [Server.Stop]. [Server.Restore] brings it back.
func (s *Server) Save() error { return s.say("save") }

// Restore replaces the data of a server after [Server.Stop] or [Server.Kill] by what [Server.Save] has copied, as an
// operator does with a backup.
func (s *Server) Restore() error { return s.say("restore") }

// Freeze stops the processes of the server from running. Its host still takes connections and bytes for it. On
// PostgreSQL only new connections freeze, because each one has a process of its own.
func (s *Server) Freeze() error { return s.say("freeze") }

// Thaw ends what [Server.Freeze] has begun.
func (s *Server) Thaw() error { return s.say("thaw") }

// Fill fills the disk of a server that [OwnDisk] returned.
func (s *Server) Fill() error { return s.say("fill") }

// Free frees the space that [Server.Fill] used. The server may have ended meanwhile.
func (s *Server) Free() error { return s.say("free") }

// Close ends the server for good and removes its data.
func (s *Server) Close() error {
	_ = s.words.Close() // the keeper ends at the end of its input
	if err := s.keeper.Wait(); err != nil {
		return fmt.Errorf("close %s: %w", s.url, err)
	}
	return nil
}

func (s *Server) say(word string) error {
	if _, err := fmt.Fprintln(s.words, word); err != nil {
		return fmt.Errorf("%s %s: %w", word, s.url, err)
	}
	if err := s.ready(); err != nil {
		return fmt.Errorf("%s %s: %w", word, s.url, err)
	}
	return nil
}

func (s *Server) ready() error {
	answer, err := s.answers.ReadString('\n')
	if err == nil && answer == "ready\n" {
		return nil
	}
	log, _ := os.ReadFile(filepath.Join(s.dir, "log")) // without a log the message is shorter
	return errors.Join(fmt.Errorf("the keeper of the server answered %q; log of the server:\n%s",
		strings.TrimSpace(answer), log), err)
}

func launch(p plan, dir string) (*Server, error) {
	port, err := p.port()
	if err != nil {
		return nil, err
	}
	script := filepath.Join(dir, "keeper.sh")
	if err := os.WriteFile(script, keeper, 0o644); err != nil {
		return nil, err
	}
	cmd := exec.Command("/bin/sh", script)
	// Pass no environment on: a PGDATA or TMPDIR in it is for another server.
	cmd.Env = append([]string{
		"KIND=" + cmp.Or(p.role, p.kind), "DIR=" + dir, "PORT=" + strconv.Itoa(port), "LC_ALL=C",
		"PATH=" + keeperPath(p.kind),
	}, p.env...)
	if err := isolate(cmd, p, dir, script); err != nil {
		return nil, err
	}
	return converse(cmd, &Server{url: p.url(port), dir: dir, keeper: cmd})
}

// keeperPath returns the PATH of a keeper. The cache has no tools such as cp.
func keeperPath(kind string) string {
	dirs := append(searchPath(kind), filepath.SplitList(os.Getenv("PATH"))...)
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// converse starts the keeper and waits until its server answers.
func converse(cmd *exec.Cmd, s *Server) (*Server, error) {
	var err error
	if s.words, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	answers, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.answers = bufio.NewReader(answers)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if err := s.ready(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// freePort returns a port that is free now and probably stays free. It is below the ports that the kernel gives to
// outgoing connections: on such a port, a client that keeps dialling a stopped server could connect to itself.
func freePort() (int, error) {
	for {
		port := 20000 + rand.IntN(12000)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return 0, err
		}
		return port, l.Close()
	}
}

func notInstalled(kind string) error {
	return fmt.Errorf("no %s server for the tests: %s is unset and %s is not in PATH. Do one of these:\n"+
		"  make test                               installs it (on Debian, as root) and runs all tests\n"+
		"  docker compose up -d                    starts servers; set the variables that compose.yaml shows\n"+
		"  ROTA_TEST_DATABASES=sqlite go test ...  runs the tests on fewer databases",
		kind, engines[kind].variable, engines[kind].daemon)
}
