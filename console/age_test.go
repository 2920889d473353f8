package console_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

// A page never says that it is newer than what it shows: if it lacks an item that has failed, it is as of a moment
// before. Workers save failed items without an event.
func TestPageTellsItsAge(t *testing.T) {
	t.Parallel()
	for page, text := range map[string]string{"/items?task=settle": ">9001<", "/": ">3 dead<"} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{})
			s.get(page)
			s.must(failures.Of(s.center.Roster()).Save(t.Context(), "settle", []failures.Item{{Key: "9001", QueueID: "3", State: ops.ItemDead}}))
			saved := time.Now()
			for deadline := saved.Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
				r := s.do(request(http.MethodGet, page))
				if r.code == http.StatusOK && strings.Contains(r.body, text) {
					return
				}
				ms, _ := strconv.ParseInt(r.Get("Rota-As-Of"), 10, 64)
				if asOf := time.UnixMilli(ms); asOf.After(saved) {
					t.Fatalf("an item has failed at %s; the page does not show it, and says that it is as of %s", saved, asOf)
				}
				if time.Now().After(deadline) {
					t.Fatal("the page never shows the failed item")
				}
			}
		})
	}
}

// A rate follows from two readings. Until there are two, the page says so, and not that it is zero.
func TestRateNeedsTwoReadings(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{})
	const page, unknown, zero = "/task?task=settle", "known after two readings", "<dt>Items a second</dt><dd>0 "
	if body := s.get(page).body; !strings.Contains(body, unknown) || strings.Contains(body, zero) {
		t.Fatalf("the first page does not say that the rate is unknown:\n%s", body)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if body := s.get(page).body; strings.Contains(body, zero) && !strings.Contains(body, unknown) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the page never shows a rate")
		}
	}
}
