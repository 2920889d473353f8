package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// A select that keeps returning items that are done fails the sweep, if its items can be distinguished (R9).
func TestSweepWithoutProgressFails(t *testing.T) {
	for form, lasts := range map[string]int{"plain": 4, "keyed": 4, "cursored": 4, "keyed, notsleep": 12} {
		t.Run(form, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				n := 0
				page := numbered("a", 15)
				d := &dealer{sel: func(_ context.Context, s processor.Selection) ([]string, error) {
					n++
					at := n * 4 % 15 // in varying order
					return append(slices.Clone(page[at:]), page[:at]...)[:min(15, s.Limit)], nil
				}}
				d.exec = func(ctx context.Context, _ []string) error { return nap(ctx, time.Millisecond) }
				all := map[string]processor.TaskDealer[string]{
					"plain": d, "keyed": &keyed{*d}, "keyed, notsleep": &keyed{*d}, "cursored": &cursored{*d},
				}
				s := settings()
				s.NotSleep = strings.Contains(form, "notsleep")
				if s.FetchNumber = 15; s.NotSleep {
					s.FetchNumber = 10
				}
				w.sweep(t, all[form], engine.Env{}, s, "a")
				time.Sleep(time.Minute)
				w.failedWith(t, "a", "no progress: 3 selects")
				if n < 4 || n > lasts || w.Stats().InFlight != 0 {
					t.Errorf("%d selects, stats %+v, want 4 to %d, InFlight 0", n, w.Stats(), lasts)
				}
			})
		})
	}
}

// Single pages of items that are done do not fail a sweep, nor does a page with a new item.
func TestSweepWithSomeProgressGoesOn(t *testing.T) {
	eachForm(t, 0, func(t *testing.T, w *world, form processor.TaskDealer[string], s engine.Settings) {
		pages := [][]string{
			{"a1", "a2"},
			{"a1", "a2"},
			{"a1", "a2"},
			{"a2", "a3"},
			{"a3"},
			{"a3", "a2"},
			{"a4"},
			{"a4"},
			{"a4"},
			{"a5", "a6"},
			{"a7", "a8"},
			{"a1", "a2"},
			{"a4", "a3"},
			{"a5", "a6"}, // no longer in the trail
		}
		items := int64(24)
		d := dealer{sel: func(context.Context, processor.Selection) (page []string, _ error) {
			if len(pages) > 0 {
				page, pages = pages[0], pages[1:]
			}
			return page, nil
		}, exec: func(context.Context, []string) error { return nil }}
		s.ThreadNumber = 1
		switch form.(type) {
		case plain:
			form = &d
		case *rows:
			form = &keyed{d}
		default: // no item after the cursor was done before
			pages = [][]string{{"a1", "a2"}, {"a1", "a2"}, {"a2", "a3"}, {"a4", "a1"}, {"a4", "a5"}, {"a5"}, {"a6", "a7", "a8"}}
			items = 14
			form = &cursored{d}
		}
		w.sweep(t, form, engine.Env{}, s, "a")
		w.swept(t, "a", items, 0)
	})
}

// A sweep whose cursored select ignores the cursor fails too.
func TestSweepThatIgnoresItsCursorFails(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &cursored{dealer{sel: func(context.Context, processor.Selection) ([]string, error) {
			return numbered("a", 5),
				nil
		}}}
		d.exec = func(context.Context, []string) error { return nil }
		w.sweep(t, d, engine.Env{}, settings(), "a")
		w.failedWith(t, "a", "no progress")
	})
}

// Items that cannot be distinguished are not taken for repetitions.
func TestSweepOfPointersGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &pointers{item: new(int)}
		p, err := engine.New(d, engine.Env{}, settings())
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Grant(processor.Queue{ID: "a", Run: nightly()}, 1); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-p.Emptied(); cancel() }()
		if err := p.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if s := p.Queues()[0].Sweep; !s.Swept || s.ItemsDone != 20 {
			t.Errorf("sweep: %+v, want Swept, ItemsDone 20", s)
		}
	})
}

type pointers struct {
	item *int
	n    int
}

func (p *pointers) Select(context.Context, processor.Selection) ([]*int, error) {
	if p.n++; p.n > 20 {
		return nil, nil
	}
	return []*int{p.item}, nil
}

func (p *pointers) Execute(_ context.Context, items []*int) error { *items[0]++; return nil }
