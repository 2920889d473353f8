package scale

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"time"

	"github.com/dutyrota/rota/bench/internal/report"
	"github.com/dutyrota/rota/bench/internal/stage"
	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/roster"
)

// Growth is the cost of a roster of some size. Only one of its servers sends heartbeats.
type Growth struct {
	Size
	Statements, RowsRead float64       // per heartbeat
	CPU                  float64       // of the database, in milliseconds per heartbeat; 0 if unknown
	Bare                 float64       // of the database, in milliseconds for a bare UPDATE and SELECT by key; 0 if unknown
	Beat                 time.Duration // duration of a heartbeat
	Plan                 time.Duration // how long the plan of a join holds the lock row
}

// still is the heartbeat interval of the servers that send no heartbeats.
const still = time.Hour

// grow makes a roster, and measures heartbeats and the plan of a join; in that of the full size, also what viewers cost.
func grow(ctx context.Context, s *stage.Server, size Size, o Options, r *Result) (Growth, error) {
	g := Growth{Size: size}
	f, err := newFleet(ctx, s, Options{Queues: size.Queues, Servers: size.Servers, Heartbeat: still})
	if err != nil {
		return g, err
	}
	defer f.close(ctx)
	servers, err := f.register(ctx, size.Servers)
	if err != nil {
		return g, err
	}
	if err := f.plan(ctx, servers[0]); err != nil {
		return g, err
	}
	analyze := map[string]string{stage.Postgres: "ANALYZE", stage.MariaDB: "ANALYZE TABLE schedule_server, schedule_queue"}
	if err := f.db.Do(ctx, analyze[s.Kind]); err != nil {
		return g, err
	}
	if err := f.beatAlone(ctx, &g, servers[0], o.Beats); err != nil {
		return g, err
	}
	if g.Bare, err = f.bare(ctx, s.Kind, servers[0].uuid, o.Beats); err != nil {
		return g, err
	}
	f.takeLocks()
	joined, err := f.register(ctx, 1)
	if err != nil {
		return g, err
	}
	f.takeLocks() // drops that of the registration
	if err := f.plan(ctx, joined[0]); err != nil {
		return g, err
	}
	g.Plan = f.takeLocks()[0]
	if size == (Size{o.Queues, o.Servers}) {
		stage.Progress("scale: %s: %d people look at the console for %s", r.Database, viewerCount, o.Watch)
		r.Viewers, err = f.look(ctx, o)
	}
	return g, err
}

func (f *fleet) plan(ctx context.Context, s *server) error {
	_, err := s.h.c.Roster().Planner(taskType, s.uuid).Rebalance(ctx, roster.RebalanceOptions{Always: true})
	return err
}

// first is the number of heartbeats at the beginning of a connection that differ from the rest. PostgreSQL plans a
// prepared statement for its values five times, and reads a whole table for a part of it if that seems no dearer.
const first = 10

// beatAlone sends heartbeats for one server over a connection of its own. It closes the connection before it reads the
// counters: only then are they complete. It measures the cost of opening, the first heartbeats and closing separately,
// and subtracts it.
func (f *fleet) beatAlone(ctx context.Context, g *Growth, s *server, beats int) error {
	beat := func(times int) (u stage.Usage, took time.Duration, err error) {
		u, err = f.db.Measure(ctx, func() error {
			c, err := center.Open(ctx, anydb.URL(f.db.URL), center.Options{})
			if err != nil {
				return err
			}
			defer c.Close()
			s.h = &heartbeater{f: f, c: c}
			start := time.Now()
			for range times {
				s.beat(ctx)
			}
			took = time.Since(start)
			if n := f.fails.Load(); n > 0 {
				return fmt.Errorf("%d heartbeats failed", n)
			}
			return ctx.Err()
		})
		return u, took, err
	}
	if _, _, err := beat(1); err != nil { // which reads the servers to watch
		return err
	}
	base, _, err := beat(first)
	if err != nil {
		return err
	}
	u, took, err := beat(first + beats)
	if err != nil {
		return err
	}
	n := float64(beats)
	g.Statements, g.RowsRead = (u.Statements-base.Statements)/n, (u.RowsRead-base.RowsRead)/n
	g.CPU = float64(u.CPU-base.CPU) / 1e6 / n
	g.Beat = took / time.Duration(first+beats)
	return nil
}

