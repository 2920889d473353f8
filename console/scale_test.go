package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

// The number of workers follows from the counts of the owners.
func TestScale(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		s := newSite(t, url, console.Options{})
		ask := func(query string) (int, string) {
			answer := httptest.NewRecorder()
			console.ScaleHandler(s.center).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/scale?"+query, nil))
			return answer.Code, answer.Body.String()
		}
		if code, body := ask("task=settle&per_worker=10"); code != http.StatusNotFound || !strings.Contains(body, "no worker has counted") {
			t.Errorf("without a count: %d %s", code, body)
		}
		s.must(ops.New(s.center).Queues().SaveBacklogs(t.Context(), "settle", []ops.QueueBacklog{
			{QueueID: "0", Epoch: 1, Items: 12},
		}))
		if code, body := ask("task=settle&per_worker=10"); code != http.StatusServiceUnavailable || !strings.Contains(body, "fewer than half of the queues") {
			t.Errorf("with one of four queues counted: %d %s, want 503", code, body)
		}
		s.must(ops.New(s.center).Queues().SaveBacklogs(t.Context(), "settle", []ops.QueueBacklog{
			{QueueID: "1", Epoch: 1, Items: 13}, {QueueID: "2", Epoch: 1}, {QueueID: "3", Epoch: 1},
		}))
		if code, body := ask("task=settle&per_worker=10"); code != http.StatusOK || !strings.Contains(body, `"workers":3,`) || !strings.Contains(body, `"backlog_items":25,`) {
			t.Errorf("25 items, 10 per worker: %d %s, want 3 workers", code, body)
		}
		if code, body := ask("task=settle&per_worker=1"); code != http.StatusOK || !strings.Contains(body, `"workers":4,`) {
			t.Errorf("25 items, 1 per worker: %d %s, want 4 workers for 4 queues", code, body)
		}
		for query, want := range map[string]int{
			"task=missing&per_worker=10": http.StatusNotFound, "task=settle": http.StatusBadRequest, "per_worker=10": http.StatusBadRequest,
			"task=settle&per_worker=0": http.StatusBadRequest, "task=settle&per_worker=x": http.StatusBadRequest,
		} {
			if code, body := ask(query); code != want {
				t.Errorf("%s: %d %s, want %d", query, code, body, want)
			}
		}
		s.must(s.center.Close())
		if code, _ := ask("task=settle&per_worker=10"); code != http.StatusServiceUnavailable {
			t.Errorf("with the database away: %d, want 503", code)
		}
	})
}

// In the console, /scale has the rights of the pages.
func TestScaleOfTheConsole(t *testing.T) {
	s := newSite(t, "sqlite::memory:", console.Options{})
	s.must(ops.New(s.center).Queues().SaveBacklogs(t.Context(), "settle", []ops.QueueBacklog{{QueueID: "0", Epoch: 1, Items: 12}, {QueueID: "1", Epoch: 1}}))
	for address, want := range map[string]int{"127.0.0.1:1": http.StatusOK, "192.0.2.1:1": http.StatusForbidden} {
		r := httptest.NewRequest(http.MethodGet, "http://localhost/scale?task=settle&per_worker=10", nil)
		r.RemoteAddr = address
		answer := httptest.NewRecorder()
		s.handler.ServeHTTP(answer, r)
		if answer.Code != want {
			t.Errorf("from %s: %d %s, want %d", address, answer.Code, answer.Body, want)
		}
	}
}

// Requests within a second share one read of the database, whatever they ask for, and those that come during a read
// wait for it.
func TestScaleCannotBeFlooded(t *testing.T) {
	url, proxy := testdb.Through(t, testdb.URL(t, testdb.Postgres))
	s := newSite(t, url, console.Options{})
	scale := console.ScaleHandler(s.center)
	reads := func(clients int) int {
		var wg sync.WaitGroup
		statements := testdb.Statements(proxy.Listen(func() {
			for i := range clients {
				wg.Go(func() {
					r := httptest.NewRequest(http.MethodGet, fmt.Sprintf("/scale?task=%d&per_worker=10", i), nil)
					scale.ServeHTTP(httptest.NewRecorder(), r)
				})
			}
			wg.Wait()
		}))
		return len(statements)
	}
	first := time.Now()
	one := reads(1)
	many := reads(200)
	if most := one * int(1+time.Since(first)/time.Second); many > most {
		t.Errorf("200 requests sent %d statements, want at most %d: one request sends %d, once a second", many, most, one)
	}
}
