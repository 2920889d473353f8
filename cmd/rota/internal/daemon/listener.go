package daemon

import (
	"net"
	"net/http"
	"sync"
)

// connections bounds the open connections of a server, in all and of each
// address. When there are too many, the one that has been idle for the longest
// time makes room: idle connections of one client must not keep another out.
// netutil.LimitListener of golang.org/x/net has one limit and lets new
// connections wait for idle ones.
type connections struct {
	most, perAddress int

	mu    sync.Mutex
	room  *sync.Cond
	open  map[net.Conn]string // the address
	count map[string]int
	idle  []net.Conn // the oldest first
	ended bool
}

// limitConnections returns a listener with at most n open connections, and at most half as many of one address. If an
// address has that many and none of them is idle, its next connection is closed at once. If there are n in all and none
// is idle, further connections wait in the kernel. The ConnState of the server says which connections are idle.
func limitConnections(l net.Listener, server *http.Server, n int) net.Listener {
	c := &connections{most: n, perAddress: max(1, n/2), open: map[net.Conn]string{}, count: map[string]int{}}
	c.room = sync.NewCond(&c.mu)
	server.ConnState = c.note
	return &limitedListener{Listener: l, connections: c}
}

// note keeps which connections are idle.
func (c *connections) note(conn net.Conn, state http.ConnState) {
	if s, ok := conn.(interface{ NetConn() net.Conn }); ok { // of TLS
		conn = s.NetConn()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgetIdleLocked(conn)
	if _, open := c.open[conn]; open && state == http.StateIdle {
		c.idle = append(c.idle, conn)
		c.room.Broadcast()
	}
}

func (c *connections) forgetIdleLocked(conn net.Conn) {
	for i, other := range c.idle {
		if other == conn {
			c.idle = append(c.idle[:i:i], c.idle[i+1:]...)
			return
		}
	}
}

// waitForRoom returns when there is room for a connection, and false after close.
func (c *connections) waitForRoom() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.ended && len(c.open) >= c.most && !c.dropIdleLocked("") {
		c.room.Wait()
	}
	return !c.ended
}

// dropIdleLocked closes the connection that has been idle for the longest time. If an address is given, it looks only
// at the connections of that address.
func (c *connections) dropIdleLocked(address string) bool {
	for _, conn := range c.idle {
		if address == "" || c.open[conn] == address {
			c.forgetLocked(conn)
			_ = conn.(*limitedConn).Conn.Close() // the server notices that it is closed
			return true
		}
	}
	return false
}

func (c *connections) forgetLocked(conn net.Conn) {
	address, open := c.open[conn]
	if !open {
		return
	}
	c.forgetIdleLocked(conn)
	delete(c.open, conn)
	if c.count[address]--; c.count[address] == 0 {
		delete(c.count, address)
	}
	c.room.Broadcast()
}

// add reports whether a connection may stay.
func (c *connections) add(conn net.Conn, address string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count[address] >= c.perAddress && !c.dropIdleLocked(address) {
		return false
	}
	c.open[conn] = address
	c.count[address]++
	return true
}

type limitedListener struct {
	net.Listener
	connections *connections
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		if !l.connections.waitForRoom() {
			return nil, net.ErrClosed
		}
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		limited := &limitedConn{Conn: conn, connections: l.connections}
		if l.connections.add(limited, hostOf(conn.RemoteAddr())) {
			return limited, nil
		}
		_ = conn.Close()
	}
}

func hostOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return host
}

// Close implements net.Listener.
func (l *limitedListener) Close() error {
	c := l.connections
	c.mu.Lock()
	c.ended = true
	c.room.Broadcast()
	c.mu.Unlock()
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	connections *connections
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	c.connections.mu.Lock()
	c.connections.forgetLocked(c)
	c.connections.mu.Unlock()
	return c.Conn.Close()
}
