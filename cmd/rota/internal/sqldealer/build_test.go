package sqldealer

import (
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/schema"
)

const (
	aSelect  = "SELECT id FROM orders WHERE {{mine id}} LIMIT {{limit}}"
	aCursor  = "SELECT id FROM orders WHERE id > {{cursor}} AND {{mine id}} ORDER BY id LIMIT {{limit}}"
	anAfter  = "SELECT id FROM orders WHERE id > {{after}} AND {{mine id}} ORDER BY id LIMIT {{limit}}"
	anUpdate = "UPDATE orders SET state = 1 WHERE id IN ({{keys}})"
)

var (
	zero     = []string{"0"} // as cursor_start
	aProgram = config.Program{Command: []string{"settle"}}
)

var newCases = map[string]buildCase{
	"nothing":               {want: " is missing: give it select, execute and key"},
	"no select":             {sql: config.SQLDealer{Execute: anUpdate, Key: []string{"id"}}, want: ".select is missing"},
	"nothing but a program": {program: aProgram, want: " is missing: give it select and key"},
	"program without key": {
		sql: config.SQLDealer{Select: aSelect}, program: aProgram,
		want: ".key is missing: the replies of a program name the rows by it",
	},
	"program":             {sql: config.SQLDealer{Select: aSelect, Key: []string{"id"}}, program: aProgram},
	"program and execute": {sql: config.SQLDealer{Select: aSelect, Execute: anUpdate, Key: []string{"id"}}, program: aProgram},
	"program and execute without keys": {
		sql: config.SQLDealer{Select: aSelect, Execute: "UPDATE orders SET state = 1", Key: []string{"id"}}, program: aProgram,
		want: ".execute must use {{keys}} to find its rows (or use execute_each instead)",
	},
	"no execute": {sql: config.SQLDealer{Select: aSelect, Key: []string{"id"}}, want: " has neither execute nor execute_each, and dealer has no command and no http"},
	"both": {
		sql:  config.SQLDealer{Select: aSelect, Execute: anUpdate, ExecuteEach: "x", Key: []string{"id"}},
		want: " has both execute and execute_each: keep one",
	},
	"no key": {
		sql:  config.SQLDealer{Select: aSelect, Execute: anUpdate},
		want: ".key is missing: it names the column that {{keys}} of execute is bound to",
	},
	"unknown in select": {
		sql:  config.SQLDealer{Select: "SELECT {{keys}}", Execute: anUpdate, Key: []string{"id"}},
		want: ".select has the unknown placeholder {{keys}}: known are {{mine EXPRESSION}}, {{mine_hash EXPRESSION}}, {{total}}, {{index}}, {{queue}}, {{queue_parameter}}, {{parameter}}, {{limit}}, {{cursor}}, {{cursor.COLUMN}}, {{horizon}}, {{after}}, {{after.COLUMN}}, {{held}}, {{own_sign}}, {{run_key}}, {{attempt}}, {{slot}}, {{slot.utc_date}}, {{slot.date}}, {{slot.local}}, {{slot_end}}, {{slot_end.utc_date}}, {{slot_end.date}}, {{slot_end.local}}, {{params.NAME}}",
	},
	"unknown in execute": {
		sql:  config.SQLDealer{Select: aSelect, Execute: "UPDATE orders SET a = {{row.a}} WHERE id IN ({{keys}})", Key: []string{"id"}},
		want: ".execute has the unknown placeholder {{row.a}}: known are {{keys}}, {{server}}, {{queue}}, {{parameter}}, {{own_sign}}, {{run_key}}, {{attempt}}, {{slot}}, {{slot.utc_date}}, {{slot.date}}, {{slot.local}}, {{slot_end}}, {{slot_end.utc_date}}, {{slot_end.date}}, {{slot_end.local}}, {{params.NAME}}",
	},
	"unknown in execute_each": {
		sql:  config.SQLDealer{Select: aSelect, ExecuteEach: "UPDATE orders SET a = 1 WHERE id IN ({{keys}})"},
		want: ".execute_each has the unknown placeholder {{keys}}: known are {{row.COLUMN}}, {{server}}, {{queue}}, {{parameter}}, {{own_sign}}, {{run_key}}, {{attempt}}, {{slot}}, {{slot.utc_date}}, {{slot.date}}, {{slot.local}}, {{slot_end}}, {{slot_end.utc_date}}, {{slot_end.date}}, {{slot_end.local}}, {{params.NAME}}",
	},
	"execute without keys": {
		sql:  config.SQLDealer{Select: aSelect, Execute: "UPDATE orders SET state = 1", Key: []string{"id"}},
		want: ".execute must use {{keys}} to find its rows (or use execute_each instead)",
	},
	"the same rows for all": {
		sql: config.SQLDealer{Select: "SELECT id FROM orders LIMIT {{limit}}", Execute: anUpdate, Key: []string{"id"}}, settings: center.Settings{Queues: 4},
		want: ".select returns the same rows for every queue: with more than one queue it must use {{mine KEY}}, {{queue}}, {{queue_parameter}}, or {{index}} with {{total}}",
	},
	"the same rows, named queues": {
		sql:      config.SQLDealer{Select: "SELECT id FROM orders LIMIT {{limit}} -- {{queue}}", Execute: anUpdate, Key: []string{"id"}},
		settings: center.Settings{QueueNames: []string{"north", "south"}},
		want:     ".select returns the same rows for every queue: with more than one queue it must use {{mine KEY}}, {{queue}}, {{queue_parameter}}, or {{index}} with {{total}}",
	},
	"no limit": {
		sql:  config.SQLDealer{Select: "SELECT id FROM orders WHERE {{mine id}} LIMIT 500 -- {{limit}}", Execute: anUpdate, Key: []string{"id"}},
		want: ".select must use {{limit}}, as in LIMIT {{limit}}: without it each select reads all rows, or always the same number, and misses rows behind failed ones",
	},
	"after without key": {
		sql:  config.SQLDealer{Select: anAfter, ExecuteEach: "SELECT {{row.id}}", AfterStart: zero},
		want: ".key is missing: it names the column by which select is ordered, and whose value {{after}} is",
	},
	"after without start": {
		sql:  config.SQLDealer{Select: anAfter, Execute: anUpdate, Key: []string{"id"}},
		want: ".after_start is missing: it is the value of {{after}} before the first row, such as 0",
	},
	"start without after": {
		sql:  config.SQLDealer{Select: aSelect, Execute: anUpdate, Key: []string{"id"}, AfterStart: zero},
		want: ".after_start (0) has no effect: select does not use {{after}}",
	},
	"after and cursor": {
		sql:  config.SQLDealer{Select: aCursor + " -- \n OFFSET {{after}}", Execute: anUpdate, Key: []string{"id"}, CursorStart: zero, AfterStart: zero, CommitsInOrder: true},
		want: ".select uses both {{after}} and {{cursor}}: with {{cursor}} no row is selected again, so remove {{after}}",
	},
	"too many keys": {
		sql: config.SQLDealer{Select: aSelect, Execute: anUpdate, Key: []string{"id"}}, settings: center.Settings{ExecuteNumber: 32_767},
		want: ".execute takes 32766 keys at most: execute_number (32767) must not be larger",
	},
	"too many keys beside others": {
		sql:      config.SQLDealer{Select: aSelect, Execute: anUpdate + " AND by_server <> {{server}} OR id IN ({{keys}})", Key: []string{"id"}},
		settings: center.Settings{ExecuteNumber: 16_383},
		want:     ".execute takes 16382 keys at most: execute_number (16383) must not be larger",
	},
	"as many keys as possible": {sql: config.SQLDealer{Select: aSelect, Execute: anUpdate, Key: []string{"id"}}, settings: center.Settings{ExecuteNumber: 32_766}},
	"after":                    {sql: config.SQLDealer{Select: anAfter, Execute: anUpdate, Key: []string{"id"}, AfterStart: zero}, settings: center.Settings{Queues: 4}},
	"run_key without runs, select": {
		sql: config.SQLDealer{Select: aSelect + " AND day = {{run_key}}", Execute: anUpdate, Key: []string{"id"}}, settings: center.Settings{Queues: 4},
		want: ".select uses {{run_key}}, which a run has, but only mode RUN has runs: set mode: RUN or do not use it",
	},
	"run_key without runs, execute": {
		sql:  config.SQLDealer{Select: aSelect, Execute: "UPDATE orders SET day = {{run_key}} WHERE id IN ({{keys}})", Key: []string{"id"}},
		want: ".execute uses {{run_key}}, which a run has, but only mode RUN has runs: set mode: RUN or do not use it",
	},
	"run_key without runs, execute_each": {
		sql: config.SQLDealer{Select: aSelect, ExecuteEach: "SELECT {{row.id}}, {{run_key}}"}, settings: center.Settings{Mode: center.ModeContinuous},
		want: ".execute_each uses {{run_key}}, which a run has, but only mode RUN has runs: set mode: RUN or do not use it",
	},
	"run_key": {
		sql:      config.SQLDealer{Select: aSelect + " AND day = {{run_key}}", ExecuteEach: "SELECT {{row.id}}, {{run_key}}"},
		settings: center.Settings{Queues: 4, Mode: center.ModeRun},
	},
	"one queue needs no part":    {sql: config.SQLDealer{Select: "SELECT id FROM orders LIMIT {{limit}}", Execute: anUpdate, Key: []string{"id"}}, settings: center.Settings{Queues: 1}},
	"execute":                    {sql: config.SQLDealer{Select: aSelect, Execute: anUpdate, Key: []string{"id"}}, settings: center.Settings{Queues: 4}},
	"execute_each needs no key":  {sql: config.SQLDealer{Select: aSelect, ExecuteEach: "SELECT {{row.id}}"}, settings: center.Settings{Queues: 4}},
	"a queue's name is its part": {sql: config.SQLDealer{Select: "SELECT {{queue}} AS id LIMIT {{limit}}", Execute: anUpdate, Key: []string{"id"}}, settings: center.Settings{Queues: 4}},
}

