package doctorcmd

import (
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/cmd/rota/internal/sqldealer"
	"github.com/dutyrota/rota/condition"
)

func TestDoctorNamesTheTransactionThatHoldsACursorBack(t *testing.T) {
	for _, c := range []struct {
		holder *sqldealer.Holder
		want   string
	}{
		{nil, ""},
		{&sqldealer.Holder{PID: 7, Age: 5*time.Minute - 1}, ""},
		{
			&sqldealer.Holder{PID: 7, Application: "psql", State: "idle in transaction", Age: 5 * time.Minute},
			"PROBLEM: rows of the last 5m0s are not read until process 7 (psql, idle in transaction) ends its transaction, which has written -> end it: SELECT pg_terminate_backend(7)",
		},
		{
			&sqldealer.Holder{Prepared: "it's", Age: time.Hour},
			"PROBLEM: rows of the last 1h0m0s are not read until the prepared transaction 'it''s' ends -> COMMIT PREPARED 'it''s' or ROLLBACK PREPARED 'it''s'",
		},
		{
			&sqldealer.Holder{PID: 7, Hidden: true},
			"NOTE: rows that were written after the transaction of process 7 began are not read, and this role may not see when that was -> GRANT pg_read_all_stats to this role",
		},
	} {
		got := ""
		for _, f := range holderFinding("settle", c.holder) {
			got = f.Status + ": " + f.Text + " -> " + f.Hint
		}
		if got != c.want {
			t.Errorf("%+v:\ngot  %s\nwant %s", c.holder, got, c.want)
		}
	}
}

func TestFindingsOnATerminal(t *testing.T) {
	t.Parallel()
	findings := []condition.Condition{{Status: "PROBLEM", Check: "requests", TaskType: "settle", Text: strings.Repeat("a long finding ", 20), Hint: strings.Repeat("some advice ", 20)}}
	if got := findingsText(cli.Screen{Width: 80, Height: 24, Color: true}, findings); text.LongestLineLen(got) > 80 || strings.Count(got, "finding") != 20 || strings.Count(got, "advice") != 20 {
		t.Errorf("%d characters wide:\n%s", text.LongestLineLen(got), got)
	}
	if got := findingsText(cli.Screen{}, findings); strings.Contains(got, "\n") {
		t.Errorf("more than a line:\n%s", got)
	}
}
