package main

import (
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run compares the predictions with a direct computation.
func TestRun(t *testing.T) {
	report, err := run(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "bayes.db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"extract      SUCCESS     33\n", "prior        SUCCESS      1\n", "conditional  SUCCESS      4\n", "predict      SUCCESS      9\n",
		"a direct computation gives the same predictions.",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("no %q in:\n%s", want, report)
		}
	}
}
