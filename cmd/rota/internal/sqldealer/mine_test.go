package sqldealer

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/schema"
)

// ofQueue returns a selection of queue index of total.
func ofQueue(index, total int) processor.Selection {
	s := selection()
	s.Queue.ID, s.Queue.Index, s.Total, s.Limit = strconv.Itoa(index), index, total, 100
	return s
}

// mineOf is a dealer whose rows are divided by an expression.
func mineOf(placeholder string) config.SQLDealer {
	return config.SQLDealer{
		Select:     "SELECT id, customer, region FROM events WHERE id > {{after}} AND NOT {{held}} AND " + placeholder + " AND sent = 0 ORDER BY id LIMIT {{limit}}",
		Execute:    "UPDATE events SET sent = 1 WHERE id IN ({{keys}})",
		Backlog:    "SELECT count(*) FROM events WHERE sent = 0 AND " + placeholder,
		Key:        []string{"id"},
		AfterStart: []string{"0"},
		OrderKey:   "customer",
	}
}

func (s shop) events() {
	s.Helper()
	s.exec("CREATE TABLE events (id BIGINT PRIMARY KEY, customer BIGINT, region VARCHAR(20), sent INTEGER NOT NULL)",
		"INSERT INTO events VALUES (1, -7, 'north', 0), (2, NULL, NULL, 0), (3, 5, 'grün', 0), (4, -8, '', 0), (5, 5, 'north', 0)")
}

// Each row belongs to one queue, also if its key is negative or NULL (N4). The select, the backlog and the peek agree.
func TestMine(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.events()
		hash := s.Dialect().Hash
		for placeholder, key := range map[string]func(r Row) int64{
			"{{mine customer}}": func(r Row) int64 { return map[string]int64{"1": -7, "3": 5, "4": -8, "5": 5}[encode(r.values[0])] },
			"({{ mine  events.id / 1 }})": func(r Row) int64 {
				id, _ := strconv.ParseInt(encode(r.values[0]), 10, 64)
				return id
			},
			"{{mine_hash region}}": func(r Row) int64 {
				return map[string]int64{"1": hash("north"), "3": hash("grün"), "4": hash(""), "5": hash("north")}[encode(r.values[0])]
			},
			"{{mine_hash lower(events.region)}}": func(r Row) int64 {
				return map[string]int64{"1": hash("north"), "3": hash("grün"), "4": hash(""), "5": hash("north")}[encode(r.values[0])]
			},
		} {
			d := s.dealer(mineOf(placeholder))
			if err := d.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			var seen []string
			for _, total := range []int{1, 2, 4, 8} {
				var peeks []processor.Selection
				var busy, ids []string
				var left int64
				for index := range total {
					sel := ofQueue(index, total)
					sel.Held = []string{"99"}
					peeks = append(peeks, sel)
					rows, err := d.Select(t.Context(), sel)
					if err != nil {
						t.Fatal(err)
					}
					for _, r := range rows {
						ids = append(ids, d.Key(r))
						if of := processor.QueueOf(key(r), total); of != index {
							t.Errorf("%s: row %s is in queue %d of %d, want %d", placeholder, d.Key(r), index, total, of)
						}
					}
					if len(rows) > 0 {
						busy = append(busy, sel.Queue.ID)
					}
					b, err := d.Backlog(t.Context(), sel)
					if err != nil || b.Items != int64(len(rows)) {
						t.Errorf("%s: backlog %+v, %v, want %d rows", placeholder, b, err, len(rows))
					}
					left += b.Items
				}
				if found, err := d.Peek(t.Context(), peeks); err != nil || !slices.Equal(found, busy) {
					t.Errorf("%s: peek found %q, %v, want %q", placeholder, found, err, busy)
				}
				if slices.Sort(ids); !slices.Equal(ids, []string{"1", "2", "3", "4", "5"}) || left != 5 {
					t.Errorf("%s: %d queues have the rows %q and %d left, want each row once", placeholder, total, ids, left)
				}
				seen = append(seen, ids...)
			}
			if len(seen) != 20 {
				t.Errorf("%s: %q", placeholder, seen)
			}
		}
	})
}

// {{mine}} of a column that holds no numbers is refused before the worker starts.
func TestMineOfATextIsRefused(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.events()
		for _, column := range []string{"region", "events.Region"} {
			err := s.dealer(mineOf("{{mine " + column + "}}")).Check(t.Context())
			if want := "write {{mine_hash " + column + "}}"; err == nil || !strings.Contains(err.Error(), want) || !Refused(err) {
				t.Errorf("{{mine %s}}: %v, want %q in it", column, err, want)
			}
		}
	})
}