// All that is wrong is said at once, and nothing twice.
func TestNewJoinsAllErrors(t *testing.T) {
	t.Parallel()
	_, err := newDealer(config.Task{
		Name: "settle", Settings: center.Settings{Queues: 4}, SQL: config.SQLDealer{
			Select: "SELECT id FROM orders WHERE id = '{{mine id}}' AND a = {{idx}} AND b = {{limt}}", Execute: "UPDATE orders SET state = 1",
			Discard: "DELETE FROM orders", Backlog: "SELECT count(*) FROM orders", Key: []string{"id", "ID"},
		},
	}, schema.SQLite)
	wantLines(t, err,
		".key (id, ID) must name each column once",
		".select has {{mine id}} between quotes, where no value can be bound: remove the quotes",
		".select has the unknown placeholder {{idx}}: ",
		".select has the unknown placeholder {{limt}}: ",
		".execute must use {{keys}} to find its rows (or use execute_each instead)",
		".discard must use {{keys}}, or {{row.id}} and {{row.ID}}, to find its row",
		".backlog counts the same rows for every queue: ",
	)
	_, err = newDealer(config.Task{
		Name: "settle", Settings: center.Settings{Queues: 4}, SQL: config.SQLDealer{
			Select: "SELECT id FROM orders", Execute: anUpdate, Discard: "DELETE FROM orders", OrderKey: "customer", CursorLag: 1, CommitsInOrder: true,
		},
	}, schema.SQLite)
	wantLines(t, err,
		".key is missing: it names the column that {{keys}} of execute is bound to",
		".select returns the same rows for every queue: ",
		".select must use {{limit}}, as in LIMIT {{limit}}: ",
		".cursor_lag (1ns) has no effect: ",
		".commits_in_order (true) has no effect: ",
	)
}

// wantLines checks the beginnings of the lines of an error of the task settle, behind the path of its dealer.
func wantLines(t *testing.T, err error, want ...string) {
	t.Helper()
	got := escape.Errors(err)
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !strings.HasPrefix(got[i], "tasks.settle.dealer.sql"+want[i]) {
			t.Fatalf("%d lines:\n%s\nwant %d that begin with:\n%s", len(got), strings.Join(got, "\n"), len(want), strings.Join(want, "\n"))
		}
	}
}

func TestNewErrors(t *testing.T) {
	for name, c := range newCases {
		t.Run(name, c.test)
	}
}
