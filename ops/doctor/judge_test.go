package doctor_test

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
)

// A screen shows findings of before only for as long as the checks would cost too much, so that it says soon what the
// doctor says now.
func TestJudgeChecksAgainSoonWhereChecksAreQuick(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		c := ops.New(centertest.Served(t, url))
		for name, test := range map[string]struct {
			age, took time.Duration
			again     bool
		}{
			"quick":               {5 * time.Second, 50 * time.Millisecond, true},
			"quick, and just now": {time.Second, 50 * time.Millisecond, false},
			"slow":                {5 * time.Second, time.Second, false},
			"slow, and old":       {doctor.JudgeEvery, time.Minute, true},
		} {
			before := doctor.Judgement{
				Findings: []condition.Condition{{Kind: "BEFORE"}}, At: time.Now().Add(-test.age), Took: test.took,
			}
			got := doctor.Judge(t.Context(), c, "", before, doctor.JudgeEvery)
			if kept := len(got.Findings) == 1 && got.Findings[0].Kind == "BEFORE"; got.Err != nil || kept == test.again {
				t.Errorf("%s: %+v, want new findings: %t", name, got, test.again)
			}
		}
	})
}
