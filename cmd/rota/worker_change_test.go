package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

// worker pause, resume, drain and weight take a process with several task types, or a host, and say what happens to each
// server.
func TestServersOfAProcessOrHost(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		const regions, second = "web1:1:00000003", "web1:7:00000004"
		s.serve("regions", regions) // the same process as web1
		s.serve("regions", second)
		want := func(what string, states map[string]string) {
			t.Helper()
			for uuid, state := range states {
				if n := count(t, s.c.DB(), "schedule_server WHERE uuid = '"+uuid+"' AND state = '"+state+"'"); n != 1 {
					t.Errorf("after %s, %s is not %s", what, uuid, state)
				}
			}
		}
		for _, args := range []string{"queue list --worker web1:1 -o csv", "queue list --worker web1 -o csv"} {
			if out := s.run(args); strings.Count(out, ","+web1+",") != 4 || strings.Count(out, ","+regions+",") != 2 {
				t.Errorf("%s: want the queues of both workers, got\n%s", args, out)
			}
		}
		s.wantOutput("worker pause web1:1 --dry-run", `^web1:1:00000003 \(regions\): would be paused; its 2 queues go to 1 other worker as it finishes what it has in flight
web1:1:00000001 \(settle\): would be paused; its 4 queues go to 1 other worker as it finishes what it has in flight\n$`)
		want("a dry run", map[string]string{web1: ops.StateStandby, regions: ops.StateStandby})

		s.wantOutput("worker pause web1:1", `^web1:1:00000003 \(regions\): paused; its 2 queues go .*\nweb1:1:00000001 \(settle\): paused; its 4 queues go .*\n$`)
		want("pause of a process", map[string]string{web1: ops.StatePaused, regions: ops.StatePaused, second: ops.StateStandby, web2: ops.StateStandby})
		s.wantOutput("worker resume web1:1", `^web1:1:00000003 \(regions\): resumed; it may own queues again\nweb1:1:00000001 `)
		want("resume of a process", map[string]string{web1: ops.StateStandby, regions: ops.StateStandby})

		s.run("queue pin settle 0 host=web1")
		s.wantOutput("worker pause web1:1 --dry-run", `\(settle\): would be paused; 3 of its 4 queues go to 1 other worker as it finishes what it has in flight; `+
			`no other worker can take the rest now: they wait for one\n$`)
		s.wantOutput("worker drain web1:1 --force --dry-run", `\(settle\): would be drained; 3 of its 4 queues go to 1 other worker at once; `+
			`the rest has no owner until another worker can take over\n$`)
		s.run("queue unpin settle 0")
		s.wantOutput("worker drain web1 --dry-run", `\(regions\): would be drained; no other worker can take its 2 queues now: it works on until one can\n`)
		s.wantOutput("worker drain web1 --dry-run --force", `\(regions\): would be drained; its 2 queues have no owner until another worker can take over\n`)
		s.wantOutput("worker pause web1 --dry-run", `\(regions\): would be paused; no other worker can take its 2 queues now: they wait for one\n`)
		var records []map[string]any
		s.must(json.Unmarshal([]byte(s.run("worker drain web1 -o json")), &records))
		want("drain of a host", map[string]string{web1: ops.StateDraining, regions: ops.StateDraining, second: ops.StateDraining, web2: ops.StateStandby})
		if len(records) != 3 || records[2]["uuid"] != web1 || records[2]["queues"] != 4.0 || records[2]["other_servers"] != 1.0 {
			t.Errorf("records of drained workers: %v", records)
		}
		s.wantOutput("worker weight web2 3 --dry-run", `^web2:2:00000002 \(settle\): would be given weight 3; it had weight 1 and owns 0 queues\n$`)
		s.wantOutput("plan settle --weight web1=0 --weight web2=3 -o json", `"moved": 4,`)
		s.wantOutput("worker weight web1:1 0", `^web1:1:00000003 \(regions\): given weight 0; .*\nweb1:1:00000001 \(settle\): given weight 0; its 4 queues go to 1 other worker .*\n$`)
		if n := count(t, s.c.DB(), "schedule_server WHERE weight = 0"); n != 2 {
			t.Errorf("%d workers have weight 0, want both of the process", n)
		}
		s.wantOutput("worker drain web2:2", `^web2:2:00000002 \(settle\): drained; it owns no queues, and gets none until it is resumed\n$`)
	})
}
