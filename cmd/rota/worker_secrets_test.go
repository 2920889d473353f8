package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
)

// The tokens in the URL of a service, its secret and the password of the database are in no line of the log and in no
// text of the roster, however the service fails: without an answer, with an answer that repeats what it got, and for
// single rows.
func TestSecretsStayInTheWorker(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		const (
			token  = "B00/abcdefghijklmnopqrstuvwx"
			value  = "query-token"
			secret = "the-secret-that-signs"
		)
		secrets := []string{"abcdefghijklmnopqrstuvwx", value, secret}
		var asked atomic.Int64
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch asked.Add(1) % 2 {
			case 0:
				panic(http.ErrAbortHandler) // the error of the client has the URL
			default:
				http.Error(w, fmt.Sprintf("no such hook: http://%s%s, secret %s", r.Host, r.URL, secret), http.StatusInternalServerError)
			}
		}))
		t.Cleanup(service.Close)
		db, dir := openOrders(t, url, 20)
		writeFile(t, filepath.Join(dir, "rota.yaml"), "database: "+url+`
tasks:
  settle:
    queues: 2
    execute_number: 4
    sleep_time_nodata: 50ms
    item_retry: 50ms
    item_retry_max: 100ms
    item_max_attempts: 2
    dealer:
      sql:
        select: SELECT id FROM orders WHERE state = 'NEW' AND mod(id, {{total}}) = {{index}} ORDER BY id LIMIT {{limit}}
        key: id
      http:
        url: `+service.URL+"/services/"+token+"?sig="+value+`
        secret_variable: HOOK_SECRET
`)
		p := startWorker(t, dir, "HOOK_SECRET="+secret)
		eventually(t, "the failures are recorded", func() bool {
			return count(t, db, "schedule_failed_item WHERE last_error <> ''") > 1 && count(t, db, "schedule_server WHERE last_error <> ''") > 0
		})
		items, _, _ := runRota(t, dir, "item", "list", "-o", "json")
		servers, _, _ := runRota(t, dir, "worker", "list", "-o", "json")
		findings, _, _ := runRota(t, dir, "doctor")
		p.mu.Lock()
		logged := strings.Join(p.log, "\n")
		p.mu.Unlock()
		if !strings.Contains(items, service.URL) {
			t.Errorf("the items do not say which service fails: %.500s", items)
		}
		for _, secret := range secrets {
			for outlet, text := range map[string]string{"log": logged, "items": items, "servers": servers, "findings": findings} {
				if i := strings.Index(text, secret); i >= 0 {
					t.Errorf("%s is in the %s: %.300s", secret, outlet, text[max(0, i-200):])
				}
			}
			for _, column := range []string{
				"schedule_failed_item WHERE last_error", "schedule_server WHERE last_error", "schedule_event WHERE reason",
				"schedule_server_history WHERE last_error",
			} {
				if n := count(t, db, column+" LIKE '%"+secret+"%'"); n > 0 {
					t.Errorf("%s is in %d rows of %s", secret, n, column)
				}
			}
		}
		p.signal(15)
		if code := p.exit(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
}
