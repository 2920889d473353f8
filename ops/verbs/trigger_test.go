package verbs_test

import (
	"errors"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/verbs"
	"github.com/dutyrota/rota/runs"
)

// What was prepared for a trigger is not done to another one: its definition is compared in the transaction of the
// write. A firing in between does not matter.
func TestTriggersThatWereOvertaken(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Open(t, url, center.Options{})
		for _, task := range []string{"nightly", "other"} {
			if _, err := ops.New(c).Tasks().Define(t.Context(), task, center.Settings{Queues: 1, Mode: center.ModeRun}); err != nil {
				t.Fatal(err)
			}
		}
		put := func(target, params string) {
			t.Helper()
			d, err := ops.New(c).Triggers().Compare(t.Context(), runs.Trigger{Name: "two", Target: target, Kind: runs.TriggerCron, Expression: "0 0 2 * * ?", Params: params}, 0)
			if err == nil {
				_, err = c.Engine().Triggers.Apply(t.Context(), d, "test")
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		do := func(verb string, meanwhile func()) error {
			t.Helper()
			call := verbs.Find(verb).Call()
			if err := call.Set(call.Verb.Args[0], "two"); err != nil {
				t.Fatal(err)
			}
			planned, err := call.Prepare(t.Context(), ops.New(c))
			if err != nil {
				t.Fatal(err)
			}
			meanwhile()
			_, err = planned.Do(t.Context(), "test")
			return err
		}
		for _, verb := range []string{"trigger pause", "trigger resume", "trigger fire", "trigger delete"} {
			for what, meanwhile := range map[string]func(){
				"params":  func() { put("nightly", "theirs") },
				"target":  func() { put("other", "") },
				"remade":  func() { must(t, c.Engine().Triggers.Delete(t.Context(), "two", "test")); put("nightly", "theirs") },
				"deleted": func() { must(t, c.Engine().Triggers.Delete(t.Context(), "two", "test")) },
			} {
				put("nightly", "")
				if err := do(verb, meanwhile); !errors.Is(err, ops.ErrChanged) && !errors.Is(err, runs.ErrUnknownTrigger) {
					t.Errorf("%s, %s: error %v, want ErrChanged", verb, what, err)
				}
			}
			put("nightly", "")
			if err := do(verb, func() {
				_, err := c.Engine().Triggers.Fire(t.Context(), "two", "test")
				must(t, err)
			}); err != nil {
				t.Errorf("%s after a firing: %v", verb, err)
			}
		}
		if list, err := ops.New(c).Runs().List(t.Context(), runs.Filter{TaskType: "other"}, 1); err != nil || len(list) > 0 {
			t.Errorf("the task type that nobody saw has runs: %+v, %v", list, err)
		}
	})
}
