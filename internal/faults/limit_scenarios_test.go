//go:build linux

package faults

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/schema"
)

// limitScenarios are limits of a running database and of the machine.
var limitScenarios = []scenario{
	{name: "too-many-connections", play: tooManyConnections, own: true},
	{name: "read-only", play: readOnly, own: true, guest: true},
	{name: "rights-revoked", play: rightsRevoked, own: true, guest: true},
	{name: "plan-not-allowed", play: planNotAllowed, own: true, guest: true},
	{name: "statement-timeout", play: statementTimeout, own: true, guest: true, proxied: true},
	{name: "disk-full", play: diskFull, kinds: []string{testdb.Postgres}, disk: true},
	{name: "pool-exhausted", play: poolExhausted, pool: 3, quick: true},
	{name: "cpu-starved", play: cpuStarved, kinds: everywhere},
	{name: "default-settings", play: killAtDefaults, slow: true, review: resumedInTime},
}

// tooManyConnections: the server accepts no more connections, not even from its administrator. The workers go on with
// their open connections, and take over from a killed worker.
func tooManyConnections(s *stage) {
	free := s.takeConnections()
	s.works(20)
	w := s.any()
	s.kill(w)
	s.awaitExpiry(w, w.Ended)
	s.awaitBalance()
	s.works(20)
	free()
	s.start(1)
	s.works(20)
}

// takeConnections takes every free connection of the server, and each that becomes free later, until the caller calls
// free.
func (s faultSteps) takeConnections() (free func()) {
	s.t.Helper()
	c, err := center.Open(s.t.Context(), anydb.URL(s.url), center.Options{Schema: center.SchemaRequire})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	full := make(chan struct{})
	var once, closed sync.Once
	var pushing sync.WaitGroup
	pushing.Go(func() {
		for ctx.Err() == nil {
			if conn, err := c.DB().Conn(ctx); err == nil {
				defer conn.Close()
				continue
			}
			once.Do(func() { close(full) })
			time.Sleep(5 * time.Millisecond)
		}
	})
	free = func() {
		closed.Do(func() {
			cancel()
			pushing.Wait()
			_ = c.Close()
		})
	}
	s.t.Cleanup(free)
	<-full
	return free
}

// readOnly: an administrator or a fail-over makes the server refuse writes. PostgreSQL still accepts writes of
// transactions that begin with READ WRITE, and lib/pq begins all transactions so. Items are therefore done until the
// trust ends.
func readOnly(s *stage) {
	on := map[schema.Dialect][]string{
		schema.Postgres: {`ALTER SYSTEM SET default_transaction_read_only = on`, `SELECT pg_reload_conf()`},
		schema.MySQL:    {`SET GLOBAL read_only = 1`},
	}[s.c.Dialect().Family()]
	off := map[schema.Dialect][]string{
		schema.Postgres: {`ALTER SYSTEM RESET default_transaction_read_only`, `SELECT pg_reload_conf()`},
		schema.MySQL:    {`SET GLOBAL read_only = 0`},
	}[s.c.Dialect().Family()]
	s.blockHeartbeats(on, off)
}

// rightsRevoked: the workers lose all rights on the tables of the roster. They keep the rights on their own tables, so
// that only the end of the trust stops them.
func rightsRevoked(s *stage) {
	s.blockHeartbeats(s.perTable("REVOKE ALL ON schedule_% FROM "+guest), s.perTable("GRANT ALL ON schedule_% TO "+guest))
}

// blockHeartbeats runs statements after which the database rejects all heartbeats, and reverts them three dead
// intervals later. All workers lose their trust, and no server may expire.
func (s faultSteps) blockHeartbeats(block, revert []string) {
	s.t.Helper()
	s.exec(block...)
	s.awaitSilence()
	s.exec(revert...)
	s.works(20)
}

// awaitSilence waits until heartbeats stop arriving, and then for three dead intervals.
func (s faultSteps) awaitSilence() {
	s.t.Helper()
	var last int
	var since time.Time
	s.until("heartbeats stop arriving", func() bool {
		now := s.count(`SELECT COALESCE(SUM(beat_count), 0) FROM schedule_server`)
		if since.IsZero() || now >= 0 && now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > 2*s.settings.HeartbeatInterval
	})
	s.sleep(s.dead(3))
	s.addWindow(nil, Partition, since)
}

