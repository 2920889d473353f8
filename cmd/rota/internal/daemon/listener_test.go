package daemon

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// half is a request whose end does not come.
const half = "GET / HTTP/1.1\r\nHost: rota\r\n"

// serveFew serves answers on at most most connections, and never gives one up by itself. It returns the address.
func serveFew(t *testing.T, most int) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it listens at once
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Hour, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok")
	})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(&newestWins{Listener: listener, most: most}) // until Close
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	return listener.Addr().String()
}

// send opens a connection, sends a text, and returns the connection, which stays open.
func send(t *testing.T, dialer net.Dialer, address, text string) (net.Conn, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil, err
	}
	_, err = io.WriteString(conn, text)
	return conn, err
}

// answered returns an error if a whole request gets no answer.
func answered(t *testing.T, address string) error {
	t.Helper()
	conn, err := send(t, net.Dialer{}, address, half+"\r\n")
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	return err
}

// Idle connections of a client do not keep another request out, even if nothing ends them.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	t.Parallel()
	address := serveFew(t, 8)
	for range 30 {
		if err := answered(t, address); err != nil {
			t.Fatal(err)
		}
	}
}

// Neither do half-sent requests, whether they come from few addresses or each from another one.
func TestHalfSentRequestsMakeRoom(t *testing.T) {
	t.Parallel()
	for _, addresses := range []int{1, 2, 3, 200} {
		t.Run(fmt.Sprint(addresses), func(t *testing.T) {
			t.Parallel()
			address := serveFew(t, 8)
			for i := range 200 {
				from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%addresses))}}
				if _, err := send(t, from, address, half); err != nil {
					if i == 0 {
						t.Skipf("this system has one loopback address: %s", err)
					}
					t.Fatal(err)
				}
				if i%50 != 49 {
					continue
				}
				if err := answered(t, address); err != nil {
					t.Errorf("after %d half-sent requests: %s", i+1, err)
				}
			}
		})
	}
}

// pipes is a listener whose connections come from the addresses of a list, one after the other.
type pipes struct {
	net.Listener
	from []string
}

func (l *pipes) Accept() (net.Conn, error) {
	conn, _ := net.Pipe()
	from := l.from[0]
	l.from = l.from[1:]
	return pipeFrom{conn, from}, nil
}

// pipeFrom is a connection from an address.
type pipeFrom struct {
	net.Conn
	from string
}

func (c pipeFrom) RemoteAddr() net.Addr { return address(c.from) }

type address string

func (address) Network() string { return "tcp" }

func (a address) String() string { return string(a) }

// The oldest connection of the address with the most makes room.
func TestOldestOfTheMostMakesRoom(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		from []string // the last one finds no place
		want int      // that is closed
	}{
		"one each":             {[]string{"192.0.2.1:1", "192.0.2.2:1", "192.0.2.3:1", "192.0.2.4:1"}, 0},
		"one has two":          {[]string{"192.0.2.1:1", "192.0.2.2:1", "192.0.2.2:2", "192.0.2.4:1"}, 1},
		"a network of IPv6":    {[]string{"[2001:db8::1]:1", "[2001:db8:0:1::1]:1", "[2001:db8:0:1:f::2]:1", "[2001:db8:0:2::1]:1"}, 1},
		"IPv4 as IPv6":         {[]string{"192.0.2.1:1", "[::ffff:192.0.2.2]:1", "192.0.2.2:2", "192.0.2.4:1"}, 1},
		"what has no address":  {[]string{"@", "192.0.2.2:1", "192.0.2.3:1", "192.0.2.4:1"}, 0},
		"a client from itself": {[]string{"192.0.2.1:1", "192.0.2.2:1", "192.0.2.2:2", "192.0.2.2:3"}, 1},
	} {
		l := &newestWins{Listener: &pipes{from: test.from}, most: 3}
		var conns []net.Conn
		for range test.from {
			conn, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, conn)
		}
		for i, conn := range conns {
			if closed := conn.SetDeadline(time.Time{}) != nil; closed != (i == test.want) {
				t.Errorf("%s: connection %d is closed: %t", name, i, closed)
			}
			_ = conn.Close() // a second time, for the one that has made room
		}
		if len(l.open) > 0 {
			t.Errorf("%s: %d connections are open at the end", name, len(l.open))
		}
	}
}
