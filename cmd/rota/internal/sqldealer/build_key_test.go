package sqldealer

import (
	"cmp"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/schema"
)

// pairKey is a valid dealer whose key has two columns.
var pairKey = config.SQLDealer{
	Select:  "SELECT region, id FROM orders WHERE {{mine id}} ORDER BY region, id LIMIT {{limit}}",
	Execute: "UPDATE orders SET state = 1 WHERE (region, id) IN ({{keys}})",
	Key:     []string{"region", "id"},
}

// paired returns pairKey with another condition in select and the start of {{after}}.
func paired(condition string, start ...string) config.SQLDealer {
	c := pairKey
	c.Select, c.AfterStart = strings.Replace(c.Select, "WHERE", "WHERE "+condition+" AND", 1), start
	return c
}

// buildCase is a dealer of the file. want is how New refuses it; empty if it does not.
type buildCase struct {
	sql      config.SQLDealer
	dialect  schema.Dialect
	settings center.Settings
	program  config.Program
	want     string
}

func (b buildCase) test(t *testing.T) {
	t.Helper()
	_, err := newDealer(config.Task{Name: "settle", Settings: b.settings, SQL: b.sql, Program: b.program}, cmp.Or(b.dialect, schema.SQLite))
	want := b.want
	if want != "" {
		want = "tasks.settle.dealer.sql" + want
	}
	if got := errorText(err); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

const rowValues = "(region, id) > ({{after.region}}, {{after.ID}})"

var keyCases = map[string]buildCase{
	"two columns":    {sql: pairKey},
	"twice the same": {sql: config.SQLDealer{Select: aSelect, Execute: anUpdate, Key: []string{"id", "ID"}}, want: ".key (id, ID) must name each column once"},
	"empty name":     {sql: config.SQLDealer{Select: aSelect, Execute: anUpdate, Key: []string{"id", ""}}, want: ".key (id, ) must not have an empty name"},
	"too many keys": {
		sql: pairKey, settings: center.Settings{ExecuteNumber: 16_384},
		want: ".execute takes 16383 keys of 2 columns at most: execute_number (16384) must not be larger",
	},
	"as many as possible":       {sql: pairKey, settings: center.Settings{ExecuteNumber: 16_383}},
	"as many as possible, pg":   {sql: pairKey, dialect: schema.Postgres, settings: center.Settings{ExecuteNumber: 32_767}},
	"after":                     {sql: paired(rowValues, "!", "0")},
	"after, without row values": {sql: paired("(region > {{after.region}} OR region = {{after.region}} AND id > {{after.id}})", "!", "0"), dialect: schema.MySQL},
	"after, row values on MySQL": {
		sql: paired(rowValues, "!", "0"), dialect: schema.MySQL,
		want: ".select compares with ({{after.region}}, {{after.ID}}), for which this database uses no index: write (region > {{after.region}} OR region = {{after.region}} AND id > {{after.id}})",
	},
	"cursor, row values on MySQL": {
		sql: config.SQLDealer{
			Select: strings.Replace(paired("(a, b, id) > ({{cursor.a}}, {{cursor.b}}, {{cursor.id}})").Select, "ORDER BY", "ORDER BY a, b,", 1), Execute: pairKey.Execute, Key: pairKey.Key,
			Cursor: []string{"a", "b", "id"}, CursorStart: []string{"0", "0", "0"}, CommitsInOrder: true,
		},
		dialect: schema.MySQL,
		want:    ".select compares with ({{cursor.a}}, {{cursor.b}}), for which this database uses no index: write (a > {{cursor.a}} OR a = {{cursor.a}} AND (b > {{cursor.b}} OR b = {{cursor.b}} AND id > {{cursor.id}}))",
	},
	"after, one start":   {sql: paired(rowValues, "0"), want: ".after_start (0) must have a value for each column of the key (region, id)"},
	"after, empty start": {sql: paired(rowValues, "", "0"), want: `.after_start (, 0) must not have an empty value: for the empty text write \s`},
	"after, no column":   {sql: paired("id > {{after}}", "!", "0"), want: ".select must use {{after.region}}: the key has the columns region, id"},
	"after, one column":  {sql: paired("region > {{after.region}}", "!", "0"), want: ".select must use {{after.id}}: the key has the columns region, id"},
	"after, other column": {
		sql:  paired(rowValues+" AND x > {{after.x}}", "!", "0"),
		want: ".select uses {{after.x}}, but the key has the columns region, id: write {{after.region}}",
	},
	"after, no order": {
		sql:  config.SQLDealer{Select: strings.Replace(anAfter, "ORDER BY id", "", 1), Execute: anUpdate, Key: []string{"id"}, AfterStart: zero},
		want: ".select must return its rows in the order of the key: add ORDER BY id",
	},
	"after, the column of one": {sql: config.SQLDealer{Select: strings.Replace(anAfter, "{{after}}", "{{after.id}}", 1), Execute: anUpdate, Key: []string{"id"}, AfterStart: zero}},
}

func TestKeyErrors(t *testing.T) {
	for name, c := range keyCases {
		t.Run(name, c.test)
	}
}

// discarded returns a dealer with a discard statement.
func discarded(key []string, statement string) config.SQLDealer {
	c := pairKey
	if c.Key, c.Discard = key, statement; len(key) < 2 {
		c.Select = aSelect
	}
	c.Execute, c.ExecuteEach = "", "UPDATE orders SET state = 1 WHERE id = {{row.id}}"
	return c
}

var discardCases = map[string]buildCase{
	"keys":        {sql: discarded(pairKey.Key, "DELETE FROM orders WHERE (region, id) IN ({{keys}})")},
	"columns":     {sql: discarded(pairKey.Key, "UPDATE orders SET note = {{error}} WHERE id = {{row.ID}} AND region = {{row.region}}")},
	"no row":      {sql: discarded(pairKey.Key, "DELETE FROM orders"), want: ".discard must use {{keys}}, or {{row.region}} and {{row.id}}, to find its row"},
	"half a row":  {sql: discarded(pairKey.Key, "DELETE FROM orders WHERE id = {{row.id}}"), want: ".discard must use {{keys}}, or {{row.region}} and {{row.id}}, to find its row"},
	"no key":      {sql: discarded(nil, "DELETE FROM orders WHERE id = {{row.id}}"), want: ".key is missing: without it no row fails for good, and discard has no effect"},
	"in a run":    {sql: discarded(pairKey.Key, "DELETE FROM orders WHERE id = {{row.id}}"), settings: center.Settings{Mode: center.ModeRun}, want: ".discard has no effect in mode RUN: a run gives up no row; remove it"},
	"placeholder": {sql: discarded(pairKey.Key, "DELETE FROM orders WHERE id = {{key}}"), want: ".discard has the unknown placeholder {{key}}: known are {{keys}}, {{row.COLUMN}}, {{error}}, {{server}}, {{queue}}, {{parameter}}, {{own_sign}}, {{run_key}}, {{attempt}}, {{slot}}, {{slot.utc_date}}, {{slot.date}}, {{slot.local}}, {{slot_end}}, {{slot_end.utc_date}}, {{slot_end.date}}, {{slot_end.local}}, {{params.NAME}}"},
	"error":       {sql: config.SQLDealer{Select: aSelect, Execute: anUpdate + " AND note <> {{error}}", Key: []string{"id"}}, want: ".execute has the unknown placeholder {{error}}: known are {{keys}}, {{server}}, {{queue}}, {{parameter}}, {{own_sign}}, {{run_key}}, {{attempt}}, {{slot}}, {{slot.utc_date}}, {{slot.date}}, {{slot.local}}, {{slot_end}}, {{slot_end.utc_date}}, {{slot_end.date}}, {{slot_end.local}}, {{params.NAME}}"},
}

func TestDiscardErrors(t *testing.T) {
	for name, c := range discardCases {
		t.Run(name, c.test)
	}
}
