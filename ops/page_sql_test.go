package ops_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

var (
	sqlBlock   = regexp.MustCompile("(?s)```sql\n(.*?)```")
	sqlComment = regexp.MustCompile(`(?m)^--.*\n`)
)

// pageStatements returns the SQL statements about the roster, of README.md and the pages of docs, that begin with a
// keyword.
func pageStatements(t *testing.T, keyword string) (list []string) {
	t.Helper()
	pages, err := filepath.Glob("../docs/*.md")
	must(t, err)
	for _, page := range append(pages, "../README.md") {
		text, err := os.ReadFile(page)
		must(t, err)
		for _, block := range sqlBlock.FindAllStringSubmatch(string(text), -1) {
			for statement := range strings.SplitSeq(sqlComment.ReplaceAllString(block[1], ""), ";") {
				statement = strings.TrimSpace(statement)
				if strings.HasPrefix(statement, keyword) && strings.Contains(statement, "schedule_") {
					list = append(list, statement)
				}
			}
		}
	}
	if len(list) == 0 {
		t.Fatalf("statements that begin with %s: got none", keyword)
	}
	return list
}

// The queries of the pages run unchanged on each database. Those about queues without an owner return no row.
func TestPageSelects(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Open(t, url, center.Options{})
		seedRoster(t, c)
		centertest.Exec(t, c,
			"INSERT INTO schedule_backlog (task_type, own_sign, queue_id, epoch, items, measured_at, took_ms) VALUES ('settle', 'BASE', '0', 1, 7, '2026-01-01 00:00:00', 1)",
			"INSERT INTO schedule_event (event_time, task_type, own_sign, kind, reason) VALUES ('2026-01-01 00:00:00', 'settle', 'BASE', 'ALERT', 'FAILING')")
		centertest.Exec(t, c, pageStatements(t, "UPDATE")...)
		centertest.Exec(t, c, "INSERT INTO schedule_run (run_id, task_type, own_sign, run_key, root_run_id, state, scheduled_at) VALUES ('r2', 'reindex', 'BASE', 'k', 'r2', 'SUCCESS', '2026-01-01 00:00:00')",
			"INSERT INTO schedule_run_queue (run_id, queue_id, state) VALUES ('r2', '0', 'DONE')",
			"INSERT INTO schedule_run_item (run_id, queue_id, item_no, item_key, attempt, failed_at) VALUES ('r2', '0', 1, '17', 1, '2026-01-01 00:00:00')")
		for _, query := range pageStatements(t, "SELECT") {
			n := centertest.CountRows(t, c, query)
			if wantNone := strings.Contains(query, "UNASSIGNED"); n == 0 != wantNone {
				t.Errorf("%s\ngot %d rows, want none: %t", query, n, wantNone)
			}
		}
	})
}

// seedRoster makes a roster that has rows for each of the pages' queries: web1 owns four queues, web2 requests two of
// them, an item is dead, and there is a run.
func seedRoster(t *testing.T, c *center.Center) {
	t.Helper()
	centertest.Define(t, c, "settle", center.Settings{Queues: 4})
	for _, uuid := range []string{web1, web2} {
		host, _, _ := strings.Cut(uuid, ":")
		_, err := c.Roster().Register(t.Context(), roster.ServerInfo{UUID: uuid, TaskType: "settle", Host: host, JudgeDeadInterval: time.Minute})
		must(t, err)
		_, err = c.Roster().Planner("settle", uuid).Rebalance(t.Context(), roster.RebalanceOptions{})
		must(t, err)
	}
	centertest.Exec(t, c, "INSERT INTO schedule_run (run_id, task_type, own_sign, run_key, root_run_id, state, scheduled_at) VALUES ('r1', 'settle', 'BASE', 'k', 'r1', 'SUCCESS', '2026-01-01 00:00:00')",
		"INSERT INTO schedule_run_queue (run_id, queue_id, state) VALUES ('r1', '0', 'DONE')",
		"INSERT INTO schedule_run_item (run_id, queue_id, item_no, item_key, attempt, failed_at) VALUES ('r1', '0', 1, '17', 1, '2026-01-01 00:00:00')")
	dead := failures.Item{Key: "17", QueueID: "1", State: ops.ItemDead, Attempts: 25}
	must(t, failures.Of(c.Roster()).Save(t.Context(), "settle", []failures.Item{dead}))
}
