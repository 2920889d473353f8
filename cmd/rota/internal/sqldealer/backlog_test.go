package sqldealer

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/schema"
)

// backlogOf returns the backlog of queue 1 of 2 by a statement.
func backlogOf(s shop, statement string) (processor.Backlog, error) {
	s.Helper()
	c := discardOrders
	c.Backlog = statement
	d := s.dealer(c)
	return d.Use(s.DB()).Backlog(s.Context(), processor.Selection{
		OwnSign: "TEST", Queue: processor.Queue{ID: "1", Index: 1}, Total: 2,
	})
}

// The statement counts the rows of the queue, and tells the time of the oldest in the types of each database.
func TestBacklog(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		kinds := map[schema.Dialect][]string{
			schema.Postgres: {"timestamptz", "timestamp", "date"}, schema.MySQL: {"DATETIME(6)", "TIMESTAMP(3)", "DATE"}, schema.SQLite: {"TEXT", "DATETIME", ""},
		}[s.Dialect().Family()]
		s.exec("CREATE TABLE job (id INTEGER PRIMARY KEY, a "+kinds[0]+", b "+kinds[1]+", c "+kinds[2]+")",
			"INSERT INTO job VALUES (1, '2026-03-01 12:00:00', '2026-03-01 12:00:00', '2026-03-01')",
			"INSERT INTO job VALUES (2, '2020-03-01 12:00:00', '2020-03-01 12:00:00', '2020-03-01')",
			"INSERT INTO job VALUES (3, '2026-03-02 12:00:00', '2026-03-02 12:00:00', '2026-03-02')")
		from := " FROM job WHERE {{mine id}}"
		day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		for column, want := range map[string]time.Time{"a": day.Add(12 * time.Hour), "b": day.Add(12 * time.Hour), "c": day} {
			b, err := backlogOf(s, "SELECT count(*), min("+column+")"+from)
			if err != nil || b.Items != 2 || !b.Oldest.Equal(want) {
				t.Errorf("column %s: %+v, %v, want 2 items since %s", column, b, err, want)
			}
		}
		b, err := backlogOf(s, "SELECT count(*), 90.5"+from)
		if age := time.Since(b.Oldest); err != nil || age < 90*time.Second || age > 10*time.Minute {
			t.Errorf("an age: %+v, %v, want 90 s", b, err)
		}
		b, err = backlogOf(s, "SELECT count(*), -1.5"+from) // the clock of the program that inserted it is ahead
		if age := time.Since(b.Oldest); err != nil || age < 0 || age > 10*time.Minute {
			t.Errorf("an age below 0: %+v, %v, want 0 s", b, err)
		}
		if b, err := backlogOf(s, "SELECT count(*)"+from); err != nil || b.Items != 2 || !b.Oldest.IsZero() {
			t.Errorf("one column: %+v, %v", b, err)
		}
		if b, err := backlogOf(s, "SELECT count(*), min(a) FROM job WHERE id > 9 AND {{index}} = 1"); err != nil || b.Items != 0 || !b.Oldest.IsZero() {
			t.Errorf("nothing left: %+v, %v", b, err)
		}
		for statement, want := range map[string]string{
			"SELECT 1, 2, 3 FROM job WHERE {{index}} = 1":              "3 columns",
			"SELECT 1 FROM job WHERE {{index}} = 1":                    "several rows",
			"SELECT 1 FROM job WHERE {{index}} = 7":                    "no row",
			"SELECT 1, 'soon' FROM job WHERE {{index}} = 1 AND id = 1": "\"soon\"",
			"SELECT 'all' FROM job WHERE {{index}} = 1 AND id = 1":     "run backlog: ",
			"SELECT count(*) FROM missing_table WHERE {{index}} = 1":   "missing_table",
		} {
			if _, err := backlogOf(s, statement); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q in it", statement, err, want)
			}
		}
		if _, err := backlogOf(s, ""); !errors.Is(err, processor.ErrNoBacklog) {
			t.Errorf("without the statement: %v", err)
		}
	})
}

// The file is refused for what cannot count the rows of a queue.
func TestBacklogIsChecked(t *testing.T) {
	tests := map[string]struct {
		backlog string
		mode    string
		want    string
	}{
		"all queues": {"SELECT count(*) FROM orders", "", "tasks.settle.dealer.sql.backlog counts the same rows for every queue"},
		"limit":      {"SELECT count(*) FROM orders LIMIT {{limit}}", "", "{{limit}}"},
		"a run":      {"SELECT count(*) FROM orders WHERE {{index}} = 1", center.ModeRun, "tasks.settle.dealer.sql.backlog has no effect in mode RUN"},
	}
	for name, test := range tests {
		c := discardOrders
		c.Discard, c.Backlog = "", test.backlog
		_, err := newDealer(config.Task{Name: "settle", Settings: center.Settings{Queues: 2, Mode: test.mode}, SQL: c}, schema.SQLite)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q in it", name, err, test.want)
		}
	}
}
