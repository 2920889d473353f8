package sqldealer

import (
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/processor"
)

// Rows that belong to no queue, or to two, are counted beside the sum of the queues (N4).
func TestCountStrays(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.events() // the customers are -7, NULL, 5, -8 and 5
		for condition, want := range map[string]processor.Strays{
			"mod(customer, {{total}}) = {{index}}":                        {Items: 5, InQueues: 3},
			"( Mod ( customer , {{total}} ) = {{index}} )":                {Items: 5, InQueues: 3},
			"customer % {{total}} = {{index}}":                            {Items: 5, InQueues: 3},
			"{{index}} = mod(customer, {{total}})":                        {Items: 4, InQueues: 3}, // NULL is not seen in this form
			"abs(mod(customer, {{total}})) = {{index}}":                   {Items: 4, InQueues: 4},
			"abs(mod(COALESCE(customer, 0), {{total}})) = {{index}}":      {Items: 5, InQueues: 5},
			"abs(mod(COALESCE(customer, 0), {{total}})) <= {{index}}":     {Items: 5, InQueues: 15},
			"{{mine customer}}":                                           {},
			"{{queue}} = 'x' AND mod(customer, {{total}}) = {{index}}":    {},
			"{{mine customer}} AND mod(customer, {{total}}) = {{index}}":  {Items: 5, InQueues: 3},
			"mod(customer, {{total}}) = {{index}} OR {{mine id}} AND 1=0": {Items: 5, InQueues: 3},
		} {
			c := mineOf(condition)
			if strings.Contains(condition, "OR") { // it has a lower precedence than AND
				condition = "(" + condition + ")"
				c = mineOf(condition)
			}
			d := s.dealer(c)
			got, err := d.CountStrays(t.Context(), ofQueue(0, 4))
			if sel := "SELECT id, customer, region FROM events WHERE id > {{after}} AND NOT {{held}} AND " + condition; want.Items > 0 && !strings.HasPrefix(got.Select, sel) {
				t.Errorf("%s: select %q", condition, got.Select)
			}
			if got.Select = ""; err != nil || got != want {
				t.Errorf("%s: %+v, %v, want %+v", condition, got, err, want)
			}
			if other, err := d.CountStrays(t.Context(), ofQueue(1, 4)); err != nil || other != (processor.Strays{}) {
				t.Errorf("%s: the owner of queue 1 counts %+v, %v", condition, other, err)
			}
		}
	})
}

// A worker and the doctor say that a select may miss rows, and what to write instead.
func TestPlainDivisionIsReported(t *testing.T) {
	s := openShop(t, testdb.URL(t, testdb.SQLite))
	s.events()
	for condition, want := range map[string]string{
		"mod(customer, {{total}}) = {{index}}":              "write {{mine customer}} instead of the comparison with {{index}}",
		"mod(abs(customer + 1), {{total}}) = {{index}}":     "write {{mine abs(customer + 1)}} instead of the comparison with {{index}}",
		"events.customer % {{total}} = {{index}}":           "write {{mine events.customer}} instead of the comparison with {{index}}",
		"1 + customer % {{total}} = {{index}} + 1":          "",
		"NOT mod(customer, {{total}}) = {{index}}":          "",
		"mod(customer, {{total}}) = {{index}} + 1":          "",
		"coalesce(mod(customer, {{total}}), 0) = {{index}}": "",
		"customer BETWEEN {{total}} AND {{index}}":          "",
		"{{mine customer}}":                                 "",
	} {
		d := s.dealer(mineOf(condition))
		found, err := d.ScanFirst(t.Context(), "TEST", center.Settings{Queues: 2})
		got := ""
		if found != nil {
			got = found.Hint
		}
		if err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", condition, got, err, want)
		}
	}
	whole, _ := s.dealer(mineOf("mod(customer, {{total}}) = {{index}}")).backlog.withoutDivision()
	if got, want := whole.text(0), "SELECT count(*) FROM events WHERE sent = 0 AND 1 = 1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
