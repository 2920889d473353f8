package program

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
)

func conformOptions() ConformOptions {
	return ConformOptions{Row: json.RawMessage(`{"id":1}`), Fence: "UPDATE t SET a = a WHERE b = 1", Timeout: 3 * time.Second}
}

// wantFindings compares the checks that have failed with those that should, which are named by their starts.
func wantFindings(t *testing.T, what string, findings []Finding, want []string) {
	t.Helper()
	var failed []string
	for _, f := range findings {
		if f.Err != nil {
			failed = append(failed, f.Check+": "+f.Err.Error())
		}
	}
	if !slices.EqualFunc(failed, want, strings.HasPrefix) {
		t.Errorf("%s: the failed checks are\n%s\nwant\n%s", what, strings.Join(failed, "\n"), strings.Join(want, "\n"))
	}
}

// The conformance check names what a program does wrong, and passes one that does nothing wrong.
func TestConformCommand(t *testing.T) {
	t.Parallel()
	log := logrus.New()
	log.SetOutput(io.Discard)
	for fault, want := range map[string][]string{
		"":         nil,
		"any op":   {"an unknown op is an error of the batch: the reply has items"},
		"no fence": {"a fence that changes no row: the reply must be fenced: the program has not rolled back"},
		"trims":    {`keys are repeated as they are: the reply has the item "", which is not`},
		"chatty":   {`nothing but replies on stdout, and an end with stdin: stdout has more than the replies: "bye\n"`},
		"stays":    {"nothing but replies on stdout, and an end with stdin: no end within 3s"},
		"fails":    {"nothing but replies on stdout, and an end with stdin: the program has ended with exit status 4"},
		"forgets": {
			`ten rows: the reply lacks the item "rota-check-10"`, `the same rows again: the reply lacks`,
			"keys are repeated as they are: the reply lacks", "1,000 rows in a batch: the reply lacks",
		},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			var findings []Finding
			args := append([]string{os.Args[0], beProgram}, strings.Fields(fault)...)
			if err := ConformCommand(t.Context(), args, conformOptions(), log, func(f Finding) { findings = append(findings, f) }); err != nil {
				t.Fatal(err)
			}
			wantFindings(t, fault, findings, want)
			if len(findings) != 10 {
				t.Errorf("%d checks, want 10", len(findings))
			}
		})
	}
}

// A service with a secret must refuse what no worker has sent just now.
func TestConformHTTP(t *testing.T) {
	t.Parallel()
	h := serveHTTP(t, "secret", func(w http.ResponseWriter, r *http.Request) {
		var b request
		if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, b.answer(""))
	})
	var findings []Finding
	ConformHTTP(t.Context(), h, conformOptions(), func(f Finding) { findings = append(findings, f) })
	wantFindings(t, "a service that trusts all", findings, []string{
		"a request without a signature is refused: status 200, want 4xx", "a request with another secret is refused: status 200",
		"a request of an hour ago is refused: status 200", "a request that comes a second time is refused: status 200",
	})
}
