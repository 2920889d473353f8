package sqldealer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/schema"
)

// nightly is a run whose slot is half past midnight in Berlin, of the day after the one in UTC.
func nightly() *processor.Run {
	return &processor.Run{
		ID: "a", Key: "k", Params: `{"region": "eu", "from": 7, "all": [1, 2], "none": null}`, TimeZone: "Europe/Berlin", Attempt: 2,
		ScheduledAt: time.Date(2026, 11, 20, 23, 30, 0, 0, time.UTC), SlotEnd: time.Date(2026, 11, 21, 23, 30, 0, 0, time.UTC),
	}
}

// Every kind of dealer gets every field of a run: the sql dealer as a placeholder, a program in its requests, and a
// dealer in Go from RunOf.
func TestEveryDealerGetsEveryFieldOfARun(t *testing.T) {
	want := map[string]string{
		"run_key": "k", "attempt": "2", "slot": "2026-11-20 23:30:00", "slot.utc_date": "2026-11-20",
		"slot.date": "2026-11-21", "slot.local": "2026-11-21 00:30:00", "slot_end": "2026-11-21 23:30:00",
		"slot_end.utc_date": "2026-11-21", "slot_end.date": "2026-11-22", "slot_end.local": "2026-11-22 00:30:00",
	}
	params := map[string]string{"params.region": "eu", "params.from": "7", "params.all": "[1, 2]"}
	if n := len(processor.RunFields()); n != len(want) {
		t.Fatalf("a run has %d fields, and this test knows %d", n, len(want))
	}
	text := func(value any) string {
		if at, ok := value.(time.Time); ok {
			return at.Format(time.DateTime)
		}
		return fmt.Sprint(value)
	}
	inGo, _ := processor.RunOf(processor.WithRun(t.Context(), nightly()))
	for _, f := range processor.RunFields() {
		if got := text(f.Value(inGo)); got != want[f.Name] {
			t.Errorf("in Go %s is %q, want %q", f.Name, got, want[f.Name])
		}
	}
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec(orders...)
		s.exec("CREATE TABLE seen (name VARCHAR(100), value VARCHAR(100))", "CREATE TABLE one (id INTEGER)", "INSERT INTO one VALUES (1)")
		of := selection()
		of.Run = nightly()
		play := func(d *Dealer) {
			t.Helper()
			rows, err := d.Select(t.Context(), of)
			if err == nil {
				err = d.Execute(s.batch(7), rows)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		p := &fakeProgram{}
		play(s.programDealer(settleOrders, p))
		for name, value := range want {
			if got := text(p.batch.Run[name]); got != value {
				t.Errorf("a program gets %s %q, want %q", name, got, value)
			}
		}
		if p.batch.Run["params"] != of.Run.Params {
			t.Errorf("a program gets the params %q", p.batch.Run["params"])
		}
		suffix := map[bool]string{true: "+00"}[s.Dialect() == schema.Postgres]
		for _, list := range []map[string]string{want, params} {
			for name, value := range list {
				if name == "slot" || name == "slot_end" {
					value += suffix
				}
				play(s.dealerOf(center.ModeRun, config.SQLDealer{
					Select:      "SELECT id FROM one WHERE {{index}} = 1 LIMIT {{limit}}",
					ExecuteEach: "INSERT INTO seen VALUES ('" + name + "', {{" + name + "}})",
				}))
				s.want("SELECT value FROM seen WHERE name = '"+name+"'", value)
			}
		}
	})
}

