package testdb

import "bytes"

// Moment is a point in a transaction at which a proxy can act.
type Moment int

// The moments.
const (
	BeforeStatement Moment = iota // the server has not received the statement
	BeforeCommit                  // the server has executed the statement and has not received the COMMIT
	CommitUnderWay                // the client has lost its connection, and the server has not received the COMMIT
	AfterCommit                   // the server has committed, and the client has no reply
)

func (m Moment) String() string {
	return [...]string{"before the statement", "before the commit", "commit under way", "after the commit"}[m]
}

// Breakpoint stops a transaction at a proxy.
type Breakpoint struct {
	Text   string      // a part of the statement
	When   func() bool // reports whether to stop at a matching statement; nil: at the first one
	Moment Moment

	// Reached is called once, at the moment, from a goroutine of the proxy. Its connection stands still until it returns.
	// If it returns false, the connection breaks, and the bytes that were about to pass are lost.
	Reached func() (pass bool)
}

// Break sets a breakpoint. It replaces a breakpoint that no transaction has met yet.
func (p *Proxy) Break(b Breakpoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.breakpoint = &b
}

// mayPass calls the breakpoint whose moment has come, and reports whether the bytes may pass.
func (l *link) mayPass(requests bool, b []byte) (pass bool) {
	due := l.due(requests, b)
	if due != nil && due.Moment == CommitUnderWay {
		l.client.Close()
	}
	return due == nil || due.Reached()
}

// due returns the breakpoint whose moment has come, or nil.
func (l *link) due(requests bool, b []byte) (due *Breakpoint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !requests && !l.committing, requests && l.breakpoint == nil && !l.meets(b):
		return nil
	case requests && l.breakpoint.Moment == BeforeStatement, !requests:
	case bytes.Contains(b, []byte("COMMIT")):
		if l.committing = l.breakpoint.Moment == AfterCommit; l.committing {
			return nil
		}
	case bytes.Contains(b, []byte("ROLLBACK")):
		l.proxy.Break(*l.breakpoint)
		l.breakpoint = nil
		return nil
	default:
		return nil
	}
	due, l.breakpoint, l.committing = l.breakpoint, nil, false
	return due
}

// meets reports whether the statement matches the breakpoint of the proxy, and moves the breakpoint to the connection.
func (l *link) meets(b []byte) bool {
	p := l.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.breakpoint == nil || !bytes.Contains(b, []byte(p.breakpoint.Text)) {
		return false
	}
	if when := p.breakpoint.When; when != nil && !when() {
		return false
	}
	p.breakpoint.When = nil
	l.breakpoint, p.breakpoint = p.breakpoint, nil
	return true
}