// planNotAllowed: heartbeats arrive and items are done, but no worker can lock the roster while a worker is killed.
func planNotAllowed(s *stage) {
	s.exec(`REVOKE UPDATE ON schedule_task_running FROM ` + guest)
	w := s.any()
	s.kill(w)
	s.sleep(s.dead(3))
	s.works(5)
	s.exec(`GRANT UPDATE ON schedule_task_running TO ` + guest)
	s.awaitExpiry(w, w.Ended)
	s.awaitBalance()
	s.works(20)
}

// statementTimeout: the server ends long statements, while the workers that rebalance or register wait for a stray
// session.
func statementTimeout(s *stage) {
	s.exec(map[schema.Dialect]string{
		schema.Postgres: `ALTER ROLE app SET statement_timeout = 150`,
		schema.MySQL:    `SET GLOBAL max_execution_time = 150`, // only of a SELECT
		schema.MariaDB:  `SET GLOBAL max_statement_time = 0.15`,
	}[s.c.Dialect()])
	for _, w := range s.workers {
		w.proxy.Cut() // open connections keep the old setting
	}
	s.works(5)
	lockRowHeld(s)
	tx := s.holdLockRow()
	s.launch()
	s.sleep(s.dead(1))
	if err := tx.Rollback(); err != nil {
		s.t.Fatal(err)
	}
	s.awaitBalance()
	s.works(20)
}

// diskFull: the disk has no room for another page, nor for the write-ahead log. PostgreSQL stops for that reason, and
// starts again when there is room.
func diskFull(s *stage) {
	if err := s.server.Fill(); err != nil {
		s.t.Fatal(err)
	}
	s.until("the disk has no room for the write-ahead log", func() bool {
		return s.count(`SELECT COUNT(*) FROM pg_switch_wal()`) < 0
	})
	s.sleep(s.dead(3))
	for _, step := range []func() error{s.server.Free, s.server.Kill, s.server.Start} {
		if err := step(); err != nil {
			s.t.Fatal(err)
		}
	}
	s.works(20)
}

// poolExhausted: a dealer keeps all connections of the dealers. Only the queues of this worker stand still. It still
// sends heartbeats, and no other server expires it.
func poolExhausted(s *stage) {
	w := s.any()
	w.arm(fmt.Sprintf("hog %s", s.dead(3)))
	s.until("the dealer has all connections", func() bool {
		text, err := os.ReadFile(w.notes)
		return err == nil && bytes.Contains(text, []byte(`"hogs"`))
	})
	s.sleep(s.dead(3))
	s.works(queues * backlog)
}

// cpuStarved: all workers run for only a fifth of the time. Each pause is too short to count as a fault.
func cpuStarved(s *stage) {
	for end := time.Now().Add(s.dead(4)); time.Now().Before(end); {
		for _, w := range s.workers {
			w.signal(syscall.SIGSTOP)
		}
		s.sleep(margin(s.settings) / 5)
		for _, w := range s.workers {
			w.signal(syscall.SIGCONT)
		}
		s.sleep(margin(s.settings) / 20)
	}
	s.works(20)
}

// killAtDefaults kills a worker at the default intervals. resumedInTime checks the result.
func killAtDefaults(s *stage) {
	s.sleep(s.dead(1.2)) // the others may expire a server only after they have watched it for so long
	w := s.any()
	s.sleep(s.upTo(s.settings.HeartbeatInterval)) // at any time between two heartbeats
	s.kill(w)
	worst, since := time.Duration(0), time.Now()
	s.until("the other workers own all queues", func() bool {
		var oldest int64
		err := s.c.DB().QueryRowContext(s.t.Context(), bind(s.c, `SELECT MIN(`+s.instant("heartbeat_time")+`)
			FROM schedule_server WHERE pid <> ?`), w.PID).Scan(&oldest)
		if err == nil {
			worst = max(worst, time.Since(time.UnixMicro(oldest)), time.Since(since))
			since = time.Now()
		}
		return s.count(`SELECT COUNT(*) FROM schedule_assignment WHERE status = 'HELD' AND cur_pid <> ?`, w.PID) == queues
	})
	s.works(queues * backlog)
	s.oldest = worst
}

