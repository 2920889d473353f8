package testdb

import (
	"testing"
	"time"
)

// EndsAndHeals calls do while the proxy swallows all packets: do must end with an error. When packets pass again, do
// must succeed within a minute.
func (p *Proxy) EndsAndHeals(t testing.TB, do func() error) {
	t.Helper()
	p.Swallow(true)
	ended := make(chan error, 1)
	go func() { ended <- do() }()
	select {
	case err := <-ended:
		if err == nil {
			t.Fatal("the call succeeded without an answer")
		}
	case <-time.After(time.Minute):
		t.Fatal("the call hangs")
	}
	p.Swallow(false)
	deadline := time.Now().Add(time.Minute)
	for err := do(); err != nil; err = do() {
		if time.Now().After(deadline) {
			t.Fatalf("the pool does not heal: %v", err)
		}
	}
}
