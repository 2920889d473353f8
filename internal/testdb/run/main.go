//go:build unix

// Command run runs a command with the database servers that the tests need:
//
//	go run ./internal/testdb/run -- go test ./...
//
// For each wanted kind of database (see package testdb) it uses the server whose URL is in the environment. If there
// is none, it starts a private server from installed binaries. If none are installed, it installs the packages first,
// on Debian and as root, and unpacks MySQL into the user's cache, on Debian. It prints the versions of the servers that
// it starts. The command gets the URLs in ROTA_TEST_POSTGRES_URL, ROTA_TEST_MYSQL_URL and ROTA_TEST_MARIADB_URL. Run
// passes signals on to the command and exits with its exit code. The private servers end with this process, also if it is
// killed. go run passes no signals on: where signals matter, build the program first, as the Makefile does.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/dutyrota/rota/internal/testdb"
)

func main() {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: run -- command [argument ...]")
		os.Exit(2)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code, err := run(args, signals)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// run returns the exit code of the command, or an error if it could not run it.
func run(args []string, signals <-chan os.Signal) (code int, err error) {
	kinds, err := missing()
	if err != nil {
		return 0, err
	}
	if err := install(kinds, signals); err != nil {
		return 0, err
	}
	command := exec.Command(args[0], args[1:]...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.Env = os.Environ()
	servers, err := testdb.StartServers(kinds)
	defer func() { err = errors.Join(err, servers.Close()) }()
	if err != nil {
		return 0, err
	}
	for kind, url := range servers.URLs {
		if err := printVersion(kind, url); err != nil {
			return 0, err
		}
		command.Env = append(command.Env, testdb.Variable(kind)+"="+url)
	}
	return exitCode(execute(command, signals))
}

// printVersion prints what a server says of its version: that of MySQL is the newest that the archive had.
func printVersion(kind, url string) error {
	if kind == testdb.Pooler {
		return nil
	}
	version, err := testdb.Version(url)
	if err != nil {
		return fmt.Errorf("ask %s for its version: %w", kind, err)
	}
	fmt.Fprintf(os.Stderr, "%s: %s\n", kind, version)
	return nil
}

// missing returns the kinds of database that need a server and have no URL.
func missing() (kinds []string, err error) {
	wanted, err := testdb.Wanted()
	for _, kind := range wanted {
		if v := testdb.Variable(kind); v != "" && os.Getenv(v) == "" {
			kinds = append(kinds, kind)
		}
	}
	return kinds, err
}

// execute runs the command to its end. Meanwhile it passes signals on to the command and its children. They are in a
// process group of their own, so that a Ctrl-C reaches them once, through this process.
func execute(command *exec.Cmd, signals <-chan os.Signal) error {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- command.Wait() }()
	for {
		select {
		case err := <-done:
			return err
		case s := <-signals:
			_ = syscall.Kill(-command.Process.Pid, s.(syscall.Signal)) // fails if it has just ended
		}
	}
}

// exitCode returns the exit code that a shell would report for err. It returns err if the command never ran.
func exitCode(err error) (int, error) {
	var exit *exec.ExitError
	switch {
	case !errors.As(err, &exit):
		return 0, err
	case exit.ExitCode() < 0:
		return 128 + int(exit.Sys().(syscall.WaitStatus).Signal()), nil
	default:
		return exit.ExitCode(), nil
	}
}
