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
)

// Only what a page has shown is done, also if its button is pressed twice.
func TestAFormThatIsSentTwice(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Access: allowed})
	s.define("alone", center.Settings{Queues: 4, Splittable: true}) // nobody drains its queues
	for _, c := range []struct {
		page string
		code int // of the second one
		want []string
	}{
		{"queue-split?task=alone&queue=3", http.StatusSeeOther, []string{"0 of 4", "1 of 4", "2 of 4", "3 of 8", "7 of 8"}},
		{"queue-merge?task=alone&queue=0", http.StatusUnprocessableEntity, []string{"0 of 2", "1 of 4", "3 of 8", "7 of 8"}},
	} {
		path, _, _ := strings.Cut(c.page, "?")
		form := s.formOf(c.page)
		form = confirmed(s.formIn(s.do(post(path, form))))
		for i, code := range []int{http.StatusSeeOther, c.code} {
			if got := s.do(post(path, form)); got.code != code {
				t.Errorf("%s: time %d: status %d, want %d: %s", c.page, i+1, got.code, code, got.body)
			}
		}
		if got := s.queuesOfAlone(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.page, got, c.want)
		}
	}
}

// queuesOfAlone returns the queues of alone with their totals.
func (s *site) queuesOfAlone() (list []string) {
	s.Helper()
	queues, err := ops.New(s.center).Queues().List(s.Context(), ops.QueueFilter{TaskType: "alone"})
	s.must(err)
	for _, q := range queues {
		list = append(list, fmt.Sprintf("%s of %d", q.QueueID, *q.QueueTotal))
	}
	return list
}
