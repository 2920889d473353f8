package testdb

import (
	"bytes"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy stands between clients and a server. A test can record the clients' bytes and disturb the connections. All
// methods may be called at any time, from any goroutine.
type Proxy struct {
	listener net.Listener
	targets  targets
	conns    connSet

	swallow     atomic.Bool
	loseReplies atomic.Bool
	refuse      atomic.Bool
	vanished    atomic.Bool
	delay       atomic.Int64
	trickle     atomic.Int64

	mu         sync.Mutex
	breakpoint *Breakpoint
	sent       bytes.Buffer // by the clients
	wg         sync.WaitGroup
	closed     chan struct{} // when the proxy ends
}

// Through returns a URL that leads to the same database through a proxy. The proxy ends with the test.
func Through(t testing.TB, raw string) (string, *Proxy) {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, conns: connSet{conns: map[net.Conn]bool{}}, closed: make(chan struct{})}
	p.targets.hosts.Store([]string{u.Host})
	p.wg.Go(p.accept)
	t.Cleanup(p.close)
	u.Host = l.Addr().String()
	return u.String(), p
}

// Balanced returns a URL that leads to the databases at the given URLs in turn, as through a balancer: each new
// connection goes to the next server that answers. The first URL gives the user, the database and the parameters.
func Balanced(t testing.TB, raws ...string) (string, *Proxy) {
	t.Helper()
	through, p := Through(t, raws[0])
	if err := p.Redirect(raws...); err != nil {
		t.Fatal(err)
	}
	return through, p
}

// Swallow keeps the connections and drops all bytes in both directions, as a network does that drops packets. The
// dropped bytes stay lost.
func (p *Proxy) Swallow(on bool) { p.swallow.Store(on) }

// Vanish drops all bytes in both directions for good, as if the hosts of the clients had lost their network. The server
// does not learn that a client closes its connection.
func (p *Proxy) Vanish() {
	p.vanished.Store(true)
	p.swallow.Store(true)
}

// LoseReplies passes on the requests and drops the replies.
func (p *Proxy) LoseReplies(on bool) { p.loseReplies.Store(on) }

// Delay delays all bytes by this much, in both directions.
func (p *Proxy) Delay(d time.Duration) { p.delay.Store(int64(d)) }

// Trickle passes on so many bytes at a time, with a pause of one millisecond before each. 0 ends it.
func (p *Proxy) Trickle(bytes int) { p.trickle.Store(int64(bytes)) }

// Redirect connects new clients to the servers of the URLs in turn.
func (p *Proxy) Redirect(raws ...string) error {
	hosts := make([]string, len(raws))
	for i, raw := range raws {
		u, err := url.Parse(raw)
		if err != nil {
			return err
		}
		hosts[i] = u.Host
	}
	p.targets.hosts.Store(hosts)
	return nil
}

// Refuse closes new connections at once.
func (p *Proxy) Refuse(on bool) { p.refuse.Store(on) }

// Cut breaks all connections.
func (p *Proxy) Cut() { p.conns.each(func(c net.Conn) { c.Close() }) }

// Reset breaks all connections without an orderly end. Bytes on their way are lost in both directions.
func (p *Proxy) Reset() {
	p.conns.each(func(c net.Conn) {
		_ = c.(*net.TCPConn).SetLinger(0) // fails for a closed connection
		c.Close()
	})
}

// Listen calls f and returns the bytes that the clients send meanwhile.
func (p *Proxy) Listen(f func()) []byte {
	p.mu.Lock()
	p.sent.Reset()
	p.mu.Unlock()
	f()
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Clone(p.sent.Bytes())
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		if p.refuse.Load() {
			client.Close()
			continue
		}
		server := p.targets.dial()
		if server == nil {
			client.Close() // the client sees that no server answers
			continue
		}
		p.conns.keep(client, server)
		l := &link{proxy: p, client: client, server: server}
		p.wg.Go(func() { l.relay(true) })
		p.wg.Go(func() { l.relay(false) })
	}
}

func (p *Proxy) note(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent.Write(b)
}

func (p *Proxy) close() {
	p.listener.Close()
	close(p.closed)
	p.Cut()
	p.wg.Wait()
}
