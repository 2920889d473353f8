package main

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/dutyrota/rota/console"
)

// The console is a process that says where it serves, shows the roster of the file, and ends with exit 0 after SIGTERM.
func TestConsoleProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	url := "sqlite:" + dir + "/rota.db"
	if out, err := rota(t.Context(), dir, "migrate", "up", "--database", url).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := rota(t.Context(), dir, "console", "--database", url, "--own-sign", "STAGE", "--http", "127.0.0.1:0")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	address := regexp.MustCompile(`http://[0-9.:]+/`).FindString(line)
	if err != nil || address == "" || !strings.Contains(line, "STAGE") {
		t.Fatalf("%v: %q", err, line)
	}
	eventually(t, "the page has what the database has", func() bool { // the first answer does not wait for the database
		text := body(t, strings.Trim(strings.TrimPrefix(address, "http://"), "/"), "/")
		return strings.Contains(text, "No task type has been registered") && strings.Contains(text, "STAGE")
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the console ended with %v", err)
	}
}

// The line that one command prints lets a person in at the other.
func TestConsolePasswordProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := rota(t.Context(), dir, "console", "password", "ann", "--rights", "look,operate")
	cmd.Stdin = strings.NewReader("correct horse\n")
	line, err := cmd.Output()
	if err != nil || !strings.HasPrefix(string(line), "ann:$2") || !strings.HasSuffix(string(line), ":look,operate\n") {
		t.Fatalf("%v: %q", err, line)
	}
	writeFile(t, filepath.Join(dir, "people"), string(line))
	people, err := console.OpenPasswords(filepath.Join(dir, "people"), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "127.0.0.1:1"
	r.SetBasicAuth("ann", "correct horse")
	if a, err := people.Access(r); err != nil || a.Name != "ann" || !a.May(console.Operate, "x") || a.May(console.Change, "x") {
		t.Errorf("with the password: %+v, %v", a, err)
	}
	for args, want := range map[string]string{
		"console password":                                      "missing argument NAME",
		"console password ann --rights all":                     `--rights: the right "all" must be look, operate or change`,
		"console --database sqlite:x --passwords nowhere":       "--passwords nowhere: read the passwords: open nowhere",
		"console --database sqlite:x --http :1":                 "must be localhost",
		"console --database sqlite:x --tls-cert x --tls-key x":  "--tls-cert and --tls-key: open x",
		"console --database sqlite:x --user-header X --proxy x": "--proxy (x) must be an IP address",
	} {
		cmd := rota(t.Context(), dir, strings.Fields(args)...)
		cmd.Stdin = strings.NewReader("correct horse")
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v: %s, want exit code 2 and %q", args, err, out, want)
		}
	}
}
