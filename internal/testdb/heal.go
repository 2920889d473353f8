package testdb

import (
	"testing"
	"time"
)

// EndsAndHeals swallows what do sends: do must end, with an error, and must succeed afterwards, when packets pass again.
func (p *Proxy) EndsAndHeals(t testing.TB, do func() error) {
	t.Helper()
	p.Swallow(true)
	ended := make(chan error, 1)
	go func() { ended <- do() }()
	select {
	case err := <-ended:
		if err == nil {
			t.Fatal("it succeeded without an answer")
		}
	case <-time.After(time.Minute):
		t.Fatal("it hangs")
	}
	p.Swallow(false)
	deadline := time.Now().Add(time.Minute)
	for err := do(); err != nil; err = do() {
		if time.Now().After(deadline) {
			t.Fatalf("the pool does not heal: %v", err)
		}
	}
}
