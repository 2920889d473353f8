package center_test

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/internal/testdb"
)

func TestMain(m *testing.M) {
	testdb.EveryEngine()
	goleak.VerifyTestMain(m)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	racetest.Defer(t)
	const parts = 3
	for _, kind := range testdb.Kinds(t) {
		for part := range parts {
			name := kind
			if part > 0 {
				name = fmt.Sprint(kind, "-", part+1)
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				centertest.RunPart(t, testdb.URL(t, kind), part, parts)
			})
		}
	}
}

// A sweep that saves its cursor keeps no other sweep from beginning (L5).
func TestLoneSweep(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		centertest.LoneSweep(t, centertest.Open(t, url, center.Options{}))
	})
}

// One bad row stops no server except its own, also where nothing refuses the row (S13).
func TestConformanceWithoutConstraints(t *testing.T) {
	t.Parallel()
	racetest.Defer(t)
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		centertest.RunUnconstrained(t, url)
	})
}

// Workers whose clocks are an hour ahead of the database, or behind it, decide the same: only the database's clock
// counts (L2).
func TestConformanceWithSkewedClocks(t *testing.T) {
	centertest.Variant(t)
	t.Parallel()
	for _, skew := range []string{"1 hour", "-1 hour"} {
		t.Run(skew, func(t *testing.T) {
			t.Parallel()
			centertest.RunAbout(t, centertest.SkewedClock(t, skew), centertest.Clock)
		})
	}
}
