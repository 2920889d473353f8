package sqldealer

import (
	"errors"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/schema"
)

var discardOrders = config.SQLDealer{
	Select:  "SELECT id, note FROM orders WHERE state = 'NEW' AND {{index}} = 1 ORDER BY id LIMIT {{limit}}",
	Execute: "UPDATE orders SET state = 'SETTLED' WHERE id IN ({{keys}})",
	Discard: "UPDATE orders SET state = 'BROKEN', note = {{error}}, by_server = {{server}} WHERE id IN ({{keys}}) AND id = {{row.id}}",
	Key:     []string{"id"},
}

// Discard runs its statement for one row, in a transaction that is fenced.
func TestDiscard(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec(orders...)
		d := s.dealer(discardOrders)
		if !d.Capabilities().Discarder {
			t.Fatal("not a Discarder")
		}
		r := s.selectRows(d)[1]
		if err := d.Discard(s.batch(6), r, errors.New("late")); !errors.Is(err, center.ErrFenced) {
			t.Errorf("with an older epoch: %v", err)
		}
		s.want("SELECT COUNT(*) FROM orders WHERE state = 'BROKEN'", "0")
		if err := d.Discard(s.batch(7), r, errors.New("it's \x00bad")); err != nil {
			t.Fatal(err)
		}
		s.want("SELECT id, note, by_server FROM orders WHERE state = 'BROKEN'", "2 it's bad "+owner)
	})
}

// A discard that the database refuses is an error with the name of the statement. {{error}} has a bound.
func TestDiscardFails(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec(orders...)
		s.exec("CREATE TABLE dead (id INTEGER PRIMARY KEY, note TEXT)", "INSERT INTO dead VALUES (2, 'is there')")
		c := discardOrders
		c.Discard = "INSERT INTO dead VALUES ({{row.id}}, {{error}})"
		d := s.dealer(c)
		rows := s.selectRows(d)
		long := errors.New(strings.Repeat("é", 5000))
		if err := d.Discard(s.batch(7), rows[0], long); err != nil {
			t.Fatal(err)
		}
		s.want("SELECT "+map[bool]string{true: "CHAR_LENGTH", false: "LENGTH"}[s.Dialect().Family() == schema.MySQL]+"(note) FROM dead WHERE id = 1", "2003")
		if err := d.Discard(s.batch(7), rows[1], long); err == nil || !strings.HasPrefix(err.Error(), "run discard: ") {
			t.Errorf("a row that is there: %v", err)
		}
	})
}
