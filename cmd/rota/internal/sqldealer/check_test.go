package sqldealer

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/schema"
)

// checkCase is a dealer, and what each database says about it in the place; empty if it is good.
type checkCase struct {
	sql                     config.SQLDealer
	place                   string
	postgres, mysql, sqlite string
}

var checkCases = map[string]checkCase{
	"good":           {sql: config.SQLDealer{Select: aSelect, Execute: anUpdate, Key: []string{"id"}}},
	"good, a cursor": {sql: config.SQLDealer{Select: aCursor, Execute: anUpdate, Key: []string{"id"}, CursorStart: zero, CommitsInOrder: true}},
	"newest": {
		sql: config.SQLDealer{
			Select: strings.Replace(aCursor, "{{cursor}}", "{{cursor}} AND id <= {{horizon}}", 1), Execute: anUpdate, Key: []string{"id"},
			CursorStart: zero, CursorLag: time.Minute, CursorNewest: "SELECT MAX(idd) FROM orders",
		},
		place:    ".cursor_newest, line 1, column 12 (idd) FROM orders): ",
		postgres: `column "idd" does not exist`, mysql: "Unknown column 'idd' in ", sqlite: "no such column: idd",
	},
	"good, row by row":   {sql: config.SQLDealer{Select: aSelect, ExecuteEach: "UPDATE orders SET state = {{server}} WHERE id = {{row.id}}", Key: []string{"id"}}},
	"good, without keys": {sql: config.SQLDealer{Select: aSelect, ExecuteEach: "DELETE FROM orders WHERE id = {{row.id}}"}},
	"column": {
		sql:      config.SQLDealer{Select: "SELECT id FROM orders\n WHERE mod(id, {{ total }}) = {{index}} AND stat = 'NEW' LIMIT {{limit}}", Execute: anUpdate, Key: []string{"id"}},
		place:    ".select, line 2, column 45 (stat = 'NEW' LIMIT {{limit}}): ",
		postgres: `column "stat" does not exist`, mysql: "Unknown column 'stat' in ", sqlite: "no such column: stat",
	},
	"table": {
		sql:      config.SQLDealer{Select: strings.Replace(aSelect, "orders", "ordrs", 1), Execute: anUpdate, Key: []string{"id"}},
		place:    ".select, line 1, column 16 (ordrs WHERE {{mine id}} LIMIT ...): ",
		postgres: `relation "ordrs" does not exist`, mysql: "ordrs' doesn't exist", sqlite: "no such table: ordrs",
	},
	"syntax": {
		sql:      config.SQLDealer{Select: strings.Replace(aSelect, "FROM", "FRM", 1), Execute: anUpdate, Key: []string{"id"}},
		postgres: `syntax error at or near "orders"`, mysql: "You have an error in your SQL syntax", sqlite: "syntax error",
	},
	"column of execute": {
		sql:      config.SQLDealer{Select: aSelect, Execute: "UPDATE orders SET settled = 1, state = {{server}} WHERE id IN ({{keys}})", Key: []string{"id"}},
		place:    ".execute, line 1, column 19 (settled = 1, state = {{server}...): ",
		postgres: `column "settled" of relation "orders" does not exist`, mysql: "Unknown column 'settled' in ", sqlite: "no such column: settled",
	},
	"column of execute_each": {
		sql:      config.SQLDealer{Select: aSelect, ExecuteEach: "UPDATE orders SET state = {{server}} WHERE ident = {{row.id}}", Key: []string{"id"}},
		place:    ".execute_each, line 1, column 44 (ident = {{row.id}}): ",
		postgres: `column "ident" does not exist`, mysql: "Unknown column 'ident' in ", sqlite: "no such column: ident",
	},
	"good, a discard": {sql: discarded([]string{"id"}, "UPDATE orders SET state = {{error}} WHERE id IN ({{keys}})")},
	"column of discard": {
		sql:      discarded([]string{"id"}, "UPDATE orders\n SET broken = {{error}} WHERE id IN ({{keys}})"),
		place:    ".discard, line 2, column 6 (broken = {{error}} WHERE id IN...): ",
		postgres: `column "broken" of relation "orders" does not exist`, mysql: "Unknown column 'broken' in ", sqlite: "no such column: broken",
	},
	"column behind two keys": {
		sql:      pairedExecute("UPDATE orders SET state = 'x' WHERE (state, id) IN ({{keys}}) AND broken = {{server}}"),
		place:    ".execute, line 1, column 67 (broken = {{server}}): ",
		postgres: `column "broken" does not exist`, mysql: "Unknown column 'broken' in ", sqlite: "no such column: broken",
	},
	"key": {
		sql:      config.SQLDealer{Select: strings.Replace(aSelect, "id", "id AS ident", 1), Execute: anUpdate, Key: []string{"id"}},
		place:    ".select: ",
		postgres: `the result has no column "id"`, mysql: `the result has no column "id"`, sqlite: `the result has no column "id"`,
	},
	"key twice": { // it would be that of another table
		sql:      config.SQLDealer{Select: strings.Replace(aSelect, "id", "state, id, id + 1 AS ID", 1), Execute: anUpdate, Key: []string{"id"}},
		place:    ".select: ",
		postgres: `the result has two columns "id"`, mysql: `the result has two columns "id"`, sqlite: `the result has two columns "id"`,
	},
}

