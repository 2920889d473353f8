package sqldealer

import (
	"slices"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/manager/rotatest"
)

// withNulls has rows whose keys have NULL. Each page ends with one in some database.
func (s shop) withNulls() config.SQLDealer {
	s.Helper()
	s.exec("CREATE TABLE parcels (region VARCHAR(9), id INTEGER, done INTEGER NOT NULL)",
		"INSERT INTO parcels VALUES ('north', 1, 0), ('north', NULL, 0), ('north', 2, 0), ('south', NULL, 0), ('south', 3, 0), (NULL, 4, 0), ('west', 5, 0), (NULL, NULL, 0)")
	return config.SQLDealer{
		Select: "SELECT region, id FROM parcels WHERE done = 0 AND {{index}} < 2 AND " +
			"(region > {{after.region}} OR region = {{after.region}} AND id > {{after.id}}) ORDER BY region, id LIMIT {{limit}}",
		Execute:    "UPDATE parcels SET done = 1 WHERE (region, id) IN ({{keys}})",
		Key:        []string{"region", "id"},
		AfterStart: []string{`\s`, "0"},
	}
}

// A row whose key has NULL fails, and no other one.
func TestRowWithoutKey(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		c := s.withNulls()
		c.Select = "SELECT region, id FROM parcels WHERE done = 0 AND {{index}} < 2 ORDER BY region, id LIMIT {{limit}}"
		c.AfterStart = nil
		d := s.dealer(c)
		rows := s.selectAll(d)
		if len(rows) != 8 {
			t.Fatalf("%d rows, want 8", len(rows))
		}
		if err := d.Execute(s.batch(7), rows); !strings.Contains(errorText(err), "has no key: column") {
			t.Errorf("all rows: %v", err)
		}
		s.want("SELECT COUNT(*) FROM parcels WHERE done = 1", "0")
		var failed []string
		for _, r := range rows {
			if err := d.Execute(s.batch(7), []Row{r}); err != nil {
				failed = append(failed, d.Key(r)+": "+err.Error())
			}
		}
		slices.Sort(failed)
		want := []string{
			`\N/4: the row \N/4 has no key: column "region" is NULL`, `\N/\N: the row \N/\N has no key: column "region" is NULL`,
			`north/\N: the row north/\N has no key: column "id" is NULL`, `south/\N: the row south/\N has no key: column "id" is NULL`,
		}
		if !slices.Equal(failed, want) {
			t.Errorf("got  %q\nwant %q", failed, want)
		}
		s.want("SELECT id FROM parcels WHERE done = 1 ORDER BY id", "1", "2", "3", "5")
	})
}

func (s shop) selectAll(d *Dealer) []Row {
	s.Helper()
	sel := selection()
	sel.Limit = 100
	rows, err := d.Select(s.Context(), sel)
	if err != nil {
		s.Fatal(err)
	}
	return rows
}

// A page that ends with such a row is followed by the rows behind it.
func TestPageThatEndsWithARowWithoutKey(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		d := s.dealer(s.withNulls())
		for limit := 1; limit < 5; limit++ {
			sel := selection()
			sel.Limit = limit
			var found []string
			for range 10 {
				rows, err := d.Select(t.Context(), sel)
				if err != nil {
					t.Fatal(err)
				}
				if len(rows) == 0 {
					break
				}
				for _, r := range rows {
					found = append(found, d.Key(r))
				}
				sel.After = d.Position(rows[len(rows)-1])
			}
			for _, key := range []string{"north/1", "north/2", "south/3", "west/5"} {
				if !slices.Contains(found, key) {
					t.Errorf("pages of %d: %q, want %s among them", limit, found, key)
				}
			}
		}
	})
}

// A worker executes the other rows of the queue, and the roster says which rows have no key: of a key of one column, and
// of several.
func TestWorkerPassesRowsWithoutKey(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		r := rotatest.Open(t, rotatest.Options{Database: anydb.URL(url)})
		s := shop{t, r.Center()}
		composite := s.withNulls()
		single := config.SQLDealer{
			Select:  "SELECT id FROM parcels WHERE done = 1 AND {{index}} < 2 ORDER BY id LIMIT {{limit}}",
			Execute: "UPDATE parcels SET done = 2 WHERE id IN ({{keys}})", Key: []string{"id"},
		}
		composite.Select = strings.Replace(composite.Select, "(region > {{after.region}}", "(id IS NULL OR region > {{after.region}}", 1)
		for _, test := range []struct {
			task string
			c    config.SQLDealer
			dead []string
		}{{"settle", composite, []string{`north/\N`, `south/\N`, `\N/\N`}}, {"pay", single, []string{`\N`}}} {
			settings := center.Settings{Queues: 1, ExecuteNumber: 100}
			d, err := newDealer(config.Task{Name: test.task, Settings: settings, SQL: test.c}, s.Dialect())
			if err != nil {
				t.Fatal(err)
			}
			r.Work(manager.Serve(test.task, d.Use(s.DB()), settings))
			var dead []string
			for _, i := range r.FailedItems(test.task) {
				dead = append(dead, i.ItemKey)
				if i.State != "DEAD" || !strings.Contains(i.LastError, "has no key") {
					t.Errorf("%+v, want a dead one without a key", i)
				}
			}
			slices.Sort(dead)
			slices.Sort(test.dead)
			if !slices.Equal(dead, test.dead) {
				t.Errorf("%s: the dead items are %q, want %q", test.task, dead, test.dead)
			}
			s.exec("UPDATE parcels SET done = 1 WHERE id IS NULL")
		}
		s.want("SELECT id FROM parcels WHERE done = 2 ORDER BY id", "1", "2", "3", "5")
	})
}
