package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
)

// H4: a worker that cannot leave because its database swallows every packet, or is away, ends with code 1 and says so,
// before a supervisor would kill it.
func TestWorkerThatCannotLeave(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]func(*testdb.Proxy){
		"swallowed": func(p *testdb.Proxy) { p.Swallow(true) },
		"refused":   func(p *testdb.Proxy) { p.Refuse(true); p.Cut() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, raw string) {
				if strings.HasPrefix(raw, "sqlite:") {
					t.Skip("a file is not reached through a network")
				}
				db, dir := openOrders(t, raw, 1)
				through, proxy := testdb.Through(t, raw)
				p := startRota(t, dir, nil, "worker", "-c", "rota.yaml", "--database", through)
				eventually(t, "the order is settled", func() bool { return count(t, db, "orders WHERE state = 'NEW'") == 0 })
				outage(proxy)
				p.signal(syscall.SIGTERM)
				code := p.exit()
				last := p.log[len(p.log)-1]
				const over = "the other workers take over the queues of settle after judge_dead_interval (10s)"
				if code != 1 || !strings.HasPrefix(last, "rota: leave settle$BASE: ") || !strings.Contains(last, over) {
					t.Errorf("exit code %d, want 1; the last line is %q", code, last)
				}
				if n := count(t, db, owned); n == 0 {
					t.Error("the worker has left after all")
				}
			})
		})
	}
}
