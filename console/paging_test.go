package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// Long lists have pages of 100 rows, with links to the pages beside them that keep the filters.
func TestListsHavePages(t *testing.T) {
	t.Parallel()
	s := newLargeSite(t, testdb.URL(t, testdb.SQLite), 120, 250)
	for _, c := range []struct{ path, has, lacks string }{
		{"/task?task=settle", `id="row-99"`, `id="row-100"`},
		{"/task?task=settle", `href="?page=2&amp;task=settle"`, "Previous 100"},
		{"/task?task=settle&page=2", `id="row-100"`, `id="row-99"`},
		{"/task?task=settle&page=2&status=HELD", `href="?page=1&amp;status=HELD&amp;task=settle"`, "row-200"},
		{"/task?task=settle&page=3", "201 to 250 of 250", "Next 100"},
		{"/task?task=settle&page=99", "201 to 250 of 250", "Next 100"},
		{"/task?task=settle&page=x", `id="row-0"`, "Previous 100"},
		{"/workers?page=2", "101 to 120 of 120", "Next 100"},
		{"/workers?q=host3&page=1", "host3", "Next 100"},
		{"/events", "Next 100", "Previous 100"},
		{"/events?page=2", "Previous 100", "No event matches"},
	} {
		if got := s.get(c.path); got.code != http.StatusOK || !strings.Contains(got.body, c.has) || strings.Contains(got.body, c.lacks) {
			t.Errorf("%s: status %d; want %q, and not %q: %s", c.path, got.code, c.has, c.lacks, got.body)
		}
	}
}

// An item is found by its key, its order key and its error among any number of failed items.
func TestOldItemsAreFound(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{})
	s.must(failures.Of(s.center.Roster()).Save(t.Context(), "settle", []failures.Item{
		{Key: "old", OrderKey: "customer 77", QueueID: "0", State: ops.ItemDead, Attempts: 25, LastError: "card stolen"},
	}))
	items := make([]failures.Item, 1_100)
	for i := range items {
		items[i] = failures.Item{Key: fmt.Sprint("item ", i), QueueID: "0", State: ops.ItemDead, Attempts: 25, LastError: "no"}
	}
	s.must(failures.Of(s.center.Roster()).Save(t.Context(), "settle", items))
	for _, q := range []string{"task=settle&q=old", "q=mer+77", "q=card", "state=dead&queue=0&q=card"} {
		if got := s.get("/items?" + q); !strings.Contains(got.body, ">old<") || strings.Contains(got.body, "item 7") {
			t.Errorf("%s: want the oldest item alone: %s", q, got.body)
		}
	}
	if got := s.get("/items?q=Card"); got.code != http.StatusOK || strings.Contains(got.body, ">old<") {
		t.Errorf("status %d, want no item: %s", got.code, got.body)
	}
	if got := s.get("/items?task=settle"); !strings.Contains(got.body, "of the latest 1,000 items") || !strings.Contains(got.body, "1 to 100 of 1,000") {
		t.Errorf("the page does not say that there are more: %s", got.body)
	}
}

// A person who may look at one task type sees its rows, however many newer rows other task types have.
func TestRowsOfOthersHideNone(t *testing.T) {
	t.Parallel()
	s := newRightsSite(t)
	s.define("hourly", center.Settings{Mode: center.ModeRun, Queues: 1})
	submit := func(taskType, key string) {
		_, _, err := ops.New(s.center).Runs().Submit(t.Context(), taskType, runs.Submission{Key: key})
		s.must(err)
	}
	submit("hourly", "mine")
	items := []failures.Item{{Key: "mine", QueueID: "north", State: ops.ItemDead, Attempts: 25, LastError: "broken"}}
	s.must(failures.Of(s.center.Roster()).Save(t.Context(), "regions", items))
	items = nil
	for i := range 1_100 {
		items = append(items, failures.Item{Key: fmt.Sprint("item ", i), QueueID: "0", State: ops.ItemDead, LastError: "no"})
	}
	s.must(failures.Of(s.center.Roster()).Save(t.Context(), "settle", items))
	for i := range 101 {
		s.must(s.center.Roster().Operator("ann").Pause(t.Context(), "settle", i%2 == 0))
		submit("nightly", fmt.Sprint(i))
	}
	for _, c := range []struct{ user, path, has string }{
		{"regions", "/items", ">mine<"},
		{"regions", "/items?format=json", "broken"},
		{"regions", "/events?format=json", "PAUSED"},
		{"hourly", "/runs", "mine"},
		{"hourly", "/runs?state=ready&format=csv", "mine"},
	} {
		if got := s.as(c.user, request(http.MethodGet, c.path)); !strings.Contains(got.body, c.has) || strings.Contains(got.body, "nightly") {
			t.Errorf("%s: want %q: %s", c.path, c.has, got.body)
		}
	}
}

// A page with a number that no list has, or has no more, shows the last rows. It does not say that there are none.
func TestPageNumbersBeyondAll(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{})
	for _, page := range []string{"2", "92233720368547759", "184467440737095517", "9223372036854775807"} {
		for _, path := range []string{"/events", "/items", "/runs", "/workers", "/task?task=settle"} {
			sign := "?"
			if strings.Contains(path, "?") {
				sign = "&"
			}
			if got := s.get(path + sign + "page=" + page); got.code != http.StatusOK || !strings.Contains(got.body, "<tbody>") {
				t.Errorf("page %s of %s: status %d: %s", page, path, got.code, got.body)
			}
		}
	}
}
