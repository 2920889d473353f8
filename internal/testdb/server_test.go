package testdb

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestServerKeepsCommits(t *testing.T) {
	t.Parallel()
	for _, kind := range serverKinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server := Own(t, kind)
			db := connect(t, server.URL())
			if _, err := db.ExecContext(t.Context(), "CREATE TABLE orders (id INT)"); err != nil {
				t.Fatal(err)
			}
			for i, halt := range []func() error{server.Kill, server.Stop, server.Kill} {
				if _, err := db.ExecContext(t.Context(), "INSERT INTO orders VALUES (1)"); err != nil {
					t.Fatal(err)
				}
				if err := halt(); err != nil {
					t.Fatal(err)
				}
				if err := db.PingContext(t.Context()); err == nil {
					t.Error("the halted server answers")
				}
				if err := server.Start(); err != nil {
					t.Fatal(err)
				}
				var n int
				if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM orders").Scan(&n); err != nil || n != i+1 {
					t.Errorf("%d orders are left, want %d (%v)", n, i+1, err)
				}
			}
		})
	}
}

func TestServerFallsBackToSavedData(t *testing.T) {
	t.Parallel()
	for _, kind := range serverKinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server := Own(t, kind)
			db := connect(t, server.URL())
			insert := func(id int) {
				if _, err := db.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO orders VALUES (%d)", id)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := db.ExecContext(t.Context(), "CREATE TABLE orders (id INT)"); err != nil {
				t.Fatal(err)
			}
			insert(1)
			steps := []func() error{server.Stop, server.Save, server.Start}
			for i := range 2 { // the saved data stays as it is
				for _, step := range steps {
					if err := step(); err != nil {
						t.Fatal(err)
					}
				}
				var n int
				if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM orders").Scan(&n); err != nil || n != 1 {
					t.Errorf("%d orders after step %d, want 1 (%v)", n, i, err)
				}
				insert(2)
				steps = []func() error{server.Kill, server.Restore, server.Start}
			}
		})
	}
}

// The test holds the port that the server gets first, as another process does that takes it while the server is
// prepared.
func TestServerWhosePortIsTaken(t *testing.T) {
	t.Parallel()
	for _, database := range serverKinds(t) {
		for _, kind := range Needs(database) {
			t.Run(kind, func(t *testing.T) {
				t.Parallel()
				if !Installed(kind) {
					Own(t, kind) // skips or fails
				}
				taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				defer taken.Close()
				ports := []func() (int, error){
					func() (int, error) { return taken.Addr().(*net.TCPAddr).Port, nil },
					freePort,
				}
				server, err := start(plan{
					kind: kind, url: func(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) },
					port: func() (int, error) {
						next := ports[0]
						ports = ports[1:]
						return next()
					},
				})
				if address := kept(t, server, err).URL(); address == taken.Addr().String() {
					t.Errorf("the server is at %s, a port that it did not get", address)
				}
			})
		}
	}
}

func TestServerEndsWithItsOwner(t *testing.T) {
	t.Parallel()
	ends := map[string]func(*exec.Cmd, io.Closer) error{
		"killed": func(owner *exec.Cmd, _ io.Closer) error { return owner.Process.Kill() },
		"normal": func(_ *exec.Cmd, input io.Closer) error { return input.Close() },
	}
	for _, kind := range serverKinds(t) {
		for name, end := range ends {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				owner, input, server, dir := startOwner(t, kind)
				if err := end(owner, input); err != nil {
					t.Fatal(err)
				}
				_ = owner.Wait() // "signal: killed" is expected
				db := connect(t, server)
				eventually(t, "the server has ended", func() bool { return db.PingContext(t.Context()) != nil })
				eventually(t, dir+" is removed", func() bool {
					_, err := os.Stat(dir)
					return errors.Is(err, fs.ErrNotExist)
				})
			})
		}
	}
}

// startOwner starts another process that owns a server.
func startOwner(t *testing.T, kind string) (owner *exec.Cmd, input io.Closer, server, dir string) {
	t.Helper()
	if !Installed(kind) {
		Own(t, kind) // skips or fails
	}
	owner = exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), "TESTDB_OWN="+kind)
	input, err := owner.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fscan(output, &server, &dir); err != nil {
		t.Fatal(err)
	}
	return owner, input, server, dir
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

func TestServerThatIsNotInstalled(t *testing.T) {
	installed := engines[MySQL]
	t.Cleanup(func() { engines[MySQL] = installed })
	engines[MySQL] = engine{daemon: "no-such-daemon", variable: "ROTA_TEST_MYSQL_URL"}
	_, err := StartServer(MySQL)
	for _, want := range []string{
		"no-such-daemon", "ROTA_TEST_MYSQL_URL", "make test", "docker compose up",
		"ROTA_TEST_DATABASES",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the message does not name %s: %v", want, err)
		}
	}
}
