package testdb

import (
	"bytes"
	"sync"
)

// Moment is a point in a transaction at which a proxy can act.
type Moment int

// The moments.
const (
	BeforeStatement Moment = iota // the server has not received the statement
	BeforeCommit                  // the server has executed the statement and has not received the COMMIT
	AfterCommit                   // the server has committed, and the client has no reply
)

func (m Moment) String() string {
	return [...]string{"before the statement", "before the commit", "after the commit"}[m]
}

// Ambush waits at a proxy for a statement in a transaction.
type Ambush struct {
	Text   string // a part of the statement
	Skip   int    // the number of matching statements to let pass first
	Moment Moment

	// Strike is called once, at the moment, from a goroutine of the proxy. Its connection stands still until it returns.
	// If it returns false, the connection breaks, and the bytes that were about to pass are lost.
	Strike func() (pass bool)
}

// Ambush sets an ambush. It replaces an ambush that no transaction has met yet.
func (p *Proxy) Ambush(a Ambush) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ambush = &a
}

// link is a connection through a proxy.
type link struct {
	mu         sync.Mutex
	ambush     *Ambush // the ambush that this transaction has met
	committing bool
}

// mayPass strikes if the moment of an ambush has come, and reports whether the bytes may pass.
func (p *Proxy) mayPass(l *link, requests bool, b []byte) (pass bool) {
	a := p.due(l, requests, b)
	return a == nil || a.Strike()
}

// due returns the ambush whose moment has come, or nil.
func (p *Proxy) due(l *link, requests bool, b []byte) (due *Ambush) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !requests && !l.committing, requests && l.ambush == nil && !p.meets(l, b):
		return nil
	case requests && l.ambush.Moment == BeforeStatement, !requests:
	case bytes.Contains(b, []byte("COMMIT")):
		if l.committing = l.ambush.Moment == AfterCommit; l.committing {
			return nil
		}
	case bytes.Contains(b, []byte("ROLLBACK")):
		p.Ambush(*l.ambush)
		l.ambush = nil
		return nil
	default:
		return nil
	}
	due, l.ambush, l.committing = l.ambush, nil, false
	return due
}

// meets reports whether the statement matches the ambush, and moves the ambush to the connection.
func (p *Proxy) meets(l *link, b []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ambush == nil || !bytes.Contains(b, []byte(p.ambush.Text)) {
		return false
	}
	if p.ambush.Skip--; p.ambush.Skip >= 0 {
		return false
	}
	p.ambush.Skip = 0
	l.ambush, p.ambush = p.ambush, nil
	return true
}
