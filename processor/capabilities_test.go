package processor_test

import (
	"testing"

	"github.com/dutyrota/rota/processor"
)

// What a list of capabilities says is what was written, whatever a later version has added.
func TestCapabilitiesAsText(t *testing.T) {
	for n := range 1 << 7 {
		has := func(bit int) bool { return n>>bit&1 == 1 }
		want := processor.Capabilities{has(0), has(1), has(2), has(3), has(4), has(5), has(6)}
		if got := processor.ParseCapabilities(want.String()); got != want {
			t.Errorf("%q is read as %+v, want %+v", want, got, want)
		}
	}
	if got, want := processor.ParseCapabilities("Flying,Cursored,"), (processor.Capabilities{Cursored: true}); got != want {
		t.Errorf("read %+v, want %+v", got, want)
	}
	if got := (processor.Capabilities{Keyed: true, SetSelector: true}).String(); got != "Keyed,SetSelector" {
		t.Errorf("written %q", got)
	}
}
