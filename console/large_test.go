package console_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

// The size of a large roster.
const largeServers, largeQueues = 1_000, 10_000

// newLargeSite makes a console of a roster in one task type.
func newLargeSite(tb testing.TB, databaseURL string, servers, queues int) *site {
	tb.Helper()
	must := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	c := centertest.Open(tb, databaseURL, center.Options{})
	_, err := ops.New(c).Tasks().Define(tb.Context(), "settle", center.Settings{Queues: queues})
	must(err)
	for i := range servers {
		uuid := fmt.Sprintf("host%d:%d:%08x", i/10, 1000+i, i)
		_, err := c.Roster().Register(tb.Context(), roster.ServerInfo{UUID: uuid, TaskType: "settle", Host: fmt.Sprint("host", i/10), PID: 1000 + i, JudgeDeadInterval: time.Hour})
		must(err)
	}
	_, err = c.Roster().Planner("settle", "host0:1000:00000000").Rebalance(tb.Context(), roster.RebalanceOptions{Always: true})
	must(err)
	h, err := console.Handler(c, console.Options{})
	must(err)
	return &site{TB: tb, center: c, handler: h}
}

// largePages are the pages that grow with the roster.
var largePages = []string{"/", "/task?task=settle", "/queue?task=settle&queue=471", "/workers", "/workers?q=host7", "/events"}

// With 1,000 servers and 10,000 queues no page has more than 500 kB.
func TestLargeRoster(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	s := newLargeSite(t, testdb.URL(t, testdb.SQLite), largeServers, largeQueues)
	for _, page := range largePages {
		if r := s.get(page); r.code != 200 || len(r.body) > 500_000 {
			t.Errorf("%s: status %d, %d bytes", page, r.code, len(r.body))
		}
	}
}

// BenchmarkLargeRoster measures how long a viewer waits for a page of 1,000 servers and 10,000 queues, with the
// queries that the page needs. Later viewers wait for no query. The goal is 300 ms. With -short the roster is a tenth
// of that.
func BenchmarkLargeRoster(b *testing.B) {
	servers, queues := largeServers, largeQueues
	if testing.Short() {
		servers, queues = servers/10, queues/10
	}
	for _, kind := range testdb.Kinds(b) {
		b.Run(kind, func(b *testing.B) {
			s := newLargeSite(b, testdb.URL(b, kind), servers, queues)
			for _, page := range largePages {
				b.Run(page, func(b *testing.B) {
					for b.Loop() {
						b.StopTimer()
						h, err := console.Handler(s.center, console.Options{}) // without results of earlier reads
						s.must(err)
						s.handler = h
						b.StartTimer()
						if r := s.get(page); r.code != 200 {
							b.Fatalf("%s: status %d: %s", page, r.code, r.body)
						}
					}
				})
			}
		})
	}
}
