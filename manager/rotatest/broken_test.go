package rotatest_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/dutyrota/rota/processor"
)

// brokenDealer is the variable of the environment that names the dealer with which a process runs the tests.
const brokenDealer = "ROTATEST_DEALER"

// brokenDealers are dealers with one mistake each.
var brokenDealers = map[string]func(*sql.DB) dealer{
	"forgets":  func(db *sql.DB) dealer { return forgets{settle{db}} },
	"repeats":  func(db *sql.DB) dealer { return repeats{settle{db}} },
	"trusts":   func(db *sql.DB) dealer { return trusts{settle{db}} },
	"no fence": func(db *sql.DB) dealer { return unfenced{settle{db}} },
}

// forgets never selects order 1.
type forgets struct{ settle }

func (d forgets) Select(ctx context.Context, sel processor.Selection) (ids []int64, err error) {
	all, err := d.settle.Select(ctx, sel)
	for _, id := range all {
		if id != 1 {
			ids = append(ids, id)
		}
	}
	return ids, err
}

// repeats pays each order twice.
type repeats struct{ settle }

func (d repeats) Execute(ctx context.Context, ids []int64) error {
	if err := d.settle.Execute(ctx, ids); err != nil {
		return err
	}
	return d.settle.Execute(ctx, ids)
}

// trusts pays negative amounts.
type trusts struct{ settle }

func (d trusts) Execute(ctx context.Context, ids []int64) error {
	if _, err := d.db.ExecContext(ctx, `UPDATE orders SET amount = 10 WHERE id = $1`, ids[0]); err != nil {
		return err
	}
	return d.settle.Execute(ctx, ids)
}

// unfenced works in a transaction without a fence.
type unfenced struct{ settle }

func (d unfenced) Execute(ctx context.Context, ids []int64) error {
	if _, err := d.db.ExecContext(ctx, `UPDATE orders SET state = 'SETTLED' WHERE id = $1`, ids[0]); err != nil {
		return err
	}
	_, err := d.db.ExecContext(ctx, `INSERT INTO payments SELECT id, amount FROM orders WHERE id = $1`, ids[0])
	return err
}

// Each test of docs/worker.md fails if its dealer is broken, and its failure says what is wrong.
func TestBrokenDealers(t *testing.T) {
	type try struct{ test, dealer, want string }
	tests := []try{
		{"TestSettle", "forgets", "8 payments, want 9"},
		{"TestSettle", "repeats", "18 payments, want 9"},
		{"TestSettle", "trusts", "failed items: [], want order 7"},
		{"ExampleRoster_Work", "forgets", "got:\nnew: 1\npayments: 99\n"},
		{"ExampleRoster_Work", "repeats", "got:\nnew: 0\npayments: 200\n"},
		{"ExampleRoster_FailedItems", "trusts", "got:\npayments: 10\n"},
		{"ExampleRoster_FailedItems", "repeats", "got:\n7 DEAD 3 the amount is negative\npayments: 18\n"},
		{"ExampleRoster_Run", "trusts", "got:\nSUCCESS"},
		{"ExampleRoster_Run", "forgets", "got:\nFAILED 1 of 2 queues failed, first queue 1: execute 1 item of queue 1: the amount is negative; items failed: 1\n7 the amount is negative <nil>\npayments: 8\n"},
		{"ExampleRoster_TakeOver", "no fence", "got:\nfenced: false\n"},
		{"ExampleRoster_TakeOver", "repeats", "got:\nfenced: true\npayments: 20\n"},
	}
	for example := range strings.FieldsSeq(runTests(t, "", "-test.list=^Example")) {
		if !slices.ContainsFunc(tests, func(test try) bool { return test.test == example }) {
			t.Errorf("no broken dealer is tried in %s", example)
		}
	}
	for _, test := range tests {
		t.Run(test.test+" "+test.dealer, func(t *testing.T) {
			t.Parallel()
			out := runTests(t, test.dealer, "-test.run=^"+test.test+"$")
			if !strings.Contains(out, "--- FAIL: "+test.test) || !strings.Contains(out, test.want) {
				t.Errorf("it said:\n%s\nwant a failure with %q in it", out, test.want)
			}
		})
	}
}

// runTests runs this program with a broken dealer, or with none, and returns what it prints.
func runTests(t *testing.T, dealer, arg string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], arg)
	cmd.Env = append(os.Environ(), brokenDealer+"="+dealer)
	out, err := cmd.CombinedOutput()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return string(out)
}
