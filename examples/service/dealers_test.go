package main

import (
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/postgres"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/manager/rotatest"
)

// databaseURL stands for os.Getenv("TEST_POSTGRES_URL").
func databaseURL(t *testing.T) string { return testdb.URL(t, testdb.Postgres) }

// The dealers take orders to their receipts and export them, without the service.
func TestDealers(t *testing.T) {
	t.Parallel()
	r := rotatest.Open(t, rotatest.Options{Database: postgres.URL(databaseURL(t))})
	if _, err := r.DB().Exec(tables + `; INSERT INTO orders SELECT generate_series(1, 10)`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.DB().Exec(`DROP TABLE orders, receipts`) })
	r.Work(manager.Serve("settle", settle(r.DB()), manager.Settings{Queues: 4}))
	r.Work(manager.Serve("receipt", receipt(r.DB()), manager.Settings{Queues: 4}))
	var day string
	if err := r.DB().QueryRow(`SELECT CAST(MIN(day) AS text) FROM receipts`).Scan(&day); err != nil {
		t.Fatal(err)
	}
	run := r.Run("export", day, "",
		manager.Serve("export", export(r.DB()), manager.Settings{Queues: 4, Mode: center.ModeRun}))
	if run.ItemsDone != 10 {
		t.Errorf("%d receipts are exported, want 10", run.ItemsDone)
	}
}
