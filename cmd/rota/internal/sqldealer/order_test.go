package sqldealer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/schema"
)

// orders are 60 rows of six customers. The customer of row 59 is NULL.
func (s shop) createOrders(kind string) {
	s.Helper()
	var rows []string
	for i := range 60 {
		customer := fmt.Sprintf("'%d'", i%6)
		if i == 59 {
			customer = "NULL"
		}
		rows = append(rows, fmt.Sprintf("(%d, %s, 'NEW')", i, customer))
	}
	s.exec("CREATE TABLE orders (id BIGINT PRIMARY KEY, customer "+kind+", state VARCHAR(9) NOT NULL)",
		"INSERT INTO orders VALUES "+strings.Join(rows, ", "))
}

var ordersInOrder = config.SQLDealer{
	Select: "SELECT id, customer FROM orders WHERE state = 'NEW' AND id > {{after}} AND {{index}} = 1 AND NOT {{held}} " +
		"ORDER BY id LIMIT {{limit}}",
	Execute: "UPDATE orders SET state = 'DONE' WHERE state = 'NEW' AND id IN ({{keys}})",
	Key:     []string{"id"}, AfterStart: []string{"-1"}, OrderKey: "customer",
}

// The select leaves out the rows of the held keys, and only those, whatever the type of the column is.
func TestSelectLeavesOutHeldKeys(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		for _, kind := range []string{"BIGINT", "VARCHAR(20)"} {
			t.Run(kind, func(t *testing.T) {
				s := openShop(t, url)
				s.createOrders(kind)
				defer s.exec("DROP TABLE orders")
				d := s.dealer(ordersInOrder)
				dealer := d.Use(s.DB())
				of := processor.Selection{Queue: processor.Queue{ID: "1", Index: 1}, Total: 2, Limit: 100}
				for _, held := range [][]string{nil, {"0"}, {"0", "3", "5"}} {
					of.Held = held
					rows, err := dealer.Select(t.Context(), of)
					if err != nil {
						t.Fatal(err)
					}
					var got, want []string
					for _, r := range rows {
						got = append(got, dealer.Key(r)+" of "+dealer.OrderKey(r))
					}
					for i := range 60 {
						customer := fmt.Sprint(i % 6)
						if i == 59 {
							customer = ""
						}
						if !slices.Contains(held, customer) {
							want = append(want, fmt.Sprintf("%d of %s", i, customer))
						}
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("held %v (-want +got):\n%s", held, diff)
					}
				}
				of.Held = nil
				other := of
				other.Queue = processor.Queue{ID: "0", Index: 0}
				busy, err := dealer.Peek(t.Context(), []processor.Selection{other, of})
				if err != nil || len(busy) != 1 || busy[0] != "1" {
					t.Errorf("a peek names %v, %v, want queue 1", busy, err)
				}
			})
		}
	})
}

// A select leaves out exactly the held texts where the database compares without regard to case and trailing spaces.
func TestHeldTextsAreExact(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec("CREATE TABLE orders (id BIGINT PRIMARY KEY, customer VARCHAR(20), state VARCHAR(9) NOT NULL)",
			"INSERT INTO orders VALUES (1, 'a', 'NEW'), (2, 'A', 'NEW'), (3, 'a ', 'NEW'), (4, 'ä', 'NEW'), (5, NULL, 'NEW')")
		dealer := s.dealer(ordersInOrder).Use(s.DB())
		of := processor.Selection{Queue: processor.Queue{ID: "1", Index: 1}, Total: 2, Limit: 9}
		if _, err := dealer.Select(t.Context(), of); err != nil { // which finds the keys that are held
			t.Fatal(err)
		}
		of.Held = []string{"a"}
		rows, err := dealer.Select(t.Context(), of)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range rows {
			got = append(got, dealer.Key(r))
		}
		if diff := cmp.Diff([]string{"2", "3", "4", "5"}, got); diff != "" {
			t.Errorf("while a is held (-want +got):\n%s", diff)
		}
	})
}

// A dead row holds back the rows of its customer, and no others.
func TestADeadRowHoldsItsKey(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.createOrders("BIGINT")
		p, err := engine.New(s.dealer(ordersInOrder).Use(s.DB()), engine.Env{
			Items: deadRows(2), Bind: func(context.Context, processor.Queue, *string) context.Context { return s.batch(7) },
		}, engine.Settings{
			ThreadNumber: 2, FetchNumber: 8, ExecuteNumber: 4, SleepTimeNoData: 10 * time.Millisecond, Retry: time.Second,
			RetryMax: time.Second, ItemMaxAttempts: 3,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := p.Grant(processor.Queue{ID: "1", Index: 1, Epoch: 7}, 2); err != nil {
			t.Fatal(err)
		}
		go func() {
			<-p.Emptied()
			cancel()
		}()
		if err := p.Run(ctx); err != nil {
			t.Fatal(err)
		}
		s.want("SELECT customer, COUNT(*) FROM orders WHERE state = 'NEW' GROUP BY customer ORDER BY customer", "0 10", "1 10")
		if held := p.Stats().HeldKeys; held != 2 {
			t.Errorf("%d keys are held, want 2", held)
		}
	})
}

func TestOrderKeyOfTheFile(t *testing.T) {
	t.Parallel()
	change := func(f func(*config.SQLDealer)) config.SQLDealer {
		c := ordersInOrder
		f(&c)
		return c
	}
	for want, c := range map[string]config.SQLDealer{
		"tasks.settle.dealer.sql.select uses {{held}}, which needs order_key": change(
			func(c *config.SQLDealer) { c.OrderKey = "" }),
		"tasks.settle.dealer.sql.order_key (a customer) must be a plain name for {{held}}: letters, digits and underscores": change(
			func(c *config.SQLDealer) { c.OrderKey = "a customer" }),
		"tasks.settle.dealer.sql.key is missing: order_key needs it, to know the rows that failed": change(
			func(c *config.SQLDealer) {
				c.Key, c.AfterStart, c.Execute, c.ExecuteEach = nil, nil, "", "SELECT {{row.id}}"
				c.Select = strings.Replace(c.Select, "id > {{after}} AND", "", 1)
			}),
		"tasks.settle.dealer.sql.order_key (id) has no effect: the rows of {{cursor}} are executed in order": {
			Select: aCursor, Execute: anUpdate, Key: []string{"id"}, CursorStart: zero, CommitsInOrder: true, OrderKey: "id",
		},
	} {
		_, err := newDealer(config.Task{Name: "settle", Settings: center.Settings{Queues: 2}, SQL: c}, schema.SQLite)
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}
