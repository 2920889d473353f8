package testdb

import (
	"bytes"
	"sync"
)

// Moment is a moment in the life of a transaction, as a proxy sees it.
type Moment int

// The moments.
const (
	BeforeStatement Moment = iota // the server does not have the statement yet
	BeforeCommit                  // it has executed the statement, and does not have the COMMIT yet
	AfterCommit                   // it has committed, and the client does not know
)

func (m Moment) String() string {
	return [...]string{"before the statement", "before the commit", "after the commit"}[m]
}

// Ambush waits at a proxy for a statement in a transaction.
type Ambush struct {
	Text   string // of the statement, or a part of it
	Skip   int    // so many that match pass before
	Moment Moment

	// Strike is called once, when the moment is there, from a goroutine of the proxy. Until it returns, its connection
	// stands still. If it returns false, the connection breaks, and what was to pass at the moment is lost.
	Strike func() (pass bool)
}

// Ambush lays an ambush, in the place of one that nobody has run into.
func (p *Proxy) Ambush(a Ambush) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ambush = &a
}

// link is a connection through a proxy.
type link struct {
	mu         sync.Mutex
	prey       *Ambush // that this transaction has run into
	committing bool
}

// lurk looks at what is about to pass, and reports whether it may.
func (p *Proxy) lurk(l *link, requests bool, b []byte) (pass bool) {
	a := p.sees(l, requests, b)
	return a == nil || a.Strike()
}

// sees returns the ambush whose moment is there.
func (p *Proxy) sees(l *link, requests bool, b []byte) (due *Ambush) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !requests && !l.committing, requests && l.prey == nil && !p.caught(l, b):
		return nil
	case requests && l.prey.Moment == BeforeStatement, !requests:
	case bytes.Contains(b, []byte("COMMIT")):
		if l.committing = l.prey.Moment == AfterCommit; l.committing {
			return nil
		}
	case bytes.Contains(b, []byte("ROLLBACK")):
		p.Ambush(*l.prey)
		l.prey = nil
		return nil
	default:
		return nil
	}
	due, l.prey, l.committing = l.prey, nil, false
	return due
}

// caught reports whether a statement has run into the ambush, which is the connection's then.
func (p *Proxy) caught(l *link, b []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ambush == nil || !bytes.Contains(b, []byte(p.ambush.Text)) {
		return false
	}
	if p.ambush.Skip--; p.ambush.Skip >= 0 {
		return false
	}
	p.ambush.Skip = 0
	l.prey, p.ambush = p.ambush, nil
	return true
}
