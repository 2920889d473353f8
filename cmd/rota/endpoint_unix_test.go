//go:build unix

package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
)

// webhook is an endpoint that knows nothing of Rota. It notes the calls of each customer that it accepts.
type webhook struct {
	*testing.T
	mu       sync.Mutex
	refuse   map[int][]int // the next statuses of an event; 0 hangs until the worker is killed
	accepted map[int][]int // the events of a customer, in the order of their first calls
	keys     map[int]string
	repeated int
	hangs    chan struct{} // closed when a call hangs
	killed   chan struct{}
}

func (h *webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var customer, event int
	_, err := fmt.Sscanf(r.URL.Path, "/customers/%d/events/%d", &customer, &event)
	body, _ := io.ReadAll(r.Body)
	var got struct {
		ID   int
		Note string
		Data json.RawMessage
	}
	if err == nil {
		err = json.Unmarshal(body, &got)
	}
	note := fmt.Sprintf("\"%d\" \\ 'é'\n", event)
	if err != nil || got.ID != event || got.Note != note || string(got.Data) != fmt.Sprintf(`{"n": [%d]}`, event) ||
		r.URL.Query().Get("note") != note || r.Header.Get("Authorization") != "Bearer s3cret-token" {
		h.Errorf("%v: %s %s %v", err, r.URL, body, r.Header)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if key := r.Header.Get("Idempotency-Key"); h.keys[event] == "" {
		h.keys[event] = key
	} else if key != h.keys[event] {
		h.Errorf("event %d comes again with the key %q, and had %q", event, key, h.keys[event])
	}
	if list := h.refuse[event]; len(list) > 0 {
		h.refuse[event] = list[1:]
		switch list[0] {
		case 0:
			close(h.hangs)
			h.mu.Unlock()
			<-h.killed
			h.mu.Lock()
			return
		case http.StatusTooManyRequests:
			w.Header().Set("Retry-After", "1")
		}
		http.Error(w, "not now", list[0])
		return
	}
	events := h.accepted[customer]
	if len(events) > 0 && events[len(events)-1] >= event {
		h.repeated++
		if events[len(events)-1] > event {
			h.Errorf("customer %d gets event %d behind %v", customer, event, events)
		}
		return
	}
	h.accepted[customer] = append(events, event)
}

// accepts reports how many events the endpoint has accepted.
func (h *webhook) accepts() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, events := range h.accepted {
		n += len(events)
	}
	return n
}

const (
	customers = 6
	events    = 60 // event n is of customer n % customers
)

