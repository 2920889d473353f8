package manager_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/manager"
)

// S1 S2 S3: a process that serves two task types, one of them in mode RUN, pays one UPDATE and one SELECT per heartbeat
// when nothing changes: it takes no lock. It does not read its queues when only other servers' queues change, which in
// a large roster happens with each heartbeat. The statements are counted on the wire.
func TestTwoStatementsPerHeartbeat(t *testing.T) {
	t.Parallel()
	s := manager.Settings{Queues: 3, HeartbeatInterval: 100 * time.Millisecond, JudgeDeadInterval: time.Minute}
	runs := s
	runs.Mode, runs.Cron = center.ModeRun, "0 0 2 1 1 ? 2099"
	direct, proxy, stop := overheard(t, manager.Serve("settle", idle{}, s), manager.Serve("push", idle{}, runs))
	heartbeats := heartbeatCounter(t, direct)
	untilQuiet(t, proxy, heartbeats)
	// Now and then a process writes its statistics and audits the roster, so one time of several has to be quiet.
	var seen []string
	for range 10 {
		var counted int64
		sent := proxy.Listen(func() {
			counted = heartbeats(20)
			ended := whileOthersMove(t, direct)
			counted += heartbeats(20)
			ended()
		})
		statements := int64(bytes.Count(sent, endOfStatement))
		// A heartbeat that is under way at either end may be counted on one side only.
		if statements >= 2*counted-4 && statements <= 2*counted+4 {
			stop()
			return
		}
		seen = append(seen, fmt.Sprintf("%d in %d", statements, counted))
	}
	t.Fatalf("statements in heartbeats: %q, want twice as many, give or take 4", seen)
}

// untilQuiet waits until both servers have joined, planned, audited, deleted what is old and read their queues, after
// which they send heartbeats only.
func untilQuiet(t *testing.T, proxy *testdb.Proxy, heartbeats func(int64) int64) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		var counted int64
		sent := proxy.Listen(func() { counted = heartbeats(10) })
		if int64(bytes.Count(sent, endOfStatement)) <= 2*counted+2 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("more than heartbeats are sent")
		}
	}
}

// S2 S8 H2: what a hand-over costs. The owner reads its queues when a heartbeat's reply reports the request, and not
// again after the release, because the release's reply says all that is new. The requester polls without reading its
// queues.
func TestHandOverIsReadOnce(t *testing.T) {
	t.Parallel()
	direct, proxy, stop := overheard(t, manager.Serve("settle", idle{}, manager.Settings{
		Queues: 3, HeartbeatInterval: 300 * time.Millisecond, JudgeDeadInterval: time.Minute, // leaves time for a poll in between
	}))
	o := newRosterEditor(t, direct)
	o.until("COUNT(cur_server) = 3 FROM schedule_queue")
	// The other server knows of each request, and is not dead for an hour.
	o.change(`INSERT INTO schedule_server (uuid, task_type, own_sign, state, heartbeat_time, judge_dead_interval_ms, read_plan_version)
		VALUES ('other', 'settle', 'BASE', 'SERVING', clock_timestamp() + interval '10 minutes', 3600000, 1000)`)
	o.beats()

	// The reply to a heartbeat that is under way when a server reads its queues, or releases one, makes it read them once
	// more. So one hand-over of several has to cost no more than it must.
	var costs []string
	for range 10 {
		views, polls := viewsAndPolls(proxy.Listen(func() {
			o.change(`UPDATE schedule_queue SET req_server = 'other', req_since = clock_timestamp(), plan_version = r.plan_version FROM r WHERE queue_id = '0'`)
			o.until("COUNT(*) = 1 FROM schedule_queue WHERE cur_server = 'other'")
			for range 3 {
				o.beats()
			}
		}))
		back, backPolls := viewsAndPolls(proxy.Listen(func() {
			o.change(`UPDATE schedule_queue SET req_server = (SELECT uuid FROM schedule_server WHERE uuid <> 'other'), req_since = clock_timestamp(), plan_version = r.plan_version
				FROM r WHERE queue_id = '0'`)
			for range 5 {
				o.beats()
			}
			o.change(`UPDATE schedule_queue SET cur_server = req_server, req_server = NULL, epoch = epoch + 1, plan_version = r.plan_version FROM r WHERE queue_id = '0'`)
			o.beats()
		}))
		// The owner reads them when it is asked; the requester when it is named, and when the queue has arrived.
		if views == 1 && polls == 0 && back == 2 && backPolls >= 2 {
			stop()
			return
		}
		costs = append(costs, fmt.Sprintf("%d, %d, %d, %d", views, polls, back, backPolls))
	}
	t.Errorf("the owner has read its queues and polled, and so has the requester, %q times, want 1, 0, 2, and at least 2", costs)
	stop()
}

