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
	targets  atomic.Value // []string: hosts and ports
	dialed   int          // connections so far; only accept uses it

	swallow     atomic.Bool
	loseReplies atomic.Bool
	refuse      atomic.Bool
	vanished    atomic.Bool
	delay       atomic.Int64
	trickle     atomic.Int64

	mu     sync.Mutex
	ambush *Ambush
	sent   bytes.Buffer // by the clients
	conns  map[net.Conn]bool
	wg     sync.WaitGroup
	closed chan struct{} // when the proxy ends
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
	p := &Proxy{listener: l, conns: map[net.Conn]bool{}, closed: make(chan struct{})}
	p.targets.Store([]string{u.Host})
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
	targets := make([]string, len(raws))
	for i, raw := range raws {
		u, err := url.Parse(raw)
		if err != nil {
			return err
		}
		targets[i] = u.Host
	}
	p.targets.Store(targets)
	return nil
}

// Refuse closes new connections at once.
func (p *Proxy) Refuse(on bool) { p.refuse.Store(on) }

// Cut breaks all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

// Reset breaks all connections without an orderly end. Bytes on their way are lost in both directions.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.(*net.TCPConn).SetLinger(0) // fails for a closed connection
		c.Close()
	}
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
		server := p.dial()
		if server == nil {
			client.Close() // the client sees that no server answers
			continue
		}
		p.keep(client, server)
		l := new(link)
		p.wg.Go(func() { p.pass(client, server, l, true) })
		p.wg.Go(func() { p.pass(server, client, l, false) })
	}
}

// dial connects to the next server that answers, or returns nil.
func (p *Proxy) dial() net.Conn {
	targets := p.targets.Load().([]string)
	for range targets {
		p.dialed++
		server, err := net.DialTimeout("tcp", targets[p.dialed%len(targets)], 10*time.Second)
		if err == nil {
			return server
		}
	}
	return nil
}

func (p *Proxy) keep(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = true
	}
}

// pass copies one direction until it ends, and then ends the other direction.
func (p *Proxy) pass(from, to net.Conn, l *link, requests bool) {
	defer p.drop(from, to)
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if requests {
			p.note(buffer[:n])
		}
		if !p.mayPass(l, requests, buffer[:n]) {
			return
		}
		time.Sleep(time.Duration(p.delay.Load()))
		if lost := p.swallow.Load() || !requests && p.loseReplies.Load(); !lost && n > 0 {
			if p.write(to, buffer[:n]) != nil {
				return
			}
		}
		if err != nil {
			p.holdBack()
			return
		}
	}
}

// holdBack waits for the end of a proxy that has vanished, before the end of one connection may end the other.
func (p *Proxy) holdBack() {
	if p.vanished.Load() {
		<-p.closed
	}
}

func (p *Proxy) write(to net.Conn, b []byte) error {
	for len(b) > 0 {
		n := len(b)
		if trickle := int(p.trickle.Load()); trickle > 0 {
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

func (p *Proxy) note(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent.Write(b)
}

func (p *Proxy) drop(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		c.Close()
		delete(p.conns, c)
	}
}

func (p *Proxy) close() {
	p.listener.Close()
	close(p.closed)
	p.Cut()
	p.wg.Wait()
}