// pairedExecute returns a dealer for a key of two columns with another execute.
func pairedExecute(execute string) config.SQLDealer {
	c := pairKey
	c.Select, c.Execute, c.Key = strings.Replace(aSelect, "id", "state, id", 1), execute, []string{"state", "id"}
	return c
}

// Check refuses what the database does not know, and says where it is in the user's text.
func TestCheck(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec("CREATE TABLE orders (id INTEGER PRIMARY KEY, state VARCHAR(9) NOT NULL)", "INSERT INTO orders (id, state) VALUES (1, 'NEW')")
		const at = "tasks.settle.dealer.sql"
		for name, test := range checkCases {
			t.Run(name, func(t *testing.T) {
				err := s.dealer(test.sql).Check(t.Context())
				want := map[schema.Dialect]string{schema.Postgres: test.postgres, schema.MySQL: test.mysql, schema.SQLite: test.sqlite}[s.Dialect().Family()]
				switch got := errorText(err); {
				case want == "":
					if err != nil {
						t.Errorf("error %v, want none", err)
					}
				case !Refused(err), !strings.HasPrefix(got, at+test.place), !strings.Contains(got, want), strings.Contains(got, "\n"):
					t.Errorf("refused %t\ngot  %s\nwant %s%s... %s", Refused(err), got, at, test.place, want)
				}
			})
		}
		both := s.dealer(config.SQLDealer{
			Select: strings.Replace(aSelect, "WHERE", "WHERE stat = 'NEW' AND", 1), Execute: strings.Replace(anUpdate, "state", "settled", 1),
			Key: []string{"id"},
		})
		lines := escape.Errors(both.Check(t.Context()))
		if len(lines) != 2 || !strings.HasPrefix(lines[0], at+".select") || !strings.HasPrefix(lines[1], at+".execute") {
			t.Errorf("a select and an execute that the database refuses: %q, want a line for each", lines)
		}
		s.want("SELECT id, state FROM orders", "1 NEW") // nothing was executed
	})
}

// A database that does not answer says nothing about the statements.
func TestCheckWithoutADatabase(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec("CREATE TABLE orders (id INTEGER PRIMARY KEY, state VARCHAR(9) NOT NULL)")
		d := s.dealer(config.SQLDealer{Select: aSelect, Execute: anUpdate, Key: []string{"id"}})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := d.Check(ctx); !errors.Is(err, context.Canceled) || Refused(err) {
			t.Errorf("error %v, refused %t, want one that says nothing about the statements", err, Refused(err))
		}
	})
}
