package console_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// Only what a page has shown is done, also if its button is pressed twice.
func TestAFormThatIsSentTwice(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Access: allowed})
	s.define("alone", center.Settings{Queues: 4, Splittable: true}) // nobody drains its queues
	s.define("report", center.Settings{Queues: 1, Mode: center.ModeRun})
	for _, c := range []struct {
		page, field, value string
		code               int // of the second one
		want               []string
	}{
		{"queue-split?task=alone&queue=3", "", "", http.StatusSeeOther, []string{"0 of 4", "1 of 4", "2 of 4", "3 of 8", "7 of 8"}},
		{"queue-merge?task=alone&queue=0", "", "", http.StatusUnprocessableEntity, []string{"0 of 2", "1 of 4", "3 of 8", "7 of 8"}},
		{"run-submit?task=report", "not-before", "2h", http.StatusSeeOther, []string{"a run"}},
	} {
		path, _, _ := strings.Cut(c.page, "?")
		form := s.formOf(c.page)
		form.Set(c.field, c.value)
		form = confirmed(s.formIn(s.do(post(path, form))))
		for i, code := range []int{http.StatusSeeOther, c.code} {
			if got := s.do(post(path, form)); got.code != code {
				t.Errorf("%s: time %d: status %d, want %d: %s", c.page, i+1, got.code, code, got.body)
			}
		}
		if got := s.thingsOf(path); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.page, got, c.want)
		}
	}
}

// thingsOf returns the queues of alone, or a text for each run of report.
func (s *site) thingsOf(path string) (list []string) {
	s.Helper()
	if path == "run-submit" {
		all, err := ops.New(s.center).Runs().List(s.Context(), runs.Filter{TaskType: "report"}, 10)
		s.must(err)
		for range all {
			list = append(list, "a run")
		}
		return list
	}
	queues, err := ops.New(s.center).Queues().List(s.Context(), ops.QueueFilter{TaskType: "alone"})
	s.must(err)
	for _, q := range queues {
		list = append(list, q.QueueID+" of "+fmt.Sprint(*q.QueueTotal))
	}
	return list
}
