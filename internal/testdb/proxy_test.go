package testdb

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// echo sends each line back.
func echo(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					if _, err := c.Write(append(lines.Bytes(), '\n')); err != nil {
						return
					}
				}
			}()
		}
	}()
	return "postgres://" + l.Addr().String()
}

func TestBreakpoint(t *testing.T) {
	raw, p := Through(t, echo(t))
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	// The number of answered lines when the breakpoint is reached. A transaction that is rolled back counts only as its
	// statement.
	for moment, want := range map[Moment]int64{BeforeStatement: 2, BeforeCommit: 5, AfterCommit: 5} {
		for _, pass := range []bool{true, false} {
			c, err := new(net.Dialer).DialContext(t.Context(), "tcp", u.Host)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			var answered, reached atomic.Int64
			afterFirst := func() bool { return answered.Load() > 1 }
			p.Break(Breakpoint{Text: "mark", When: afterFirst, Moment: moment, Reached: func() bool {
				reached.Store(answered.Load())
				return pass
			}})
			lines := []string{"BEGIN", "mark one", "mark two", "ROLLBACK", "mark three", "COMMIT", "COMMIT"}
			for _, line := range lines {
				if ask(t, c, line, time.Minute) != line {
					break
				}
				answered.Add(1)
			}
			all := int64(len(lines))
			if !pass {
				all = want
			}
			if reached.Load() != want || answered.Load() != all {
				t.Errorf("%s: reached after %d answers, want %d; %d in all", moment, reached.Load(), want, answered.Load())
			}
		}
	}
}

// ask sends a line and returns the answer, or "" if none comes for a while.
func ask(t *testing.T, c net.Conn, line string, patience time.Duration) string {
	t.Helper()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte(line + "\n")); err != nil {
		return ""
	}
	answer := make([]byte, len(line)+1)
	if _, err := io.ReadFull(c, answer); err != nil {
		return ""
	}
	return string(answer[:len(line)])
}

func TestProxy(t *testing.T) {
	raw, p := Through(t, echo(t))
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	dial := func() net.Conn {
		c, err := new(net.Dialer).DialContext(context.WithoutCancel(t.Context()), "tcp", u.Host)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	const never, long = 50 * time.Millisecond, time.Minute
	c := dial()
	if got := string(p.Listen(func() { ask(t, c, "hello", long) })); got != "hello\n" {
		t.Errorf("heard %q", got)
	}
	p.Swallow(true)
	if got := ask(t, c, "lost", never); got != "" {
		t.Errorf("%q came through", got)
	}
	p.Swallow(false)
	p.LoseReplies(true)
	if got := ask(t, c, "half", never); got != "" {
		t.Errorf("%q came back", got)
	}
	p.LoseReplies(false)
	p.Cut()
	if got := ask(t, c, "cut", long); got != "" {
		t.Errorf("%q came through a cut", got)
	}
	p.Refuse(true)
	if got := ask(t, dial(), "refused", long); got != "" {
		t.Errorf("%q was not refused", got)
	}
	p.Refuse(false)
	p.Delay(20 * time.Millisecond)
	start := time.Now()
	if got := ask(t, dial(), "late", long); got != "late" || time.Since(start) < 40*time.Millisecond {
		t.Errorf("%q after %s", got, time.Since(start))
	}
	p.Delay(0)
	p.Trickle(1)
	start = time.Now()
	if got := ask(t, dial(), "0123456789", long); got != "0123456789" || time.Since(start) < 10*time.Millisecond {
		t.Errorf("%q came byte by byte after %s", got, time.Since(start))
	}
	p.Trickle(0)
	c = dial()
	ask(t, c, "hello", long)
	p.Reset()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("reset: %v", err)
	}
	if err := p.Redirect("postgres://127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, dial(), "elsewhere", long); got != "" {
		t.Errorf("%q came back although no server is there", got)
	}
}

// The server of a client that has vanished does not learn that the client closes its connection.
func TestVanish(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	raw, p := Through(t, "postgres://"+l.Addr().String())
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	for _, vanish := range []bool{false, true} {
		client, err := new(net.Dialer).DialContext(t.Context(), "tcp", u.Host)
		if err != nil {
			t.Fatal(err)
		}
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		patience := time.Minute
		if vanish {
			p.Vanish()
			patience = 50 * time.Millisecond
		}
		client.Close()
		if err := server.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := server.Read(make([]byte, 1)); errors.Is(err, io.EOF) == vanish {
			t.Errorf("vanished %t: the server reads %v", vanish, err)
		}
	}
}