// The period of a slot selects the rows of that period, whatever type of time the column has.
func TestSlotSelectsItsPeriod(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		kind := map[schema.Dialect]string{schema.Postgres: "TIMESTAMPTZ", schema.MySQL: "DATETIME(6)", schema.MariaDB: "DATETIME(6)", schema.SQLite: "TEXT"}[s.Dialect()]
		s.exec("CREATE TABLE events (id INTEGER PRIMARY KEY, happened "+kind+", state VARCHAR(10))",
			"INSERT INTO events VALUES (1, '2026-11-20 23:29:59', ''), (2, '2026-11-20 23:30:00', ''), (3, '2026-11-21 23:29:59', ''), (4, '2026-11-21 23:30:00', '')")
		d := s.dealerOf(center.ModeRun, config.SQLDealer{
			Select:  "SELECT id FROM events WHERE {{index}} = 1 AND happened >= {{slot}} AND happened < {{slot_end}} LIMIT {{limit}}",
			Execute: "UPDATE events SET state = 'DONE' WHERE id IN ({{keys}})",
			Key:     []string{"id"},
		})
		of := selection()
		of.Run = nightly()
		rows, err := d.Select(t.Context(), of)
		if err == nil {
			err = d.Execute(s.batch(7), rows)
		}
		if err != nil {
			t.Fatal(err)
		}
		s.want("SELECT id FROM events WHERE state = 'DONE' ORDER BY id", "2", "3")
		for change, want := range map[string]string{"no slot_end": "run a has no {{slot_end}}"} {
			of.Run.SlotEnd = time.Time{}
			if _, err := d.Select(t.Context(), of); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want %s", change, err, want)
			}
		}
	})
}

// A placeholder has a value on every database before IS NULL, too, where PostgreSQL infers no type of a mark. Where it can
// infer none otherwise, it says what helps.
func TestPlaceholderWhoseTypeNothingSays(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec("CREATE TABLE one (id INTEGER)", "INSERT INTO one VALUES (1)")
		of := selection()
		of.Run = nightly()
		for _, name := range append(slices.Clone(runNames[:len(runNames)-1]), "params.region", "params.from", "parameter") {
			for condition, want := range map[string]int{"IS NOT NULL": 1, "\n is null": 0} {
				d := s.dealerOf(center.ModeRun, config.SQLDealer{
					Select:      "SELECT id FROM one WHERE {{index}} = 1 AND {{" + name + "}} " + condition + " LIMIT {{limit}}",
					ExecuteEach: "UPDATE one SET id = 1",
				})
				if err := d.Check(t.Context()); err != nil {
					t.Error(err)
				}
				if rows, err := d.Select(t.Context(), of); err != nil || len(rows) != want {
					t.Errorf("{{%s}} %s: %d rows (%v), want %d", name, condition, len(rows), err, want)
				}
			}
		}
		if s.Dialect() != schema.Postgres {
			return
		}
		d := s.dealerOf(center.ModeRun, config.SQLDealer{
			Select:      "SELECT id FROM one WHERE {{index}} = 1 AND concat({{slot}}) <> '' LIMIT {{limit}}",
			ExecuteEach: "UPDATE one SET id = 1",
		})
		const want = ".select, line 1, column 51 ({{slot}}) <> '' LIMIT {{limit}...): could not determine the data type: " +
			"give it one, as in CAST({{slot}} AS timestamptz)"
		if err := d.Check(t.Context()); !Refused(err) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	})
}

func TestParamsThatARunLacks(t *testing.T) {
	for params, want := range map[string]string{
		"":         "the params of run a must be a JSON object with region",
		"eu":       "the params of run a must be a JSON object with region",
		`{"a": 1}`: "the params of run a have no region",
	} {
		_, err := (&processor.Run{ID: "a", Params: params}).Param("region")
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("params %q: error %v, want %s", params, err, want)
		}
	}
}

// A dealer whose statements use the slot, or the key of the run, is not slotless.
func TestSlotless(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		for placeholder, want := range map[string]bool{"slot.date": false, "run_key": false, "params.day": true, "own_sign": true} {
			d := s.dealerOf(center.ModeRun, config.SQLDealer{
				Select:  "SELECT id FROM orders WHERE {{index}} = 1 AND note = {{" + placeholder + "}} LIMIT {{limit}}",
				Execute: anUpdate, Key: []string{"id"},
			})
			if got := d.Capabilities().Slotless; got != want {
				t.Errorf("with {{%s}} the dealer is slotless: %t, want %t", placeholder, got, want)
			}
		}
	})
}
