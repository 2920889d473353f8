package workercmd

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/cmd/rota/internal/daemon"
	"github.com/dutyrota/rota/cmd/rota/internal/redact"
	"github.com/dutyrota/rota/cmd/rota/internal/sqldealer"
	"github.com/dutyrota/rota/config"
)

// A worker warns each hour of a table that has grown since the worker started, until there is an index.
func TestWorkerWarnsHourlyOfAMissingIndex(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, err := center.Open(t.Context(), sqlite.URL("sqlite::memory:"), center.Options{})
		if err != nil {
			t.Fatal(err)
		}
		execute := func(statement string) {
			t.Helper()
			if _, err := c.DB().ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT)")
		task := config.Task{Name: "settle", SQL: config.SQLDealer{
			Select:  "SELECT id FROM orders WHERE state = 'NEW' AND id % {{total}} = {{index}} ORDER BY id LIMIT {{limit}}",
			Execute: "UPDATE orders SET state = 'SETTLED' WHERE id IN ({{keys}})", Key: []string{"id"},
		}}
		dealer, err := sqldealer.New(task, sqldealer.Kinds{"": c.Dialect()})
		if err != nil {
			t.Fatal(err)
		}
		dealer.Use(c.DB())
		var log bytes.Buffer
		w := &worker{dealers: []placed{{task, dealer}}, log: daemon.NewLogger(&log, redact.URLs)}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.watchScans(ctx, c)
		}()
		after := func(hours time.Duration, want int, when string) {
			t.Helper()
			time.Sleep(hours*time.Hour + time.Minute)
			synctest.Wait()
			if n := strings.Count(log.String(), "may read all of orders"); n != want {
				t.Errorf("%d warnings %s, want %d:\n%s", n, when, want, &log)
			}
		}
		after(1, 0, "of a small table")
		execute(`INSERT INTO orders (id, state) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100100) SELECT i, 'SETTLED' FROM n`)
		after(2, 2, "in the two hours since the table has grown")
		execute("CREATE INDEX orders_work ON orders (state, id)")
		after(2, 2, "since there is an index")
		cancel()
		<-ended
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}
