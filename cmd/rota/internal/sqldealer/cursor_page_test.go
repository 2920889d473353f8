package sqldealer

import (
	"strings"
	"testing"

	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/testdb"
)

// A page is refused, with the reason, if a cursor would lose some of its rows.
func TestPagesThatLoseRows(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec("CREATE TABLE sales (id INTEGER, at INTEGER)", "INSERT INTO sales VALUES (1, 10), (2, 20), (3, 30), (4, 30), (5, 40), (6, NULL)")
		const order = "SELECT at, id FROM sales WHERE at > {{cursor}} AND {{index}} = 1 ORDER BY at LIMIT {{limit}}"
		for name, test := range map[string]struct {
			sel, saved, want string
			limit            int
		}{
			"a tie in the page":       {order, "", "rows 3 and 4 have the same cursor: at is 30, and one of them could be lost; add a unique column to cursor and to ORDER BY", 4},
			"a tie behind the page":   {order, "", "rows 3 and 4 have the same cursor: at is 30, and one of them could be lost; add a unique column to cursor and to ORDER BY", 3},
			"no tie":                  {order, "", "", 2},
			"the row of the cursor":   {strings.Replace(order, ">", ">=", 1), "20", "row 1 is not behind the cursor: at is 20 again; select must compare with > {{cursor}}", 2},
			"a row before the cursor": {strings.Replace(order, ">", "<", 1), "20", "row 1 is out of order: at is 10, which is not behind the row or the cursor before it; select must return rows > {{cursor}}, ORDER BY at", 2},
			"backwards":               {strings.Replace(order, "LIMIT", "DESC LIMIT", 1), "30", "", 2}, // one row
			"backwards, more rows":    {strings.Replace(order, "ORDER BY at LIMIT", "AND id <> 4 ORDER BY at DESC LIMIT", 1), "20", "row 2 is out of order: at is 30, which is not behind the row or the cursor before it; select must return rows > {{cursor}}, ORDER BY at", 2},
			"NULL":                    {"SELECT at, id FROM sales WHERE id > {{cursor}} AND {{index}} = 1 ORDER BY at LIMIT {{limit}}", "5", `row 1 has no cursor: column "at" is NULL`, 2},
		} {
			t.Run(name, func(t *testing.T) {
				d := s.dealer(config.SQLDealer{Select: test.sel, ExecuteEach: "SELECT {{row.id}}", Key: []string{"id"}, Cursor: []string{"at"}, CursorStart: zero, CommitsInOrder: true})
				sel := selection()
				sel.Limit, sel.Queue.Cursor = test.limit, test.saved
				rows, err := d.Select(t.Context(), sel)
				if got := strings.TrimPrefix(errorText(err), "run select: "); got != test.want || len(rows) > test.limit {
					t.Errorf("%d rows\ngot  %s\nwant %s", len(rows), got, test.want)
				}
			})
		}
	})
}

// What makes the horizon of PostgreSQL's transactions unsafe is refused.
func TestHorizonErrors(t *testing.T) {
	s := openShop(t, testdb.Reused(t, testdb.Postgres))
	s.exec("CREATE TABLE sales (id BIGINT, xid xid8 NOT NULL DEFAULT pg_current_xact_id(), number BIGINT DEFAULT 5, total INTEGER)", "INSERT INTO sales (id) VALUES (1)")
	late := s.begin()
	defer late.Rollback()
	s.exec("INSERT INTO sales (id) VALUES (2)")
	s.eventually("the first row is below the horizon", func() bool {
		var below bool
		const query = "SELECT xid < pg_snapshot_xmin(pg_current_snapshot()) FROM sales WHERE id = 1"
		if err := s.DB().QueryRowContext(t.Context(), query).Scan(&below); err != nil {
			t.Fatal(err)
		}
		return below
	})
	replaced := func(from, to string) config.SQLDealer {
		c := xidSales
		c.Select = strings.ReplaceAll(c.Select, from, to)
		return c
	}
	for name, test := range map[string]struct {
		sql         config.SQLDealer
		saved, want string
	}{
		"good":            {xidSales, `["3","1"]`, ""},
		"not xid8":        {replaced("xid", "number"), "", `run select: column "number" of type INT8 cannot be compared with {{horizon}}: it must be of type xid8`},
		"a restored dump": {xidSales, `["4000000000","1"]`, "the cursor's xid (4000000000) is above the next transaction of this database ("},
		"no horizon":      {replaced("xid < {{horizon}}", "{{horizon}} <> '0'"), "", "run select: row 2 has the xid "},
		"another cursor":  {xidSales, "17", `the saved cursor "17" (cursor_value of the queue) does not have the columns xid, id of the file`},
		"no transaction":  {xidSales, `["a","1"]`, "the cursor's xid (a) must be the ID of a transaction"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.sql.Cursor = []string{"xid", "id"}; strings.Contains(test.sql.Select, "number") {
				test.sql.Cursor[0] = "number"
			}
			d := s.dealer(test.sql)
			sel := selection()
			sel.Queue.Cursor = test.saved
			_, err := d.Select(t.Context(), sel)
			if got := errorText(err); test.want == "" && got != "" || !strings.HasPrefix(got, test.want) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}
