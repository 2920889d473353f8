package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// plainDiscarder and the other types have capabilities that contradict each other.
type (
	plainDiscarder struct{ dealer }
	keyedCursored  struct{ rows }
)

func (*keyedCursored) Cursor(item string) string { return item }

func (*plainDiscarder) Discard(context.Context, string, error) error { return nil }

func TestContradictingCapabilities(t *testing.T) {
	notSleep := func(s *engine.Settings) { s.NotSleep = true }
	for _, c := range []struct {
		dealer processor.TaskDealer[string]
		sets   func(*engine.Settings)
		want   string
	}{
		{&dealer{}, notSleep, "NOTSLEEP) needs a dealer that is Keyed"},
		{&keyedCursored{}, notSleep, "NOTSLEEP) must be SLEEP for a dealer that is Cursored"},
		{&plainDiscarder{}, nil, "Discarder must be Keyed"},
	} {
		s := settings()
		if c.sets != nil {
			c.sets(&s)
		}
		_, err := engine.New(c.dealer, engine.Env{TaskType: "settle"}, s)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want %s", err, c.want)
		}
		p, err := engine.New(c.dealer, engine.Env{}, settings())
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

// capable has the methods of all capabilities, and offers some.
type capable struct {
	*tape
	offers processor.Capabilities
}

func (c *capable) Select(ctx context.Context, s processor.Selection) ([]string, error) {
	return c.tape.Select(ctx, s)
}

func (c *capable) Execute(ctx context.Context, items []string) error {
	return c.tape.Execute(ctx, items)
}
func (c *capable) Capabilities() processor.Capabilities       { return c.offers }
func (*capable) Key(item string) string                       { return item }
func (*capable) Position(item string) string                  { return item }
func (*capable) OrderKey(item string) string                  { return item }
func (*capable) Discard(context.Context, string, error) error { return nil }

// A capability that a Capable dealer does not offer is not used, whatever methods it has: each offer alone is refused,
// unless it needs no other.
func TestCapable(t *testing.T) {
	for want, offers := range map[string]processor.Capabilities{
		"":                              {},
		"Paged must be Keyed":           {Paged: true},
		"Ordered must be Keyed":         {Ordered: true},
		"Discarder must be Keyed":       {Discarder: true},
		"Paged must be Keyed and not":   {Keyed: true, Cursored: true, Paged: true},
		"Ordered must be Keyed and not": {Keyed: true, Cursored: true, Ordered: true},
	} {
		_, err := engine.New(&capable{offers: offers}, engine.Env{TaskType: "settle"}, settings())
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", offers, err, want)
		}
	}
}

// broken panics when it is asked what it offers.
type broken struct{ *tape }

func (*broken) Capabilities() processor.Capabilities { return (*capable)(nil).offers }

// A panic of a method that says what the dealer offers is an error of New, and not the end of the process.
func TestPanicOfCapabilities(t *testing.T) {
	_, err := engine.New(&broken{}, engine.Env{TaskType: "settle"}, settings())
	if err == nil || !strings.Contains(err.Error(), "panic: ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want one line with the panic", err)
	}
}
