package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
)

// With "console: true" the worker's address has the pages of the console, for clients on the same host, who may look.
func TestWorkerServesTheConsole(t *testing.T) {
	t.Parallel()
	_, dir := openOrders(t, testdb.URL(t, testdb.SQLite), 1)
	p := startWorker(t, dir, "ROTA_CONSOLE=true")
	const serving = "serving /livez, /readyz, /metrics, /scale and the console"
	eventually(t, "the console is served", func() bool { return p.logged(serving) != nil })
	address, _ := p.logged(serving)["address"].(string)
	ask := func(method, path string, headers ...string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path, strings.NewReader("task=settle&confirm=yes"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	eventually(t, "the page shows the task type", func() bool {
		code, body := ask(http.MethodGet, "/task?task=settle")
		return code == http.StatusOK && strings.Contains(body, "served by 1 worker") && !strings.Contains(body, "task-pause")
	})
	if code, _ := ask(http.MethodPost, "/task-pause"); code != http.StatusForbidden {
		t.Errorf("a change: status %d", code)
	}
	if code, body := ask(http.MethodGet, "/", "X-Forwarded-For", "192.0.2.1"); code != http.StatusForbidden || strings.Contains(body, "settle") {
		t.Errorf("a request that a proxy has forwarded: status %d: %s", code, body)
	}
	if code, body := ask(http.MethodGet, "/livez"); code != http.StatusOK || body != "ok\n" {
		t.Errorf("/livez: status %d: %s", code, body)
	}
}
