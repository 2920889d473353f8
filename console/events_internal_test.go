package console

import (
	"testing"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/ops"
)

// An alert has the colour that its condition has on the first page.
func TestAlertHasTheColourOfItsCondition(t *testing.T) {
	t.Parallel()
	for _, k := range condition.Kinds() {
		if k.Alert == condition.Silent {
			continue
		}
		e := ops.EventRecord{Kind: ops.EventAlert, Alert: &k.Name}
		if got, want := eventMark(e), (mark{markOfStatus[k.Status], "alert"}); got != want {
			t.Errorf("%s: %+v, want %+v", k.Name, got, want)
		}
	}
}