// viewsAndPolls counts the statements that read queues and the statements that poll.
func viewsAndPolls(sent []byte) (views, polls int) {
	parts := bytes.Count(sent, []byte("q.window_done_at")) // a view has two, and each begins as a poll does
	return parts / 2, bytes.Count(sent, []byte("SELECT COALESCE((SELECT n.queue_version")) - parts
}

// rosterEditor plays another server beside the only real one, by SQL.
type rosterEditor struct {
	*testing.T
	db *sql.DB
}

func newRosterEditor(t *testing.T, url string) rosterEditor {
	t.Helper()
	c, err := center.Open(t.Context(), anydb.URL(url), center.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return rosterEditor{t, c.DB()}
}

// until waits until a condition of the database is true.
func (o rosterEditor) until(condition string) {
	o.Helper()
	var yes bool
	for deadline := time.Now().Add(time.Minute); !yes; time.Sleep(10 * time.Millisecond) {
		if err := o.db.QueryRowContext(o.Context(), "SELECT "+condition).Scan(&yes); err != nil || time.Now().After(deadline) {
			o.Fatalf("waited for %s: %v", condition, err)
		}
	}
}

// beats waits for two heartbeats of the real server.
func (o rosterEditor) beats() {
	o.Helper()
	var n int64
	if err := o.db.QueryRowContext(o.Context(), "SELECT beat_count FROM schedule_server WHERE uuid <> 'other'").Scan(&n); err != nil {
		o.Fatal(err)
	}
	o.until(fmt.Sprintf("(SELECT beat_count FROM schedule_server WHERE uuid <> 'other') >= %d", n+2))
}

// change changes the roster as a plan does. It keeps the real server from planning and auditing.
func (o rosterEditor) change(query string) {
	o.Helper()
	if _, err := o.db.ExecContext(o.Context(), `WITH n AS (UPDATE schedule_server_version SET queue_version = queue_version + 1),
		r AS (UPDATE schedule_task_running SET plan_version = plan_version + 1, audited_at = clock_timestamp() RETURNING plan_version) `+query); err != nil {
		o.Fatal(err)
	}
}

// overheard runs a process whose statements pass through a proxy, until it is stopped. direct bypasses the proxy.
func overheard(t *testing.T, tasks ...manager.Task) (direct string, proxy *testdb.Proxy, stop func()) {
	t.Helper()
	direct = testdb.URL(t, testdb.Postgres)
	url, proxy := testdb.Through(t, direct)
	c, err := center.Open(t.Context(), anydb.URL(url), center.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	m, err := manager.New(c, manager.Config{}, tasks...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1) // a test that fails does not wait
	go func() { ended <- m.Run(ctx) }()
	return direct, proxy, func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
}

// whileOthersMove raises the version of the plan again and again, as hand-overs between other servers do, until the
// function that it returns is called.
func whileOthersMove(t *testing.T, url string) (end func()) {
	t.Helper()
	c, err := center.Open(t.Context(), anydb.URL(url), center.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if _, err := c.DB().ExecContext(context.WithoutCancel(ctx), "UPDATE schedule_task_running SET version = version + 1, plan_version = plan_version + 1"); err != nil {
				t.Error(err)
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	return func() {
		cancel()
		<-ended
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// heartbeatCounter returns a function that waits for so many more heartbeats of both servers and returns how many there
// were. It has a connection of its own, which the proxy does not count if url bypasses the proxy.
func heartbeatCounter(t *testing.T, url string) func(int64) int64 {
	t.Helper()
	c, err := center.Open(t.Context(), anydb.URL(url), center.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	read := func() (n int64) {
		if err := c.DB().QueryRowContext(t.Context(), "SELECT COALESCE(MIN(beat_count), 0) FROM schedule_server HAVING COUNT(*) = 2").Scan(&n); err != nil {
			return 0 // they have not both joined yet
		}
		return n
	}
	return func(more int64) int64 {
		first := read()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			if n := read(); n >= first+more {
				return n - first
			}
			if time.Now().After(deadline) {
				t.Fatal("no heartbeats")
			}
		}
	}
}

// endOfStatement is PostgreSQL's message Sync, which ends each statement with parameters. It can be found also if the
// recording starts in the middle of a message.
var endOfStatement = []byte{'S', 0, 0, 0, 4}