// openWebhook creates a table of notifications, and the rota.yaml of a worker that sends them to an endpoint.
func openWebhook(t *testing.T, url string) (db *sql.DB, dir string, h *webhook) {
	t.Helper()
	h = &webhook{
		T: t, refuse: map[int][]int{}, accepted: map[int][]int{}, keys: map[int]string{},
		hangs: make(chan struct{}), killed: make(chan struct{}),
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	db, dir = openOrders(t, url, 0)
	execute(t, db, `CREATE TABLE notifications (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL, note VARCHAR(100), data VARCHAR(100), sent INTEGER NOT NULL DEFAULT 0)`)
	for n := range events {
		backslash := `\`
		if strings.HasPrefix(url, "mysql:") {
			backslash = `\\`
		}
		const insert = `INSERT INTO notifications (id, customer, note, data) VALUES (%d, %d, '"%d" %s ''é''` + "\n" + `', '{"n": [%d]}')`
		execute(t, db, fmt.Sprintf(insert, n+1, (n+1)%customers, n+1, backslash, n+1))
	}
	writeFile(t, filepath.Join(dir, "token"), "s3cret-token\n")
	writeFile(t, filepath.Join(dir, "rota.yaml"), "database: "+url+`
tasks:
  notify:
    queues: 3
    execute_number: 10
    heartbeat_interval: 200ms
    judge_dead_interval: 2s
    sleep_time_nodata: 50ms
    item_retry: 100ms
    item_max_attempts: 4
    dealer:
      sql:
        select: SELECT id, customer, note, data FROM notifications WHERE sent = 0 AND {{mine customer}} ORDER BY id LIMIT {{limit}}
        execute: UPDATE notifications SET sent = 1 WHERE id IN ({{keys}})
        key: id
        order_key: customer
      http:
        url: `+server.URL+`/customers/{{customer}}/events/{{id}}?note={{note}}
        each: true
        headers: {Authorization: "Bearer {{secret}}"}
        body: '{"id": {{id}}, "note": "{{note}}", "data": {{json data}}}'
        permanent: [400, 410]
        secret_file: token
`)
	return db, dir, h
}

// A worker calls an endpoint for each row, in the order of each customer, through 429s and 500s. A 429 costs no attempt.
// A status that is permanent makes a row dead at once, and the rows of its customer wait.
func TestEndpoint(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		db, dir, h := openWebhook(t, url)
		for n := 1; n <= events; n += 7 {
			h.refuse[n] = []int{500, 502}
		}
		h.refuse[12] = []int{429, 429, 429, 429, 429} // more than the attempts that it has
		h.refuse[events-customers-1] = []int{410}     // of the last customer, which has one event behind it
		p := startWorker(t, dir)
		eventually(t, "all others are sent", func() bool { return count(t, db, "notifications WHERE sent = 1") == events-2 })
		stdout, _, _ := runRota(t, dir, "item", "list", "notify", "-o", "csv")
		if lines := strings.Split(strings.TrimSpace(stdout), "\n"); len(lines) != 2 || !strings.Contains(lines[1], "DEAD") || !strings.Contains(lines[1], "call the endpoint: status 410 Gone") {
			t.Errorf("the failed items are:\n%s", stdout)
		}
		if _, stderr, code := runRota(t, dir, "item", "retry", "notify", fmt.Sprint(events-customers-1)); code != 0 {
			t.Fatal(stderr)
		}
		eventually(t, "all are sent", func() bool { return count(t, db, "notifications WHERE sent = 1") == events })
		p.signal(syscall.SIGTERM)
		if code := p.exit(); code != 0 {
			t.Errorf("exit code %d after SIGTERM", code)
		}
		h.wantAll()
		if h.repeated > 0 {
			t.Errorf("%d calls are repeated, and nothing had made them fail", h.repeated)
		}
		if p.has("s3cret-token") {
			t.Error("the log has the token")
		}
	})
}

// wantAll checks that each customer has all its events, in order.
func (h *webhook) wantAll() {
	h.Helper()
	if n := h.accepts(); n != events {
		h.Errorf("the endpoint has accepted %d events, want %d", n, events)
	}
	for customer, list := range h.accepted {
		for i := range list {
			if i > 0 && list[i] != list[i-1]+customers {
				h.Errorf("customer %d gets %v", customer, list)
			}
		}
	}
}

// A worker that is killed between the responses and the record of them has another one send these rows again, with their
// keys, and no other ones: at least once, and still in order.
func TestEndpointAfterAKill(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		db, dir, h := openWebhook(t, url)
		kill := sync.OnceFunc(func() { close(h.killed) })
		t.Cleanup(kill)
		h.refuse[1] = []int{0} // a batch is marked when all its calls have ended
		h.oneThread(dir)
		p := startWorker(t, dir)
		<-h.hangs
		eventually(t, "the other row of the batch is accepted", func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			return len(h.accepted[4]) > 0 // the customers 1 and 4 have one queue
		})
		p.signal(syscall.SIGKILL)
		p.exit()
		kill()
		second := startWorker(t, dir)
		eventually(t, "all are sent", func() bool { return count(t, db, "notifications WHERE sent = 1") == events })
		second.signal(syscall.SIGTERM)
		if code := second.exit(); code != 0 {
			t.Errorf("exit code %d after SIGTERM", code)
		}
		h.wantAll()
		if h.repeated == 0 {
			t.Error("no call is repeated: the responses were recorded before the kill")
		}
	})
}

// oneThread makes a worker have one batch at a time, with all rows that may be in it.
func (h *webhook) oneThread(dir string) {
	h.Helper()
	file := filepath.Join(dir, "rota.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		h.Fatal(err)
	}
	writeFile(h.T, file, strings.Replace(string(text), "queues: 3", "queues: 3\n    thread_number: 1", 1))
}

// A worker does not start with a mistake in its file, and says in one line which it is.
func TestEndpointMistakes(t *testing.T) {
	t.Parallel()
	_, dir, h := openWebhook(t, testdb.URL(t, testdb.SQLite))
	file := filepath.Join(dir, "rota.yaml")
	bytes, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(bytes)
	for want, change := range map[string][2]string{
		`rota.yaml: tasks.notify.dealer.sql.select: the result has no column "street": it has id, customer, note, data`:                     {"{{id}}?", "{{street}}?"},
		"rota.yaml: tasks.notify.dealer.http.permanent (42) must be statuses from 300 to 599, without 429 and 503, after which a row waits": {"410", "42"},
		"rota.yaml: tasks.notify.dealer.http.body is not JSON: {{column}} is a part of a text between quotes, and a whole value elsewhere":  {`"id": {{id}}`, `"id": x{{id}}`},
		"rota.yaml: tasks.notify.dealer.sql.execute is missing: it marks the rows that the endpoint has accepted, else they come again":     {"execute: UPDATE notifications SET sent = 1 WHERE id IN ({{keys}})", ""},
		"rota.yaml: tasks.notify.dealer.http.url is malformed: {{column}} may stand in its path and in its query":                           {"127.0.0.1", "{{customer}}"},
	} {
		writeFile(t, file, strings.Replace(text, change[0], change[1], 1))
		if _, stderr, code := runRota(t, dir, "worker", "-c", "rota.yaml", "--exit-on-unreachable"); code != 2 || !strings.HasSuffix(stderr, "rota: "+want+"\n") {
			t.Errorf("exit code %d, stderr %s\nwant %s", code, stderr, want)
		}
	}
	if h.accepts() > 0 {
		t.Error("a worker with a mistake in its file calls the endpoint")
	}
}
