package sqldealer

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/schema"
)

// Check refuses what the database does not know, and says where it is in the user's text.
func TestCheck(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec("CREATE TABLE orders (id INTEGER PRIMARY KEY, state VARCHAR(9) NOT NULL)", "INSERT INTO orders (id, state) VALUES (1, 'NEW')")
		const at = "tasks.settle.dealer.sql"
		for name, test := range map[string]struct {
			sql                     config.SQLDealer
			place                   string
			postgres, mysql, sqlite string
		}{
			"good":           {sql: config.SQLDealer{Select: aSelect, Execute: anUpdate, Key: "id"}},
			"good, a cursor": {sql: config.SQLDealer{Select: aCursor, Execute: anUpdate, Key: "id", CursorStart: zero, CommitsInOrder: true}},
			"newest": {
				sql: config.SQLDealer{
					Select: strings.Replace(aCursor, "{{cursor}}", "{{cursor}} AND id <= {{horizon}}", 1), Execute: anUpdate, Key: "id",
					CursorStart: zero, CursorLag: time.Minute, CursorNewest: "SELECT MAX(idd) FROM orders",
				},
				place:    ".cursor_newest, line 1, column 12 (idd) FROM orders): ",
				postgres: `column "idd" does not exist`, mysql: "Unknown column 'idd' in ", sqlite: "no such column: idd",
			},
			"good, row by row":   {sql: config.SQLDealer{Select: aSelect, ExecuteEach: "UPDATE orders SET state = {{server}} WHERE id = {{row.id}}", Key: "id"}},
			"good, without keys": {sql: config.SQLDealer{Select: aSelect, ExecuteEach: "DELETE FROM orders WHERE id = {{row.id}}"}},
			"column": {
				sql:      config.SQLDealer{Select: "SELECT id FROM orders\n WHERE mod(id, {{ total }}) = {{index}} AND stat = 'NEW' LIMIT {{limit}}", Execute: anUpdate, Key: "id"},
				place:    ".select, line 2, column 45 (stat = 'NEW' LIMIT {{limit}}): ",
				postgres: `column "stat" does not exist`, mysql: "Unknown column 'stat' in ", sqlite: "no such column: stat",
			},
			"table": {
				sql:      config.SQLDealer{Select: strings.Replace(aSelect, "orders", "ordrs", 1), Execute: anUpdate, Key: "id"},
				place:    ".select, line 1, column 16 (ordrs WHERE mod(id, {{total}})...): ",
				postgres: `relation "ordrs" does not exist`, mysql: "ordrs' doesn't exist", sqlite: "no such table: ordrs",
			},
			"syntax": {
				sql:      config.SQLDealer{Select: strings.Replace(aSelect, "FROM", "FRM", 1), Execute: anUpdate, Key: "id"},
				postgres: `syntax error at or near "orders"`, mysql: "You have an error in your SQL syntax", sqlite: "syntax error",
			},
			"column of execute": {
				sql:      config.SQLDealer{Select: aSelect, Execute: "UPDATE orders SET settled = 1, state = {{server}} WHERE id IN ({{keys}})", Key: "id"},
				place:    ".execute, line 1, column 19 (settled = 1, state = {{server}...): ",
				postgres: `column "settled" of relation "orders" does not exist`, mysql: "Unknown column 'settled' in ", sqlite: "no such column: settled",
			},
			"column of execute_each": {
				sql:      config.SQLDealer{Select: aSelect, ExecuteEach: "UPDATE orders SET state = {{server}} WHERE ident = {{row.id}}", Key: "id"},
				place:    ".execute_each, line 1, column 44 (ident = {{row.id}}): ",
				postgres: `column "ident" does not exist`, mysql: "Unknown column 'ident' in ", sqlite: "no such column: ident",
			},
			"key": {
				sql:      config.SQLDealer{Select: strings.Replace(aSelect, "id", "id AS ident", 1), Execute: anUpdate, Key: "id"},
				place:    ".select: ",
				postgres: `the result has no column "id"`, mysql: `the result has no column "id"`, sqlite: `the result has no column "id"`,
			},
		} {
			t.Run(name, func(t *testing.T) {
				err := s.dealer(test.sql).Check(t.Context(), s.DB())
				want := map[schema.Dialect]string{schema.Postgres: test.postgres, schema.MySQL: test.mysql, schema.SQLite: test.sqlite}[s.Dialect()]
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
		s.want("SELECT id, state FROM orders", "1 NEW") // nothing was executed
	})
}

// A database that does not answer says nothing about the statements.
func TestCheckWithoutADatabase(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec("CREATE TABLE orders (id INTEGER PRIMARY KEY, state VARCHAR(9) NOT NULL)")
		d := s.dealer(config.SQLDealer{Select: aSelect, Execute: anUpdate, Key: "id"})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := d.Check(ctx, s.DB()); !errors.Is(err, context.Canceled) || Refused(err) {
			t.Errorf("error %v, refused %t, want one that says nothing about the statements", err, Refused(err))
		}
	})
}
