//go:build linux

package faults

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/schema"
)

func summary(h History) string {
	kinds := map[string]int{}
	for _, e := range h.Events {
		kinds[e.Kind]++
	}
	return fmt.Sprintf("%d items, %d calls, %d drains, %d states of the roster, %d windows, events %v", len(h.Items),
		len(h.Spans), len(h.Drains), len(h.Rosters), len(h.Windows), kinds)
}

// watchRoster reads the roster again and again, each time in a snapshot. It ignores errors, because databases fail
// here.
func (s *scene) watchRoster(ctx context.Context) {
	for ctx.Err() == nil {
		if r, err := s.readRoster(ctx); err == nil {
			if n := len(s.rosters); n == 0 || !cmp.Equal(s.rosters[n-1], r, ignored) {
				s.rosters = append(s.rosters, r)
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// ignored is what two readings of one state of the roster differ in, or what a plan does not look at.
var ignored = cmp.Options{
	cmpopts.IgnoreFields(Roster{}, "At"), cmpopts.IgnoreUnexported(roster.PlanInput{}, plan.Selector{}),
}

func (s *scene) readRoster(ctx context.Context) (r Roster, err error) {
	// TiDB refuses transactions that only read
	o := &sql.TxOptions{ReadOnly: s.c.Dialect() != schema.TiDB, Isolation: sql.LevelRepeatableRead}
	if s.c.Dialect() == schema.SQLite {
		o = nil // each transaction is a snapshot
	}
	tx, err := s.c.DB().BeginTx(ctx, o)
	if err != nil {
		return r, err
	}
	defer tx.Rollback() // it has only read
	var n int
	err = tx.QueryRowContext(ctx, bind(s.c, `SELECT COUNT(*) FROM schedule_task_running WHERE task_type = ?
		AND planned_version = membership_version AND queue_changes IS NULL
		AND skipped IS NULL AND reserved_until IS NULL`), taskType).Scan(&n)
	if err != nil {
		return r, err
	}
	r.At, r.Rest = time.Now(), n > 0
	reader := s.c.Roster().ReaderOn(tx, taskType)
	servers, err := reader.Servers(ctx)
	if err != nil {
		return r, err
	}
	r.Plan, err = reader.PlanInput(ctx, servers)
	return r, err
}

// history collects the records of the database and of the workers.
func (s *stage) history() History {
	h := History{JudgeDead: s.settings.JudgeDeadInterval, Trust: s.trust(), Windows: s.windows, Rosters: s.rosters}
	for _, w := range s.workers {
		spans, drains, stalls := w.history()
		h.Spans, h.Drains, h.Windows = append(h.Spans, spans...), append(h.Drains, drains...), append(h.Windows, stalls...)
	}
	s.rows(`SELECT `+s.instant("event_time")+`, kind, COALESCE(queue_id, ''), COALESCE(from_server, ''),
		COALESCE(to_server, ''),
		COALESCE(epoch, 0) FROM schedule_event WHERE task_type = '`+taskType+`' ORDER BY event_id`, func(r *sql.Rows) error {
		var e Event
		var micros int64
		err := r.Scan(&micros, &e.Kind, &e.Queue, &e.From, &e.To, &e.Epoch)
		e.At = time.UnixMicro(micros)
		h.Events = append(h.Events, e)
		return err
	})
	s.endProved(h.Spans)
	s.rows(`SELECT uuid FROM schedule_server_history WHERE beat_count = 0`, func(r *sql.Rows) error {
		var uuid string
		err := r.Scan(&uuid)
		h.Stillborn = append(h.Stillborn, uuid)
		return err
	})
	for _, at := range s.places() {
		s.rowsIn(at, `SELECT server, queue, epoch, item, seen FROM history ORDER BY seq`, func(r *sql.Rows) error {
			var e Effect
			err := r.Scan(&e.Server, &e.Queue, &e.Epoch, &e.Item, &e.Seen)
			h.Effects = append(h.Effects, e)
			return err
		})
		s.rowsIn(at, `SELECT id, done, effects FROM items ORDER BY id`, func(r *sql.Rows) error {
			var i Item
			err := r.Scan(&i.ID, &i.Done, &i.Effects)
			h.Items = append(h.Items, i)
			return err
		})
	}
	return h
}

// endProved ends the calls of killed processes when another process had proved their end, if that is earlier: a busy
// machine reports an end late to the parent of a process.
func (s *stage) endProved(spans []Span) {
	s.t.Helper()
	s.rows(`SELECT from_server, `+s.instant("event_time")+` FROM schedule_event WHERE kind = '`+ops.EventExpired+`'
		AND reason LIKE '%`+proved+`%' ORDER BY event_id`, func(r *sql.Rows) error {
		var server string
		var micros int64
		err := r.Scan(&server, &micros)
		for i := range spans {
			if at := time.UnixMicro(micros); spans[i].Server == server && spans[i].End.IsZero() && at.Before(spans[i].LastSeen) {
				spans[i].LastSeen = at
			}
		}
		return err
	})
}

// rows reads the rows of a query of the roster's database.
func (s *scene) rows(query string, scan func(*sql.Rows) error) {
	s.t.Helper()
	s.rowsIn(s.c, query, scan)
}

// rowsIn reads the rows of a query of a database.
func (s *scene) rowsIn(at place, query string, scan func(*sql.Rows) error) {
	s.t.Helper()
	rows, err := at.DB().QueryContext(s.t.Context(), query)
	if err != nil {
		s.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		s.t.Fatal(err)
	}
}

// instant returns an expression for a time column in microseconds since 1970.
func (s *scene) instant(column string) string {
	return map[schema.Dialect]string{
		schema.Postgres: "CAST(extract(epoch FROM " + column + ") * 1000000 AS bigint)",
		schema.MySQL:    "CAST(UNIX_TIMESTAMP(" + column + ") * 1000000 AS SIGNED)",
		schema.SQLite:   "CAST(ROUND((julianday(" + column + ") - 2440587.5) * 86400000) AS INTEGER) * 1000",
	}[s.c.Dialect().Family()]
}
