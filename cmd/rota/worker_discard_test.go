package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
)

// A row that fails for good is discarded by its statement, and is a dead item under a key of two columns. The other
// rows are settled.
func TestWorkerDiscardsARow(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		db, dir := openOrders(t, url, 1)
		execute(t, db, `CREATE TABLE parcels (region VARCHAR(20) NOT NULL, id INTEGER NOT NULL, state VARCHAR(9) NOT NULL DEFAULT 'NEW', note TEXT,
			PRIMARY KEY (region, id), CONSTRAINT not_at_sea CHECK (region <> 'at/sea' OR state <> 'SENT'))`)
		execute(t, db, "INSERT INTO parcels (region, id) VALUES ('north', 1), ('at/sea', 2), ('south', 2), ('south', 3)")
		writeFile(t, filepath.Join(dir, "rota.yaml"), "database: "+url+`
tasks:
  send:
    queues: 1
    execute_number: 10
    sleep_time_nodata: 50ms
    item_max_attempts: 2
    item_retry: 50ms
    dealer:
      sql:
        select: SELECT region, id FROM parcels WHERE state = 'NEW' ORDER BY region, id LIMIT {{limit}}
        execute: UPDATE parcels SET state = 'SENT' WHERE (region, id) IN ({{keys}})
        discard: UPDATE parcels SET state = 'LOST', note = {{error}} WHERE (region, id) IN ({{keys}})
        key: [region, id]
`)
		p := startWorker(t, dir)
		eventually(t, "no parcel is new", func() bool { return count(t, db, "parcels WHERE state = 'NEW'") == 0 })
		eventually(t, "the death is recorded", func() bool {
			return count(t, db, "schedule_failed_item WHERE task_type = 'send' AND item_key = 'at%2Fsea/2' AND state = 'DEAD' AND attempts = 2") == 1
		})
		if n := count(t, db, "parcels WHERE state = 'LOST' AND id = 2 AND note LIKE '%not_at_sea%'"); n != 1 {
			t.Errorf("%d parcels are lost with their error, want 1", n)
		}
		if n := count(t, db, "parcels WHERE state = 'SENT'"); n != 3 {
			t.Errorf("%d parcels are sent, want 3", n)
		}
		p.signal(syscall.SIGTERM)
		p.exit()
	})
}

// A discard that fails is an alert, a finding of the doctor and a metric: otherwise the dead row comes back with each
// select, and only a line of the log says so.
func TestDiscardThatFailsIsNamed(t *testing.T) {
	t.Parallel()
	db, dir := openOrders(t, testdb.URL(t, testdb.SQLite), 1)
	execute(t, db, "CREATE TABLE parcels (id INTEGER PRIMARY KEY, state VARCHAR(9) NOT NULL DEFAULT 'NEW' CHECK (state = 'NEW'))")
	execute(t, db, "INSERT INTO parcels (id) VALUES (1)")
	config, err := os.ReadFile(filepath.Join(dir, "rota.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "rota.yaml"), strings.Split(string(config), "tasks:")[0]+`tasks:
  send:
    queues: 1
    sleep_time_nodata: 50ms
    item_max_attempts: 1
    item_retry: 50ms
    dealer:
      sql:
        select: SELECT id FROM parcels WHERE state = 'NEW' ORDER BY id LIMIT {{limit}}
        execute: UPDATE parcels SET state = 'SENT' WHERE id IN ({{keys}})
        discard: UPDATE parcels SET state = 'LOST' WHERE id IN ({{keys}})
        key: id
`)
	p := startWorker(t, dir)
	eventually(t, "the doctor names it", func() bool {
		stdout, _, _ := runRota(t, dir, "doctor", "-o", "csv")
		return strings.Contains(stdout, "UNDISCARDED") && strings.Contains(stdout, "Discard fails for dead items of queue 0")
	})
	probe(t, p.address(), "/metrics", `rota_conditions{kind="UNDISCARDED",own_sign="BASE",status="PROBLEM",task_type="send"} 1`)
	p.signal(syscall.SIGTERM)
	p.exit()
}
