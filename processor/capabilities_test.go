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
	notSleep := func(s *processor.Settings) { s.NotSleep = true }
	for _, c := range []struct {
		dealer processor.TaskDealer[string]
		sets   func(*processor.Settings)
		want   string
	}{
		{&dealer{}, notSleep, "NOTSLEEP) needs a dealer that is Keyed"},
		{&keyedCursored{}, notSleep, "NOTSLEEP) must be SLEEP for a dealer that is Cursored"},
		{&setCursored{}, nil, "Cursored must not be a SetSelector"},
		{&plainDiscarder{}, nil, "Discarder must be Keyed"},
		{&setDealer{}, func(s *processor.Settings) { s.Splittable = true }, "splittable (true) needs a select per queue"},
	} {
		s := settings()
		if c.sets != nil {
			c.sets(&s)
		}
		_, err := processor.New(c.dealer, processor.Env{TaskType: "settle"}, s)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want %s", err, c.want)
		}
		p, err := processor.New(c.dealer, processor.Env{}, settings())
		if c.sets == nil {
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
