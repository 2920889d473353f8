//go:build unix

package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/dutyrota/rota/cmd/rota/internal/daemon"
	"github.com/dutyrota/rota/internal/testdb"
)

// notifySocket is the socket of a service manager.
type notifySocket struct {
	*testing.T
	path string
	conn *net.UnixConn
}

// listenAsSystemd makes the socket in a folder with a short name, because the path of a socket has at most 104 bytes.
func listenAsSystemd(t *testing.T) *notifySocket {
	t.Helper()
	dir, err := os.MkdirTemp("", "n") //nolint:usetesting // t.TempDir has the name of the test, which is too long
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(conn.Close(), os.RemoveAll(dir)) })
	return &notifySocket{t, path, conn}
}

// next returns the next message that is not skipped.
func (s *notifySocket) next(skip string) string {
	s.Helper()
	buffer := make([]byte, 100)
	for {
		if err := s.conn.SetReadDeadline(time.Now().Add(waitLimit)); err != nil {
			s.Fatal(err)
		}
		n, err := s.conn.Read(buffer)
		if err != nil {
			s.Fatalf("no message: %v", err)
		}
		if text := string(buffer[:n]); text != skip {
			return text
		}
	}
}

// A worker under systemd reports once that it is ready, then signs of life, and that it stops.
func TestWorkerNotifiesSystemd(t *testing.T) {
	t.Parallel()
	db, dir := openOrders(t, testdb.URL(t, testdb.SQLite), 1)
	socket := listenAsSystemd(t)
	p := startWorker(t, dir, "NOTIFY_SOCKET="+socket.path, "WATCHDOG_USEC=20000")
	if got := socket.next("WATCHDOG=1"); got != "READY=1" {
		t.Fatalf("first message %q, want READY=1", got)
	}
	if n := count(t, db, "schedule_server"); n != 1 {
		t.Errorf("ready with %d workers in the roster, want 1", n)
	}
	if got := socket.next(""); got != "WATCHDOG=1" {
		t.Errorf("message after READY=1 is %q, want WATCHDOG=1", got)
	}
	p.signal(syscall.SIGTERM)
	if got := socket.next("WATCHDOG=1"); got != "STOPPING=1" {
		t.Errorf("message after SIGTERM is %q, want STOPPING=1", got)
	}
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// A worker that ends at once when it is to stop has said so.
func TestSystemdHearsOfAStopAtOnce(t *testing.T) {
	socket := listenAsSystemd(t)
	t.Setenv("NOTIFY_SOCKET", socket.path)
	for range 20 {
		stopping := make(chan struct{})
		stop := daemon.NotifySystemd(stopping, func() error { return errors.New("has not joined") }, logrus.New())
		close(stopping)
		stop()
		if got := socket.next(""); got != "STOPPING=1" {
			t.Fatalf("message %q, want STOPPING=1", got)
		}
	}
}

// The signs of life come before the worker is ready and while it drains: both may take longer than the watchdog waits.
func TestSystemdWatchdogWhileDraining(t *testing.T) {
	socket := listenAsSystemd(t)
	t.Setenv("NOTIFY_SOCKET", socket.path)
	t.Setenv("WATCHDOG_USEC", "2000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	const readyAtLook = 3
	var looks atomic.Int32
	stopping := make(chan struct{})
	stop := daemon.NotifySystemd(stopping, func() error {
		if looks.Add(1) < readyAtLook {
			return errors.New("has not joined")
		}
		return nil
	}, logrus.New())
	defer stop()
	want := func(message, skip string) {
		t.Helper()
		if got := socket.next(skip); got != message {
			t.Fatalf("message %q, want %q", got, message)
		}
	}
	want("WATCHDOG=1", "")
	want("READY=1", "WATCHDOG=1")
	if n := looks.Load(); n != readyAtLook {
		t.Errorf("READY=1 after look %d, want %d", n, readyAtLook)
	}
	close(stopping)
	want("STOPPING=1", "WATCHDOG=1")
	want("WATCHDOG=1", "")
	want("WATCHDOG=1", "")
}
