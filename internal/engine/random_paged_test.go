package engine_test

import "math/rand/v2"

// poisons draws whether an item always fails. A Paged dealer has so many of them that selects must go on behind pages.
func (k kind) poisons(rnd *rand.Rand) bool {
	if k.paged {
		return rnd.IntN(3) > 0
	}
	return k.tracks() && rnd.IntN(10) == 0
}

// sweptPaged is a swept source that returns its items in order.
type sweptPaged struct{ sweptKeyed }

func (sweptPaged) Position(item string) string { return item }
