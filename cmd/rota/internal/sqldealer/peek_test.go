package sqldealer

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/schema"
)

// peek returns which of the queues 0 to total-1 a dealer names.
func (s shop) peek(d processor.TaskDealer[Row], total int) ([]string, error) {
	var idle []processor.Selection
	for n := range total {
		one := selection()
		one.Total, one.Limit = total, 1
		one.Queue.ID, one.Queue.Index = fmt.Sprint(n), n
		idle = append(idle, one)
	}
	return d.(processor.Peeker).Peek(s.Context(), idle)
}

// X8: Peek names the queues whose select finds a row, whatever the select looks like.
func TestPeek(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec(orders...) // NEW are 1, 2, 3, 4, 7, 9
		const condition = " WHERE state = 'NEW' AND {{mine id}} "
		for name, c := range map[string]config.SQLDealer{
			"key":       {Select: "SELECT id FROM orders" + condition + "ORDER BY id LIMIT {{limit}}"},
			"semicolon": {Select: "SELECT id FROM orders" + condition + "ORDER BY id LIMIT {{limit}} ; \n"},
			"comment":   {Select: "SELECT id FROM orders" + condition + "ORDER BY id LIMIT {{limit}} -- the first"},
			"with":      {Select: "WITH o AS (SELECT * FROM orders" + condition + ") SELECT id FROM o ORDER BY id LIMIT {{limit}}"},
			"union": {Select: "SELECT id FROM orders WHERE state = 'NEW' AND {{mine id}} " +
				"UNION SELECT id FROM orders WHERE state = 'LATE' AND {{mine id}} ORDER BY id LIMIT {{limit}}"},
			"after": {
				Select: "SELECT id FROM orders" + condition + "AND id > {{after}} ORDER BY id LIMIT {{limit}}", AfterStart: zero,
			},
		} {
			c.Execute, c.Key = anUpdate, []string{"id"}
			d := s.dealer(c)
			if err := d.Check(t.Context()); err != nil || d.PeekRefused() != nil {
				t.Fatalf("%s: %v, refused: %v", name, err, d.PeekRefused())
			}
			busy, err := s.peek(d.Use(s.DB()), 6)
			if want := []string{"1", "2", "3", "4"}; err != nil || !slices.Equal(busy, want) {
				t.Errorf("%s: %s, %v, want %s", name, busy, err, want)
			}
			busy, err = s.peek(d.Use(s.DB()), 2*mostPeeked+1)
			if want := []string{"1", "2", "3", "4", "7", "9"}; err != nil || !slices.Equal(busy, want) {
				t.Errorf("%s, in several statements: %s, %v, want %s", name, busy, err, want)
			}
		}
	})
}

// X8: Peek names the queues that have rows behind their cursor and below the horizon.
func TestPeekBehindACursor(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.sell()
		forms := map[string]config.SQLDealer{"in order": orderedSales, "lag": lagSales}
		if s.Dialect() == schema.Postgres {
			forms["xid"] = xidSales
		}
		for name, c := range forms {
			s.exec("DELETE FROM sales")
			r := s.salesReader(c)
			task := r.Dealer
			r.clock.Add(int64(time.Hour))
			expect := func(when string, want ...string) {
				t.Helper()
				if busy, err := s.peek(task, 3); err != nil || !slices.Equal(busy, want) {
					t.Errorf("%s: %s: %s, %v, want %s", name, when, busy, err, want)
				}
			}
			expect("nothing sold")
			s.exec("INSERT INTO sales (total) VALUES (3)")
			if c.CursorLag > 0 {
				expect("within the lag")
				r.clock.Add(int64(2 * time.Minute))
			}
			// A transaction of another test on the same server may hold the horizon below the row.
			for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
				if busy, _ := s.peek(task, 3); len(busy) > 0 {
					break
				}
			}
			expect("sold", "1")
		}
	})
}

// X8: where the database refuses the statement of Peek, the worker is told when it starts, and the processor selects.
func TestPeekThatTheDatabaseRefuses(t *testing.T) {
	s := openShop(t, testdb.Reused(t, testdb.Postgres))
	s.exec(orders...)
	d := s.dealer(config.SQLDealer{
		Select: "WITH o AS (UPDATE orders SET times = times + 1 WHERE id = {{index}} RETURNING id) SELECT id FROM o LIMIT {{limit}}",
		Key:    []string{"id"}, Execute: anUpdate,
	})
	if err := d.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.PeekRefused(); err == nil {
		t.Error("the statement is not refused")
	}
	if _, err := s.peek(d.Use(s.DB()), 2); !errors.Is(err, processor.ErrNoPeek) {
		t.Errorf("error %v, want ErrNoPeek", err)
	}
}
