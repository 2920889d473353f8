package sqldealer

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/schema"
)

// xidSelect is the select of docs/sql-dealer.md.
const xidSelect = "SELECT xid, id FROM orders WHERE (xid, id) > ({{cursor.xid}}, {{cursor.id}}) AND xid < {{horizon}} AND {{mine id}} ORDER BY xid, id LIMIT {{limit}}"

const (
	lagSelect = "SELECT id FROM orders WHERE id > {{cursor}} AND id <= {{horizon}} AND {{mine id}} ORDER BY id LIMIT {{limit}}"
	newest    = "SELECT MAX(id) FROM orders"
	late      = ".select uses {{cursor}}, and a row that is committed late, with a smaller id than the last one read, would be lost: "
)

var pair, zeros = []string{"xid", "id"}, []string{"0", "0"}

// cursorCases lack the key and execute.
var cursorCases = map[string]buildCase{
	"xid":       {dialect: schema.Postgres, sql: config.SQLDealer{Select: xidSelect, Cursor: pair, CursorStart: zeros}},
	"lag":       {dialect: schema.MySQL, sql: config.SQLDealer{Select: lagSelect, CursorStart: zero, CursorLag: time.Minute, CursorNewest: newest}},
	"pg, lag":   {dialect: schema.Postgres, sql: config.SQLDealer{Select: lagSelect, CursorStart: zero, CursorLag: time.Minute, CursorNewest: newest}},
	"in order":  {dialect: schema.SQLite, sql: config.SQLDealer{Select: aCursor, CursorStart: zero, CommitsInOrder: true}},
	"in a run":  {dialect: schema.MySQL, settings: center.Settings{Queues: 4, Mode: center.ModeRun}, sql: config.SQLDealer{Select: aCursor, CursorStart: zero}},
	"run, xid":  {dialect: schema.Postgres, settings: center.Settings{Queues: 4, Mode: center.ModeRun}, sql: config.SQLDealer{Select: xidSelect, Cursor: pair, CursorStart: zeros}},
	"pg, plain": {dialect: schema.Postgres, sql: config.SQLDealer{Select: aCursor, CursorStart: zero}, want: late + "use a column of type xid8 and the condition xid < {{horizon}} (see docs/sql-dealer.md), or set cursor_lag and cursor_newest, or commits_in_order: true if that cannot happen"},
	"my, plain": {dialect: schema.MySQL, sql: config.SQLDealer{Select: aCursor, CursorStart: zero}, want: late + "set cursor_lag and cursor_newest, or commits_in_order: true if that cannot happen"},
	"lag without newest": {
		dialect: schema.MySQL, sql: config.SQLDealer{Select: lagSelect, CursorStart: zero, CursorLag: time.Minute},
		want: `.cursor_lag (1m0s) must be positive, and cursor_newest ("") must be a statement that selects the largest id: SELECT max(id) FROM the_table`,
	},
	"lag without horizon": {
		dialect: schema.MySQL, sql: config.SQLDealer{Select: aCursor, CursorStart: zero, CursorLag: time.Minute, CursorNewest: newest},
		want: ".select must not read rows that are younger than cursor_lag: add id <= {{horizon}}",
	},
	"lag in a run": {
		dialect: schema.MySQL, settings: center.Settings{Queues: 4, Mode: center.ModeRun}, sql: config.SQLDealer{Select: lagSelect, CursorStart: zero, CursorLag: time.Minute, CursorNewest: newest},
		want: ".cursor_lag (1m0s) has no effect in mode RUN: each run reads from cursor_start on; remove cursor_lag, cursor_newest and {{horizon}}",
	},
	"newest": {
		dialect: schema.MySQL, sql: config.SQLDealer{Select: lagSelect, CursorStart: zero, CursorLag: time.Minute, CursorNewest: newest + " WHERE {{index}}"},
		want: ".cursor_newest has the unknown placeholder {{index}}: known are {{parameter}}, {{own_sign}}",
	},
	"in order and lag": {
		dialect: schema.MySQL, sql: config.SQLDealer{Select: aCursor, CursorStart: zero, CursorLag: time.Minute, CommitsInOrder: true},
		want: ".commits_in_order (true) excludes cursor_lag, cursor_newest and {{horizon}}: they are for rows that become visible in another order than the cursor's",
	},
	"no start": {
		sql:  config.SQLDealer{Select: aCursor},
		want: ".cursor_start is missing: it is the value of {{cursor}} before the first row, such as 0",
	},
	"one start for two": {
		dialect: schema.Postgres, sql: config.SQLDealer{Select: xidSelect, Cursor: pair, CursorStart: zero},
		want: ".cursor_start (0) must have a value for each column of the cursor (xid, id)",
	},
	"a column is not compared": {
		sql:  config.SQLDealer{Select: aCursor, Cursor: pair, CursorStart: zeros},
		want: ".select must use {{cursor.xid}}: the cursor has the columns xid, id",
	},
	"another column": {
		sql:  config.SQLDealer{Select: xidSelect, Cursor: []string{"id"}, CursorStart: zero},
		want: ".select uses {{cursor.xid}}, but the cursor has the columns id: write {{cursor.id}}",
	},
	"no limit": {
		sql:  config.SQLDealer{Select: "SELECT id FROM orders WHERE id > {{cursor}} AND {{index}} = 1 ORDER BY id LIMIT 5", CursorStart: zero},
		want: ".select must use {{limit}}: with {{cursor}}, one more row than is executed shows whether the last one is unique",
	},
	"no order": {
		sql:  config.SQLDealer{Select: "SELECT id FROM orders WHERE id > {{cursor}} AND {{index}} = 1 LIMIT {{limit}}", CursorStart: zero},
		want: ".select must return its rows in the order of the cursor: add ORDER BY id",
	},
	"start without cursor": {
		sql:  config.SQLDealer{Select: aSelect, CursorStart: zero},
		want: ".cursor_start (0) has no effect: select does not use {{cursor}}",
	},
	"lag without cursor": {
		sql:  config.SQLDealer{Select: aSelect, CursorLag: time.Minute},
		want: ".cursor_lag (1m0s) has no effect: select does not use {{cursor}}",
	},
	"horizon without cursor": {
		sql:  config.SQLDealer{Select: aSelect + " -- \n {{horizon}}"},
		want: ".select uses {{horizon}} without {{cursor}}: only rows behind a cursor can be lost",
	},
}

func TestCursorKeys(t *testing.T) {
	for name, c := range cursorCases {
		c.sql.Execute, c.sql.Key = anUpdate, []string{"id"}
		t.Run(name, c.test)
	}
}

// An endpoint marks no row. So its rows need execute, unless the cursor passes them.
func TestEndpointNeedsExecute(t *testing.T) {
	task := config.Task{
		Name: "settle", Settings: center.Settings{Queues: 2}, Program: config.Program{HTTP: config.Service{URL: "https://h/", Each: true}},
		SQL: config.SQLDealer{Select: aSelect, Key: []string{"id"}},
	}
	const want = "tasks.settle.dealer.sql.execute is missing: it marks the rows that the endpoint has accepted, else they come again"
	if _, err := newDealer(task, schema.SQLite); errorText(err) != want {
		t.Errorf("error %v, want %s", err, want)
	}
	task.SQL.Select, task.SQL.CursorStart, task.SQL.CommitsInOrder = aCursor, zero, true
	if _, err := newDealer(task, schema.SQLite); err != nil {
		t.Errorf("with a cursor: %v", err)
	}
}
