//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/processor"
)

// notingProgram is a program that keeps its requests in a file and says that the row 1 is done.
const notingProgram = `while IFS= read -r line; do
	printf '%s\n' "$line" >> requests
	printf '{"batch":"%s","items":[{"key":"1","result":"done"}]}\n' "$(printf %s "$line" | sed 's/.*"batch":"\([A-Z0-9]*\)".*/\1/')"
done
`

// Each field of a run reaches a command, a service and an endpoint that a real worker calls: the slot of a backfilled
// run, the next one, the params, the key and the attempt.
func TestProgramsGetTheFieldsOfARun(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		requests := make(chan []byte, 2)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			requests <- body
			var b struct{ Batch string }
			_ = json.Unmarshal(body, &b)
			_, _ = fmt.Fprintf(w, `{"batch":%q,"items":[{"key":"1","result":"done"}]}`, b.Batch)
		}))
		t.Cleanup(server.Close)
		db, dir := openOrders(t, url, 0)
		execute(t, db, "CREATE TABLE todo (task VARCHAR(20), id INTEGER, done INTEGER)")
		execute(t, db, "INSERT INTO todo VALUES ('command', 1, 0), ('service', 1, 0), ('endpoint', 1, 0)")
		task := func(name, columns, dealer string) string {
			return `
  ` + name + `:
    mode: RUN
    queues: 1
    heartbeat_interval: 200ms
    dealer:
      sql:
        select: SELECT id` + columns + ` FROM todo WHERE task = '` + name + `' AND done = 0 AND {{index}} = 0 LIMIT {{limit}}
        execute: UPDATE todo SET done = 1 WHERE task = '` + name + `' AND id IN ({{keys}})
        key: id
      ` + dealer
		}
		columns := ", {{params.region}} AS region"
		for _, f := range processor.RunFields() {
			columns += ", {{" + f.Name + "}} AS f_" + strings.ReplaceAll(f.Name, ".", "_")
		}
		writeFile(t, filepath.Join(dir, "program.sh"), notingProgram)
		writeFile(t, filepath.Join(dir, "rota.yaml"), "database: "+url+"\ntasks:"+
			task("command", "", "command: [sh, program.sh]")+task("service", "", "http: "+server.URL)+
			task("endpoint", columns, "http: {each: true, url: '"+server.URL+"'}")+"\n")
		p := startWorker(t, dir)
		s := &testRoster{T: t, url: url, dir: dir}
		rows := map[string]map[string]any{}
		for _, name := range []string{"command", "service", "endpoint"} {
			eventually(t, "the worker has made the task type", func() bool { return count(t, db, "schedule_task_type WHERE task_type = '"+name+"'") == 1 })
			s.run("trigger apply "+name+" --task "+name+" --time-zone Europe/Berlin", "--cron", "0 30 0 * * ?", "--params", `{"region": "eu"}`)
			s.run("run backfill " + name + " --from 2025-03-28 --to 2025-03-29")
			eventually(t, name+" is done", func() bool {
				return count(t, db, "schedule_run WHERE state = 'SUCCESS' AND task_type = '"+name+"'") == 1
			})
			var request struct {
				Run   map[string]any
				Items []struct{ Row map[string]any }
			}
			var text []byte
			if name == "command" {
				text, _ = os.ReadFile(filepath.Join(dir, "requests"))
			} else {
				text = <-requests
			}
			if name == "endpoint" {
				s.must(json.Unmarshal(text, &request.Run))
			} else {
				s.must(json.Unmarshal(text, &request))
			}
			rows[name] = request.Run
		}
		p.signal(syscall.SIGTERM)
		if code := p.exit(); code != 0 {
			t.Errorf("exit code %d after SIGTERM", code)
		}
		want := map[string]string{
			"attempt": "1", "slot": "2025-03-27T23:30:00Z", "slot.utc_date": "2025-03-27", "slot.date": "2025-03-28",
			"slot.local": "2025-03-28 00:30:00", "slot_end": "2025-03-28T23:30:00Z", "slot_end.utc_date": "2025-03-28",
			"slot_end.date": "2025-03-29", "slot_end.local": "2025-03-29 00:30:00",
		}
		for name, got := range rows {
			var runKey string
			s.must(db.QueryRowContext(t.Context(), "SELECT run_key FROM schedule_run WHERE task_type = '"+name+"'").Scan(&runKey))
			want["run_key"] = runKey
			for _, f := range processor.RunFields() {
				key, text := f.Name, want[f.Name]
				if name == "endpoint" { // a column of the sql dealer
					key = "f_" + strings.ReplaceAll(f.Name, ".", "_")
					if f.Name == "slot" || f.Name == "slot_end" {
						text = strings.Replace(strings.TrimSuffix(text, "Z"), "T", " ", 1)
					}
				}
				if value, ok := got[key]; !ok || text == "" || !strings.HasPrefix(fmt.Sprint(value), text) {
					t.Errorf("%s gets %s %v (%t), want %s", name, key, value, ok, text)
				}
			}
		}
		for name, key := range map[string]string{"command": "params", "service": "params", "endpoint": "region"} {
			if text := fmt.Sprint(rows[name][key]); !strings.Contains(text, "eu") {
				t.Errorf("%s gets %s %s", name, key, text)
			}
		}
	})
}
