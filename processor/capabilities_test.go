package processor_test

import (
	"context"
	"strings"
	"testing"

	"github.com/dutyrota/rota/processor"
)

// plainDiscarder and the other types have capabilities that contradict each other.
type (
	plainDiscarder struct{ dealer }
	setCursored    struct{ setDealer }
	keyedCursored  struct{ rows }
)

func (*setCursored) Cursor(item string) string { return item }

func (*keyedCursored) Cursor(item string) string { return item }

func (*plainDiscarder) Discard(context.Context, string, error) error { return nil }

func TestContradictingCapabilities(t *testing.T) {
	for _, c := range []struct {
		dealer   processor.TaskDealer[string]
		notSleep bool
		want     string
	}{
		{&dealer{}, true, "NOTSLEEP) needs a dealer that is Keyed"},
		{&keyedCursored{}, true, "NOTSLEEP) must be SLEEP for a dealer that is Cursored"},
		{&setCursored{}, false, "Cursored must not be a SetSelector"},
		{&plainDiscarder{}, false, "Discarder must be Keyed"},
	} {
		s := settings()
		s.NotSleep = c.notSleep
		_, err := processor.New(c.dealer, processor.Env{TaskType: "settle"}, s)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want %s", err, c.want)
		}
		p, err := processor.New(c.dealer, processor.Env{}, settings())
		if !c.notSleep {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Configure(s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Configure: %v, want one with %v", err, c.want)
		}
	}
}
