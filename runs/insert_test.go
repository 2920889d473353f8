package runs

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// R5, R18: a run of a dependant has what the list of what it inherits names, whatever columns a run gets later.
func TestDependantInheritsWhatIsListed(t *testing.T) {
	root, first := filledRun(t, 1), filledRun(t, 2)
	got := newDependant("report", "k", root, first)
	want := Run{
		TaskType: "report", Key: "k", State: Waiting, RootID: root.ID, ScheduledAt: root.ScheduledAt, Backfill: root.Backfill,
		SlotEnd: root.SlotEnd, TimeZone: root.TimeZone, Name: root.Name,
		Trigger: first.Trigger, Priority: first.Priority, Params: first.Params, TraceParent: first.TraceParent,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(got, newDependant("report", "k", root, first)); diff != "" {
		t.Errorf("made twice:\n%s", diff)
	}
}

// filledRun returns a run in which no field is zero. Two runs of different numbers have no value in common, except
// true.
func filledRun(t *testing.T, n int) (r Run) {
	t.Helper()
	for i, f := range slices.Collect(values(reflect.ValueOf(&r).Elem())) {
		switch v := f.Addr().Interface().(type) {
		case *string:
			*v = string(rune('a'+i)) + string(rune('0'+n))
		case *bool:
			*v = true
		case *int:
			*v = 100*n + i
		case *int64:
			*v = int64(100*n + i)
		case *time.Time:
			*v = time.Date(2000+n, 1, 1, i, 0, 0, 0, time.UTC)
		default:
			t.Fatalf("field %d of a run has the type %T", i, v)
		}
	}
	return r
}

func values(v reflect.Value) func(func(reflect.Value) bool) {
	return func(yield func(reflect.Value) bool) {
		for _, field := range v.Fields() {
			if !yield(field) {
				return
			}
		}
	}
}
