package ops_test

import (
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

// A number of queues that is refused leaves the other settings as they were.
func TestApplyWritesAllOrNothing(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]center.Settings{
		"a barrier": {Queues: 4}, "merges": {Queues: 4, Splittable: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := centertest.Open(t, testdb.URL(t, testdb.SQLite), center.Options{})
			centertest.Define(t, c, "settle", s)
			centertest.Exec(t, c, "UPDATE schedule_queue SET cursor_value = queue_id")
			tasks := ops.New(c).Tasks()
			s.Queues, s.FetchNumber = 2, 77
			d, err := tasks.Compare(t.Context(), "settle", s)
			must(t, err)
			if err := tasks.Apply(t.Context(), d, "test"); err == nil || !strings.Contains(err.Error(), "cursor") {
				t.Errorf("error %v, want one about the cursors", err)
			}
			if row, err := tasks.Settings(t.Context(), "settle"); err != nil || row.FetchNumber == 77 {
				t.Errorf("fetch_number is %d: %v", row.FetchNumber, err)
			}
		})
	}
}

// An environment in which a task type has no queues yet cannot say how many the settings have: the error names it, and
// not a number that nobody has stated.
func TestSettingsOfAnEnvironmentWithoutQueues(t *testing.T) {
	t.Parallel()
	c := centertest.Open(t, testdb.URL(t, testdb.SQLite), center.Options{})
	_, err := ops.New(c).Tasks().Define(t.Context(), "settle", center.Settings{Queues: 4})
	must(t, err)
	other, err := ops.New(c).In("TEST")
	must(t, err)
	stated := center.Settings{Queues: 4, ExecuteNumber: 7}
	_, err = other.Tasks().CompareGiven(t.Context(), "settle", stated, []string{"execute_number"})
	if err == nil || !strings.Contains(err.Error(), "own_sign TEST has no queues of it yet") {
		t.Errorf("without queues: %v", err)
	}
	if d, err := other.Tasks().CompareGiven(t.Context(), "settle", stated, []string{"queues", "execute_number"}); err != nil || len(d.Changes) != 1 {
		t.Errorf("with queues: %+v, %v", d, err)
	}
}
