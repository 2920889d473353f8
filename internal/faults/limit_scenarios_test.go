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
	"github.com/dutyrota/rota/schema"
)

// limitScenarios are what a database that runs may refuse, and what a machine may withhold.
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

// tooManyConnections: the server takes no more, not even one for its administrator. The workers live on those
// that they have, and take over from one that is killed.
func tooManyConnections(s *stage) {
	leave := s.crowd()
	s.works(20)
	w := s.any()
	s.kill(w)
	s.expiry(w, w.ended)
	s.settle()
	s.works(20)
	leave()
	s.start(1)
	s.works(20)
}

// crowd takes every connection that the server has left, or that comes free, until the returned function is
// called.
func (s *stage) crowd() (leave func()) {
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
	leave = func() {
		closed.Do(func() {
			cancel()
			pushing.Wait()
			_ = c.Close()
		})
	}
	s.t.Cleanup(leave)
	<-full
	return leave
}

// readOnly: an administrator, or a fail-over, makes the server refuse writes. PostgreSQL still takes those of
// transactions that begin with READ WRITE, as those of lib/pq do, so that there is work until the trust ends.
func readOnly(s *stage) {
	on := map[schema.Dialect][]string{
		schema.Postgres: {`ALTER SYSTEM SET default_transaction_read_only = on`, `SELECT pg_reload_conf()`},
		schema.MySQL:    {`SET GLOBAL read_only = 1`},
	}[s.c.Dialect()]
	off := map[schema.Dialect][]string{
		schema.Postgres: {`ALTER SYSTEM RESET default_transaction_read_only`, `SELECT pg_reload_conf()`},
		schema.MySQL:    {`SET GLOBAL read_only = 0`},
	}[s.c.Dialect()]
	s.withhold(on, off)
}

// rightsRevoked: the roster is closed to the workers. Their own tables are not, so that nothing but their trust
// keeps them from going on.
func rightsRevoked(s *stage) {
	s.withhold(s.tablewise("REVOKE ALL ON schedule_% FROM "+guest), s.tablewise("GRANT ALL ON schedule_% TO "+guest))
}

// withhold does something that lets no heartbeat through, and undoes it after three dead intervals. All are
// hit alike: nobody works then, and nobody is expired.
func (s *stage) withhold(what, back []string) {
	s.t.Helper()
	s.exec(what...)
	s.silence()
	s.exec(back...)
	s.works(20)
}

// silence waits until no heartbeat arrives, and for three dead intervals more.
func (s *stage) silence() {
	s.t.Helper()
	var last int
	var since time.Time
	s.until("no heartbeat arrives", func() bool {
		now := s.count(`SELECT COALESCE(SUM(beat_count), 0) FROM schedule_server`)
		if since.IsZero() || now >= 0 && now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > 2*s.settings.HeartbeatInterval
	})
	s.sleep(s.dead(3))
	s.between(nil, Partition, since)
}

// planNotAllowed: heartbeats arrive and items are done, and the roster cannot be locked, while a worker is killed.
func planNotAllowed(s *stage) {
	s.exec(`REVOKE UPDATE ON schedule_task_running FROM ` + guest)
	w := s.any()
	s.kill(w)
	s.sleep(s.dead(3))
	s.works(5)
	s.exec(`GRANT UPDATE ON schedule_task_running TO ` + guest)
	s.expiry(w, w.ended)
	s.settle()
	s.works(20)
}

// statementTimeout: the server ends statements that take long, and those that plan or register wait for a
// stray session.
func statementTimeout(s *stage) {
	s.exec(map[schema.Dialect]string{
		schema.Postgres: `ALTER ROLE app SET statement_timeout = 150`,
		schema.MySQL:    `SET GLOBAL max_statement_time = 0.15`,
	}[s.c.Dialect()])
	for _, w := range s.workers {
		w.proxy.Cut() // what is connected keeps the old setting
	}
	s.works(5)
	lockRowHeld(s)
	tx := s.holdLockRow()
	s.recruit()
	s.sleep(s.dead(1))
	if err := tx.Rollback(); err != nil {
		s.t.Fatal(err)
	}
	s.settle()
	s.works(20)
}

// diskFull: there is no room for as much as a page, nor for the log of what is written. PostgreSQL goes down
// for that, and comes up again if it can.
func diskFull(s *stage) {
	if err := s.server.Fill(); err != nil {
		s.t.Fatal(err)
	}
	s.until("there is no room for the log", func() bool { return s.count(`SELECT COUNT(*) FROM pg_switch_wal()`) < 0 })
	s.sleep(s.dead(3))
	for _, step := range []func() error{s.server.Free, s.server.Kill, s.server.Start} {
		if err := step(); err != nil {
			s.t.Fatal(err)
		}
	}
	s.works(20)
}