// resumedInTime checks that work is resumed within judge_dead_interval and three heartbeat intervals after the last
// heartbeat of the killed worker: 16 s at the default settings. The database has recorded that heartbeat. If the
// heartbeats of the survivors were late, the machine was too busy to decide.
func resumedInTime(s *stage, h *History) {
	promise := s.settings.JudgeDeadInterval + 3*s.settings.HeartbeatInterval
	var micros int64
	err := s.c.DB().QueryRowContext(s.t.Context(), bind(s.c, `SELECT `+s.instant("heartbeat_time")+`
		FROM schedule_server_history WHERE reason = ?`), ops.EventExpired).Scan(&micros)
	if err != nil {
		s.t.Fatal(err)
	}
	last := time.UnixMicro(micros)
	var taken, resumed time.Duration
	for _, e := range h.Events {
		if e.Kind != ops.EventTakenOver {
			continue
		}
		taken = max(taken, e.At.Sub(last))
		first := slices.IndexFunc(h.Spans, func(p Span) bool { return p.Queue == e.Queue && p.Epoch == e.Epoch })
		if first < 0 {
			s.t.Errorf("queue %s was taken over, and no call of it followed", e.Queue)
			continue
		}
		resumed = max(resumed, h.Spans[first].Begin.Sub(last))
	}
	s.t.Logf("the queues were taken over %.1f s after the last heartbeat and resumed after %.1f s, limit %s; "+
		"the oldest heartbeat of a survivor was %.1f s old",
		taken.Seconds(), resumed.Seconds(), promise, s.oldest.Seconds())
	switch busy := s.settings.HeartbeatInterval * 5 / 4; {
	case taken == 0:
		s.t.Error("no queue was taken over")
	case resumed > promise && s.oldest > busy:
		s.t.Logf("work was resumed too late, but the heartbeats of the survivors were late, too: " +
			"the machine is too busy to decide")
	case resumed > promise:
		s.t.Errorf("work was resumed %s after the last heartbeat, limit %s", resumed, promise)
	}
}

// guest is the database user of the workers in scenarios with a user of their own.
const guest = "app"

// createGuest creates the user and returns the URL of the database for it.
func (s faultSteps) createGuest() string {
	s.t.Helper()
	s.exec(map[schema.Dialect][]string{
		schema.Postgres: {`CREATE ROLE app LOGIN`},
		// a new server opens the test database to all users
		schema.MySQL: {`CREATE USER app`, `DELETE FROM mysql.db`, `FLUSH PRIVILEGES`},
	}[s.c.Dialect().Family()]...)
	s.exec(s.perTable("GRANT ALL ON % TO " + guest)...)
	if s.c.Dialect() == schema.Postgres {
		s.exec(`GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO app`)
	}
	u, err := url.Parse(s.workerURL)
	if err != nil {
		s.t.Fatal(err)
	}
	u.User = url.User(guest)
	return u.String()
}

// perTable returns one statement for each table and view. In the format, % stands for the name of any of them, and
// schedule_% for the name of one of the roster. Rights on tables take effect at once, in each session.
func (s faultSteps) perTable(format string) (statements []string) {
	s.t.Helper()
	prefix := ""
	if strings.Contains(format, "schedule_%") {
		prefix = "schedule_"
	}
	where := map[schema.Dialect]string{schema.Postgres: `'public'`, schema.MySQL: `DATABASE()`}[s.c.Dialect().Family()]
	s.rows(`SELECT table_name FROM information_schema.tables WHERE table_schema = `+where+` ORDER BY table_name`,
		func(r *sql.Rows) error {
			var name string
			err := r.Scan(&name)
			if strings.HasPrefix(name, prefix) {
				statements = append(statements, strings.Replace(format, prefix+"%", name, 1))
			}
			return err
		})
	return statements
}
