package main

import (
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The runs come to what a direct computation says: run compares.
func TestRun(t *testing.T) {
	report, err := run(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "bayes.db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"extract      SUCCESS     33\n", "prior        SUCCESS      1\n", "conditional  SUCCESS      4\n", "predict      SUCCESS      9\n",
		"a direct computation says the same of all.",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("%q is missing in:\n%s", want, report)
		}
	}
}
