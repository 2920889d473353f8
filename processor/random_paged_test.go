package processor_test

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/dutyrota/rota/processor"
)

// poisons draws whether an item always fails. A Paged dealer has so many of them that selects must go on behind pages.
func (k kind) poisons(rnd *rand.Rand) bool {
	if k.paged {
		return rnd.IntN(3) > 0
	}
	return k.tracks() && rnd.IntN(10) == 0
}

// randomPaged and sweptPaged are random sources that return their items in order.
type (
	randomPaged struct{ randomKeyed }
	sweptPaged  struct{ sweptKeyed }
)

func (randomPaged) Position(item string) string { return item }
func (sweptPaged) Position(item string) string  { return item }

func (f randomPaged) Select(ctx context.Context, s processor.Selection) ([]string, error) {
	q := s.Queue.ID
	f.mu.Lock()
	var behind []string
	for _, item := range f.open[q] {
		if item > s.After {
			behind = append(behind, item)
		}
	}
	slices.Sort(behind)
	f.mu.Unlock()
	if _, err := f.fetch(ctx, s.Limit, q); err != nil {
		return nil, err
	}
	return behind[:min(len(behind), s.Limit)], nil
}