// bare returns the processor time of the database, in milliseconds, for the least that a heartbeat could be: an UPDATE
// and a SELECT of the server's row by its key, prepared, on one connection.
func (f *fleet) bare(ctx context.Context, kind, uuid string, times int) (ms float64, err error) {
	queries := map[string][2]string{
		stage.Postgres: {
			"UPDATE schedule_server SET beat_token = $1, heartbeat_time = clock_timestamp() WHERE uuid = $2",
			"SELECT clock_timestamp(), state, beat_token FROM schedule_server WHERE uuid = $1",
		},
		stage.MariaDB: {
			"UPDATE schedule_server SET beat_token = ?, heartbeat_time = UTC_TIMESTAMP(6) WHERE uuid = ?",
			"SELECT UTC_TIMESTAMP(6), state, beat_token FROM schedule_server WHERE uuid = ?",
		},
	}[kind]
	conn, err := f.db.Conn(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	update, err := conn.PrepareContext(ctx, queries[0])
	if err != nil {
		return 0, err
	}
	defer update.Close()
	read, err := conn.PrepareContext(ctx, queries[1])
	if err != nil {
		return 0, err
	}
	defer read.Close()
	send := func(times int) error {
		for range times {
			var now, state, token any
			if _, err := update.ExecContext(ctx, rand.Text(), uuid); err != nil {
				return err
			}
			if err := read.QueryRowContext(ctx, uuid).Scan(&now, &state, &token); err != nil {
				return err
			}
		}
		return nil
	}
	if err := send(first); err != nil {
		return 0, err
	}
	before := f.db.Server.CPU()
	err = send(times)
	return float64(f.db.Server.CPU()-before) / 1e6 / float64(times), err
}

func growthTable(results []*Result) report.Table {
	t := report.Table{
		Title:   "Growth",
		Columns: []string{"database", "queues", "workers", "statements per heartbeat", "rows read", "database CPU", "beside a bare UPDATE and SELECT", "a heartbeat takes", "lock row held when a worker joins"},
		Note:    "All servers own the same number of queues. A heartbeat reads the rows of the server's own queues and of the servers that it watches.",
	}
	for _, r := range results {
		for _, g := range r.Growth {
			t.Add(r.Database, g.Queues, g.Servers, f2(g.Statements), f2(g.RowsRead), f2(g.CPU)+" ms", f2(g.CPU/g.Bare), g.Beat.Round(time.Microsecond), g.Plan.Round(10*time.Microsecond))
		}
	}
	return t
}

// flat returns the goals that a heartbeat costs the same with ten times as many servers, and little more than the least
// that it could.
func flat(results []*Result, o Options) (goals []report.Goal) {
	for _, r := range results {
		some, many := math.NaN(), math.NaN()
		for _, g := range r.Growth {
			if perServer(g) != perServer(Growth{Size: Size{o.Queues, o.Servers}}) {
				continue
			}
			switch g.Servers {
			case o.Servers / 10:
				some = g.RowsRead
			case o.Servers:
				many = g.RowsRead
				goals = append(goals, report.AtMost(fmt.Sprintf("%s: database CPU of a heartbeat / of a bare UPDATE and SELECT, %d workers", r.Database, o.Servers), "%.2f", 1.3, g.CPU/g.Bare))
			}
		}
		goals = append(goals, report.AtMost(fmt.Sprintf("%s: rows read per heartbeat, %d workers / %d workers", r.Database, o.Servers, o.Servers/10), "%.2f", 1.2, many/some))
	}
	return goals
}

func perServer(g Growth) int { return g.Queues / g.Servers }
