package center_test

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy stands between the center and a server, so that a test can listen to the one and silence the
// other. It ends with the test.
type proxy struct {
	listener net.Listener
	target   string
	mute     atomic.Bool // swallow whatever comes, in both directions, and keep the connections

	mu    sync.Mutex
	sent  bytes.Buffer // by the clients
	conns []net.Conn
	wg    sync.WaitGroup
}

// through returns a URL that leads to the same database by way of a proxy.
func through(t *testing.T, raw string) (string, *proxy) {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, target: u.Host}
	p.wg.Go(p.accept)
	t.Cleanup(p.close)
	u.Host = l.Addr().String()
	return u.String(), p
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target) //nolint:noctx // ends with close
		if err != nil {
			client.Close() //nolint:errcheck // the test sees that nothing answers
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		p.wg.Go(func() { p.copy(server, io.TeeReader(client, p)) })
		p.wg.Go(func() { p.copy(client, server) })
	}
}

// Write keeps what the clients send.
func (p *proxy) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent.Write(b)
}

func (p *proxy) copy(to net.Conn, from io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if !p.mute.Load() && n > 0 {
			_, err = to.Write(buffer[:n])
		}
		if err != nil {
			to.Close() //nolint:errcheck // it is over anyway
			return
		}
	}
}

// listen runs f and returns what the clients sent meanwhile.
func (p *proxy) listen(f func()) []byte {
	p.mu.Lock()
	p.sent.Reset()
	p.mu.Unlock()
	f()
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Clone(p.sent.Bytes())
}

func (p *proxy) close() {
	p.listener.Close() //nolint:errcheck // ends accept
	p.mu.Lock()
	for _, c := range p.conns {
		c.Close() //nolint:errcheck // ends copy
	}
	p.mu.Unlock()
	p.wg.Wait()
}
