//go:build unix

package main

import (
	"bufio"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/testdb"
)

// TestMain is also the main function of the processes that the tests start.
func TestMain(m *testing.M) {
	if os.Getenv("RUN_MAIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

// self is a command that runs this program without the URL of any server.
func self(args ...string) *exec.Cmd {
	command := exec.Command(os.Args[0], args...)
	command.Env = append(os.Environ(), "RUN_MAIN=yes", "ROTA_TEST_POSTGRES_URL=", "ROTA_TEST_MYSQL_URL=",
		"ROTA_TEST_MARIADB_URL=")
	return command
}

func TestExitCode(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		databases string
		args      []string
		code      int
		output    string // is in the output
	}{
		{"ends well", "sqlite", []string{"--", "echo", "well"}, 0, "well"},
		{"fails", "sqlite", []string{"sh", "-c", "exit 7"}, 7, ""},
		{"is killed", "sqlite", []string{"--", "sh", "-c", "kill -KILL $$"}, 137, ""},
		{"is not there", "sqlite", []string{"--", "no-such-command"}, 1, "no-such-command"},
		{"is not given", "sqlite", []string{"--"}, 2, "usage"},
		{"unknown database", "oracle", []string{"--", "true"}, 1, `"oracle"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			command := self(test.args...)
			command.Env = append(command.Env, "ROTA_TEST_DATABASES="+test.databases)
			output, _ := command.CombinedOutput() // its error is the exit code
			if got := command.ProcessState.ExitCode(); got != test.code {
				t.Errorf("exit code %d, want %d", got, test.code)
			}
			if !strings.Contains(string(output), test.output) {
				t.Errorf("no %s in the output:\n%s", test.output, output)
			}
		})
	}
}

func TestGivenServersAreUsed(t *testing.T) {
	t.Parallel()
	const given = "postgres://here mysql://there mysql://elsewhere"
	command := self("--", "sh", "-c", `echo "$ROTA_TEST_POSTGRES_URL $ROTA_TEST_MYSQL_URL $ROTA_TEST_MARIADB_URL"`)
	command.Env = append(command.Env, "ROTA_TEST_POSTGRES_URL=postgres://here", "ROTA_TEST_MYSQL_URL=mysql://there",
		"ROTA_TEST_MARIADB_URL=mysql://elsewhere")
	output, err := command.Output()
	if got := strings.TrimSpace(string(output)); err != nil || got != given {
		t.Errorf("the command sees %s, want %s (%v)", got, given, err)
	}
}

func TestServersEndWithTheCommand(t *testing.T) {
	t.Parallel()
	for signal, code := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGINT: 130, syscall.SIGKILL: -1} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			command, servers := start(t)
			if err := command.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			_ = command.Wait() // its error is the exit code
			if got := command.ProcessState.ExitCode(); got != code {
				t.Errorf("exit code %d, want %d", got, code)
			}
			for _, server := range servers {
				gone(t, server)
			}
		})
	}
}

// start starts this program with private servers and a long-running command. It returns the addresses of the
// servers.
func start(t *testing.T) (command *exec.Cmd, servers []string) {
	t.Helper()
	kinds := slices.DeleteFunc(testdb.Kinds(t), func(kind string) bool { return !testdb.Installed(kind) })
	if len(kinds) == 0 {
		t.Skip("no server is installed here")
	}
	command = self("--", "sh", "-c", `echo $$ $ROTA_TEST_POSTGRES_URL $ROTA_TEST_MYSQL_URL $ROTA_TEST_MARIADB_URL; exec sleep 1000`)
	command.Env = append(command.Env, "ROTA_TEST_DATABASES="+strings.Join(kinds, ","))
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(line, &pid); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) }) // the command outlives a SIGKILL of ours
	for _, server := range strings.Fields(line)[1:] {
		u, err := url.Parse(server)
		if err != nil {
			t.Fatal(err)
		}
		servers = append(servers, u.Host)
	}
	return command, servers
}

// gone waits until no process listens at the address.
func gone(t *testing.T, addr string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		_ = conn.Close()
	}
	t.Errorf("%s still listens after a minute", addr)
}
