package daemon

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// newestWins is a listener with a limit of open connections. The next connection takes the place of the oldest one of
// the address that has the most. So a client that opens many connections, and sends half a request on each, takes
// places from itself alone; and where many addresses do so together, a request whose answer takes milliseconds is over
// long before its connection is the oldest.
//
// A new connection never waits, and what the open ones do does not matter. To let it wait, as netutil.LimitListener of
// golang.org/x/net does, would give the places to the clients that keep them for the longest time.
type newestWins struct {
	net.Listener
	most int

	mu   sync.Mutex
	open []*placedConn // the oldest first
}

// Accept implements net.Listener.
func (l *newestWins) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	placed := &placedConn{Conn: conn, address: placeOf(conn.RemoteAddr()), of: l}
	if oldest := l.add(placed); oldest != nil {
		_ = oldest.Close() // its server notices that
	}
	return placed, nil
}

// add returns the connection that must make room, or nil.
func (l *newestWins) add(conn *placedConn) (oldest *placedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= l.most {
		oldest = l.oldestOfMostLocked()
		l.removeLocked(oldest)
	}
	l.open = append(l.open, conn)
	return oldest
}

// oldestOfMostLocked returns the oldest connection of the addresses that have the most.
func (l *newestWins) oldestOfMostLocked() (oldest *placedConn) {
	count, most := map[string]int{}, 0
	for _, conn := range l.open {
		count[conn.address]++
		most = max(most, count[conn.address])
	}
	i := slices.IndexFunc(l.open, func(conn *placedConn) bool { return count[conn.address] == most })
	return l.open[i]
}

func (l *newestWins) removeLocked(conn *placedConn) {
	if i := slices.Index(l.open, conn); i >= 0 { // net/http may close a connection twice
		l.open = slices.Delete(l.open, i, i+1)
	}
}

// placedConn is a connection that has a place of a newestWins.
type placedConn struct {
	net.Conn
	address string
	of      *newestWins
}

// Close implements net.Conn.
func (c *placedConn) Close() error {
	c.of.mu.Lock()
	c.of.removeLocked(c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// networkBits are the bits of an IPv6 address that name a network: a host may have all addresses of its network.
const networkBits = 64

// placeOf returns what counts as one address: an IPv4 address, or the network of an IPv6 address.
func placeOf(a net.Addr) string {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return a.String()
	}
	ip := at.Addr().Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	return netip.PrefixFrom(ip, networkBits).Masked().String()
}