// poolExhausted: a dealer keeps the connections that were made for dealers. That is the affair of its own
// queues; it beats as before, and nobody takes it for dead.
func poolExhausted(s *stage) {
	w := s.any()
	w.arm(fmt.Sprintf("hog %s", s.dead(3)))
	s.until("it has them all", func() bool {
		text, err := os.ReadFile(w.notes)
		return err == nil && bytes.Contains(text, []byte(`"hogs"`))
	})
	s.sleep(s.dead(3))
	s.works(queues * backlog)
}

// cpuStarved: everybody runs for a fifth of the time only. No pause is as long as to count.
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

// killAtDefaults: see resumedInTime.
func killAtDefaults(s *stage) {
	s.sleep(s.dead(1.2)) // so that the others have watched for long enough
	w := s.any()
	s.sleep(s.upTo(s.settings.HeartbeatInterval)) // anywhere in the rhythm of its heart
	s.kill(w)
	worst, since := time.Duration(0), time.Now()
	s.until("the others work all its queues", func() bool {
		var oldest int64
		err := s.c.DB().QueryRowContext(s.t.Context(), bind(s.c, `SELECT MIN(`+s.instant("heartbeat_time")+`) FROM schedule_server WHERE pid <> ?`), w.pid).Scan(&oldest)
		if err == nil {
			worst = max(worst, time.Since(time.UnixMicro(oldest)), time.Since(since))
			since = time.Now()
		}
		return s.count(`SELECT COUNT(*) FROM schedule_assignment WHERE status = 'HELD' AND cur_pid <> ?`, w.pid) == queues
	})
	s.works(queues * backlog)
	s.oldest = worst
}

// resumedInTime: work is resumed within judge_dead_interval and three heartbeats of the last sign of life, 16 s
// by default. The database tells when that was. Where the machine was so busy that the survivors' own
// heartbeats were late, it says nothing.
func resumedInTime(s *stage, h *History) {
	promise := s.settings.JudgeDeadInterval + 3*s.settings.HeartbeatInterval
	var micros int64
	err := s.c.DB().QueryRowContext(s.t.Context(), bind(s.c, `SELECT `+s.instant("heartbeat_time")+` FROM schedule_server_history WHERE reason = ?`), center.EventExpired).Scan(&micros)
	if err != nil {
		s.t.Fatal(err)
	}
	beat := time.UnixMicro(micros)
	var taken, resumed time.Duration
	for _, e := range h.Events {
		if e.Kind != center.EventTakenOver {
			continue
		}
		taken = max(taken, e.At.Sub(beat))
		first := slices.IndexFunc(h.Spans, func(p Span) bool { return p.Queue == e.Queue && p.Epoch == e.Epoch })
		if first < 0 {
			s.t.Errorf("queue %s was taken over and never worked", e.Queue)
			continue
		}
		resumed = max(resumed, h.Spans[first].Begin.Sub(beat))
	}
	s.t.Logf("taken over %.1f s after the last heartbeat, resumed after %.1f s, promised are %s; the survivors' oldest heartbeat was %.1f s old",
		taken.Seconds(), resumed.Seconds(), promise, s.oldest.Seconds())
	switch busy := s.settings.HeartbeatInterval * 5 / 4; {
	case taken == 0:
		s.t.Error("nothing was taken over")
	case resumed > promise && s.oldest > busy:
		s.t.Logf("too late, but so were the heartbeats: this machine is too busy to tell")
	case resumed > promise:
		s.t.Errorf("work was resumed %s after the last heartbeat, promised are %s", resumed, promise)
	}
}

// guest is the user of workers that have one of their own.
const guest = "app"

// invite makes the user and returns the URL for it.
func (s *stage) invite() string {
	s.t.Helper()
	s.exec(map[schema.Dialect][]string{
		schema.Postgres: {`CREATE ROLE app LOGIN`},
		schema.MySQL:    {`CREATE USER app`, `DELETE FROM mysql.db`, `FLUSH PRIVILEGES`}, // in a new server the test database is everybody's
	}[s.c.Dialect()]...)
	s.exec(s.tablewise("GRANT ALL ON % TO " + guest)...)
	if s.c.Dialect() == schema.Postgres {
		s.exec(`GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO app`)
	}
	u, err := url.Parse(s.entry)
	if err != nil {
		s.t.Fatal(err)
	}
	u.User = url.User(guest)
	return u.String()
}

// tablewise writes a statement for each table and view, whose name takes the place of the %, or for those of
// the roster, in the place of schedule_%. Rights on tables count at once, in each session.
func (s *stage) tablewise(format string) (statements []string) {
	s.t.Helper()
	prefix := ""
	if strings.Contains(format, "schedule_%") {
		prefix = "schedule_"
	}
	where := map[schema.Dialect]string{schema.Postgres: `'public'`, schema.MySQL: `DATABASE()`}[s.c.Dialect()]
	s.rows(`SELECT table_name FROM information_schema.tables WHERE table_schema = `+where+` ORDER BY table_name`, func(r *sql.Rows) error {
		var name string
		err := r.Scan(&name)
		if strings.HasPrefix(name, prefix) {
			statements = append(statements, strings.Replace(format, prefix+"%", name, 1))
		}
		return err
	})
	return statements
}
