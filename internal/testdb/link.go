package testdb

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// link is a connection through a proxy: the client's to the proxy, and the proxy's to the server.
type link struct {
	proxy          *Proxy
	client, server net.Conn

	mu         sync.Mutex
	breakpoint *Breakpoint // that this transaction has met
	committing bool
}

// relay copies the requests, or the replies, until they end, and then ends the other direction.
func (l *link) relay(requests bool) {
	p, from, to := l.proxy, l.server, l.client
	if requests {
		from, to = to, from
	}
	defer p.conns.drop(from, to)
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if requests {
			p.note(buffer[:n])
		}
		if !l.mayPass(requests, buffer[:n]) {
			return
		}
		time.Sleep(time.Duration(p.delay.Load()))
		if lost := p.swallow.Load() || !requests && p.loseReplies.Load(); !lost && n > 0 {
			if l.write(to, buffer[:n]) != nil {
				return
			}
		}
		if err != nil {
			l.holdBack()
			return
		}
	}
}

// holdBack waits for the end of a proxy that has vanished, before the end of one direction may end the other.
func (l *link) holdBack() {
	if l.proxy.vanished.Load() {
		<-l.proxy.closed
	}
}

func (l *link) write(to net.Conn, b []byte) error {
	for len(b) > 0 {
		n := len(b)
		if trickle := int(l.proxy.trickle.Load()); trickle > 0 {
			n = min(n, trickle)
			time.Sleep(time.Millisecond)
		}
		if _, err := to.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// targets are the servers behind a proxy.
type targets struct {
	hosts  atomic.Value           // []string: hosts and ports
	serves func(host string) bool // reports whether a connection may go to the host; nil: it may; set before hosts
	dialed int                    // connections so far; only dial uses it
}

// dial connects to the next server that answers, or returns nil. It must not be called concurrently.
func (t *targets) dial() net.Conn {
	hosts := t.hosts.Load().([]string)
	for range hosts {
		t.dialed++
		host := hosts[t.dialed%len(hosts)]
		if t.serves != nil && !t.serves(host) {
			continue
		}
		server, err := net.DialTimeout("tcp", host, 10*time.Second)
		if err == nil {
			return server
		}
	}
	return nil
}

// connSet is the open connections of a proxy.
type connSet struct {
	mu    sync.Mutex
	conns map[net.Conn]bool
}

func (s *connSet) keep(conns ...net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range conns {
		s.conns[c] = true
	}
}

// drop closes connections and forgets them.
func (s *connSet) drop(conns ...net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range conns {
		c.Close()
		delete(s.conns, c)
	}
}

// each calls f for each open connection.
func (s *connSet) each(f func(net.Conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		f(c)
	}
}