// An expression cannot change what stands around it, and queues with names have no remainders.
func TestMineIsChecked(t *testing.T) {
	t.Parallel()
	for placeholder, want := range map[string]string{
		"{{mine}}":                "unknown placeholder {{mine}}",
		"{{mine }}":               "unknown placeholder {{mine}}",
		"{{mine_text id}}":        "unknown placeholder {{mine_text id}}",
		"{{mine id)}}":            "has a bracket too many",
		"{{mine f(id}}":           "has an open bracket",
		"{{mine id) OR (1 = 1}}":  "has a bracket too many",
		"{{mine id, 2}}":          "must be one expression",
		"{{mine id -- }}":         "must not have a comment",
		"{{mine id /* }}":         "must not have a comment",
		"{{mine_hash 'a || id}}":  "has a quote without an end",
		"{{mine ? + id}}":         "",
		"{{mine id + {{total}} }": "must not have a parameter",
		"'{{mine id}}'":           "has {{mine id}} between quotes",
		"'{{mine_hash a.b}}'":     "has {{mine_hash a.b}} between quotes",
	} {
		for _, d := range dialects {
			_, err := newDealer(config.Task{Name: "send", Settings: center.Settings{Queues: 2}, SQL: mineOf(placeholder)}, d)
			if placeholder == "{{mine ? + id}}" && d != schema.Postgres {
				want = "must not have a parameter"
			}
			if !strings.Contains(errorText(err), want) {
				t.Errorf("%s on %s: %v, want %q in it", placeholder, d, err, want)
			}
		}
	}
	named := center.Settings{QueueNames: []string{"north", "south"}}
	for what, c := range map[string]config.SQLDealer{".select": mineOf("{{mine id}}"), ".backlog": mineOf("region = {{queue}} AND 1 = 1")} {
		if c.Backlog = ""; what == ".backlog" {
			c.Backlog = strings.Replace(mineOf("{{mine id}}").Backlog, "sent = 0", "region = {{queue}}", 1)
		}
		_, err := newDealer(config.Task{Name: "send", Settings: named, SQL: c}, schema.SQLite)
		want := "tasks.send.dealer.sql" + what + " uses {{mine}}, which divides the rows among numbered queues, and the queues have names (north, south): compare a column with {{queue}}"
		if errorText(err) != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// The indexes of docs/choosing.md pass the rows of other queues without a look at them.
func TestIndexOfMine(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		family := s.Dialect().Family()
		s.exec("CREATE TABLE events (id BIGINT PRIMARY KEY, customer BIGINT, region VARCHAR(20), sent INTEGER NOT NULL, note VARCHAR(200))")
		var rows []string
		for i := range 5_000 {
			rows = append(rows, fmt.Sprintf("(%d, %d, 'r%d', 0)", i, i%500, i%300))
		}
		s.exec("INSERT INTO events (id, customer, region, sent) VALUES "+strings.Join(rows, ", "),
			"CREATE INDEX events_number ON events (sent, id, customer)", "CREATE INDEX events_hash ON events (sent, id, region)")
		if family == schema.Postgres {
			s.exec("DROP INDEX events_number", "DROP INDEX events_hash",
				"CREATE INDEX events_number ON events (sent, ("+of16(s.Dialect().Mine("customer", 1))+"), id)",
				"CREATE INDEX events_hash ON events (sent, ("+of16(s.Dialect().MineHash("region", 1))+"), id)", "ANALYZE events")
		}
		for placeholder, index := range map[string]string{"{{mine customer}}": "events_number", "{{mine_hash region}}": "events_hash"} {
			c := config.SQLDealer{
				Select:     "SELECT id, note FROM events WHERE sent = 0 AND id > {{after}} AND " + placeholder + " ORDER BY id LIMIT {{limit}}",
				Execute:    "UPDATE events SET sent = 1 WHERE id IN ({{keys}})",
				Key:        []string{"id"},
				AfterStart: []string{"0"},
			}
			want := []string{`"Index Name": "` + index + `"`, "Index Cond", "mod("}
			switch family {
			case schema.MySQL:
				c.Select = strings.Replace(c.Select, "FROM events", "FROM events FORCE INDEX ("+index+")", 1)
				name := map[schema.Dialect]string{schema.MySQL: "index_name", schema.MariaDB: "key"}[s.Dialect()]
				column := map[string]string{"events_number": "customer", "events_hash": "crc32("}[index]
				want = []string{fmt.Sprintf("%q: %q", name, index), "index_condition", column}
			case schema.SQLite:
				c.Select = strings.Replace(c.Select, "id, note", "id", 1)
				c.Select = strings.Replace(c.Select, "FROM events", "FROM events INDEXED BY "+index, 1)
				want = []string{"COVERING INDEX " + index + " (sent=? AND id>?)"}
			}
			d := s.dealer(c)
			sel := ofQueue(3, 16)
			first := args{Selection: &sel, shape: &d.shape}
			err := inRolledBackTx(t.Context(), s.DB(), func(ctx context.Context, tx *sql.Tx) error {
				plan, err := d.syntax.planOf(ctx, tx, d.sel.text(0), d.sel.values(first.value))
				for _, w := range want {
					if !strings.Contains(plan, w) {
						t.Errorf("%s: the plan has no %q:\n%s", placeholder, w, plan)
					}
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// of16 returns the number of a row's queue of 16 from the condition of a queue.
func of16(condition string) string {
	number, _, _ := strings.Cut(strings.Replace(condition, "$1", "16", 1), " = $2")
	return number
}

// The names of the queues may be in the database alone.
func TestMineOfANamedQueueIsRefused(t *testing.T) {
	s := openShop(t, testdb.URL(t, testdb.SQLite))
	s.events()
	d := s.dealer(mineOf("{{mine id}}"))
	sel := ofQueue(1, 2)
	sel.Queue.ID = "south"
	_, err := d.Select(t.Context(), sel)
	_, counted := d.Backlog(t.Context(), sel)
	_, peeked := d.Peek(t.Context(), []processor.Selection{sel})
	for _, err := range []error{err, counted, peeked} {
		if want := "queue south: {{mine}} divides the rows among numbered queues"; !strings.Contains(errorText(err), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
}
