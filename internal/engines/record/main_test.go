package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/internal/engines"
)

// day is when the tests of this file are run.
var day = time.Date(2026, 11, 26, 23, 0, 0, 0, time.UTC)

// conformed is the output of a suite with three cases, of which one failed and one was skipped.
const conformed = `{"Action":"attr","Package":"p","Test":"TestConformance/x","Key":"engine","Value":"Engine 1.2"}
{"Action":"pass","Package":"p","Test":"TestConformance/x/group/case"}
{"Action":"output","Package":"p","Test":"TestConformance/x/group/other","Output":"it broke\n"}
{"Action":"fail","Package":"p","Test":"TestConformance/x/group/other"}
{"Action":"fail","Package":"p","Test":"TestConformance/x/group"}
{"Action":"pass","Package":"p","Test":"TestConformanceWithoutConstraints/x/case"}
{"Action":"skip","Package":"p","Test":"TestConformance/x/locks/case"}
{"Action":"pass","Package":"p","Test":"TestConformance/x/locks"}
{"Action":"fail","Package":"p","Test":"TestConformance/x"}
{"Action":"fail","Package":"p","Test":"TestConformance"}
{"Action":"fail","Package":"p"}
`

const failedOver = `{"Action":"attr","Package":"p","Test":"TestFaults/x","Key":"failover","Value":"{\"rows\":7,\"twice\":1}"}
{"Action":"output","Package":"p","Test":"TestFaults/x","Output":"quiet\n"}
{"Action":"pass","Package":"p","Test":"TestFaults/x"}
{"Action":"pass","Package":"p"}
`

func TestRecord(t *testing.T) {
	file := filepath.Join(t.TempDir(), "engines", "x.json")
	var out strings.Builder
	if err := record(file, strings.NewReader(conformed), &out, day); err == nil || out.String() != "it broke\n" {
		t.Errorf("a failed suite: error %v, printed %q", err, &out)
	}
	out.Reset()
	if err := record(file, strings.NewReader(failedOver), &out, day); err != nil || out.String() != "" {
		t.Errorf("a fail-over: error %v, printed %q", err, &out)
	}
	got, err := engines.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	want := engines.Result{
		Engine:      "Engine 1.2",
		Conformance: &engines.Conformance{Date: "2026-11-26", Passed: 1, Failed: 1},
		Failover:    &engines.Failover{Date: "2026-11-26", Rows: 7, Twice: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRecordNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.json")
	for _, output := range []string{"", `{"Action":"skip","Package":"p","Test":"TestFaults/x"}`, "FAIL: no server"} {
		if err := record(file, strings.NewReader(output), t.Output(), day); err == nil {
			t.Errorf("no error after %q", output)
		}
	}
	if r, err := engines.Read(file); err != nil || r.Engine != "" {
		t.Errorf("a result was written: %+v, %v", r, err)
	}
}
