package rostercmd

import (
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
)

func TestBacklogText(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	s := func(s float64) *float64 { return &s }
	for want, got := range map[string]string{
		"-":                  backlogText(nil, "", "", nil, nil),
		"0":                  backlogText(n(0), "", "", s(1), s(0)),
		"1200":               backlogText(n(1200), "", "", s(1), nil),
		"1200 40s left":      backlogText(n(1200), "", "", s(1), s(40)),
		"1200+":              backlogText(n(1200), "+", "", s(1), nil),
		"1200 STUCK":         backlogText(n(1200), "", "STUCK", s(1), nil),
		"7 DRAINING 2m left": backlogText(n(7), "", "DRAINING", s(1), s(120)),
		"7 (10m ago)":        backlogText(n(7), "", "", s(600), s(120)),
		"7 STUCK (10m ago)":  backlogText(n(7), "", "STUCK", s(600), nil),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// P10: the texts show the shares of max_in_flight, and that a limit is not in force yet.
func TestTextsShowTheSharesOfMaxInFlight(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		granted, target *int64
		want            string
	}{
		{nil, nil, ""}, {n(3), n(3), "3"}, {n(0), n(0), "0"}, {n(3), n(1), "3 to 1"}, {n(0), n(2), "0 to 2"}, {nil, n(2), "any to 2"},
	} {
		if got := callsText(ops.ServerRecord{MaxInFlight: c.granted, MaxInFlightTarget: c.target}); got != c.want {
			t.Errorf("CALLS is %q, want %q", got, c.want)
		}
	}
	for _, c := range []struct {
		limit   int
		granted *int64
		want    string
	}{
		{0, nil, ""}, {2, n(2), ""}, {2, n(1), ""}, {2, n(5), " (now 5, until calls have ended)"}, {2, nil, " (not in force: a worker has no limit yet)"},
	} {
		if got := grantedText(center.Settings{MaxInFlight: c.limit}, ops.TaskRecord{Servers: 1, GrantedCalls: c.granted}); got != c.want {
			t.Errorf("after max_in_flight %d stands %q, want %q", c.limit, got, c.want)
		}
	}
}

// The command below a list of task types works for the environment of the list.
func TestTasksNameTheEnvironment(t *testing.T) {
	t.Parallel()
	j := doctor.Judgement{At: time.Now(), Findings: []condition.Condition{{Kind: "CLOCK", Status: condition.Problem}}}
	for ownSign, want := range map[string]string{
		"BASE": "Of no task type: CLOCK (rota doctor)", "T 1": "Of no task type: CLOCK (rota --own-sign 'T 1' doctor)",
	} {
		if got := TasksResult(ownSign, j, nil).Text(cli.Screen{}); !strings.HasSuffix(got, "\n"+want) {
			t.Errorf("%s: got %q, want %q below", ownSign, got, want)
		}
	}
}
