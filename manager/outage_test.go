package manager_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

// downstream is a dealer that fails until the service that it calls is up.
type downstream struct {
	keyed
	up atomic.Bool
}

// Execute implements processor.TaskDealer.
func (d *downstream) Execute(ctx context.Context, items []int) error {
	if !d.up.Load() {
		return errors.New("the service is down")
	}
	return d.store.Execute(ctx, items)
}

// During an outage of 90 minutes the server raises one alert, and its status shows the outage, also where FAILING is off.
// With the default policy of retries the outage kills no item.
func TestOutageRaisesOneAlert(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		d, alerts := &downstream{keyed: keyed{store{items: map[int]bool{}}}}, new(alertLog)
		d.put(100)
		w := cl.serveAlerted(alerts, d, manager.Settings{Queues: 2, FailingAfter: 1_000_000})
		time.Sleep(time.Minute)
		if kinds := alerts.kinds(); !slices.Equal(kinds, []string{condition.Outage.Name}) {
			cl.Fatalf("alerts %v within a minute, want one %s", kinds, condition.Outage.Name)
		}
		time.Sleep(89 * time.Minute)
		if kinds := alerts.kinds(); len(kinds) != 1 {
			cl.Fatalf("alerts %v in 90 minutes, want one", kinds)
		}
		if w.Status()[0].Work.OutageSince.IsZero() {
			cl.Fatal("the status shows no outage")
		}
		d.up.Store(true)
		time.Sleep(time.Minute)
		if s := w.Status()[0].Work; d.left() > 0 || s.DeadCount > 0 || !s.OutageSince.IsZero() {
			cl.Fatalf("%d items are left a minute after the outage: %+v", d.left(), s)
		}
	})
}

// flaky is a dealer without items, whose selects fail while its database is away.
type flaky struct {
	keyed
	away atomic.Bool
}

// Select implements processor.TaskDealer.
func (d *flaky) Select(context.Context, processor.Selection) ([]int, error) {
	if d.away.Load() {
		return nil, errors.New("connection refused")
	}
	return nil, nil
}

// A database that was away for 10 s is no outage afterwards, although no item comes that could succeed.
func TestOutageOfSelectsEndsWithThem(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		d, alerts := new(flaky), new(alertLog)
		w := cl.serveAlerted(alerts, d, manager.Settings{Queues: 2})
		time.Sleep(time.Minute)
		d.away.Store(true)
		time.Sleep(10 * time.Second)
		if w.Status()[0].Work.OutageSince.IsZero() {
			cl.Error("the breaker is closed while selects fail")
		}
		d.away.Store(false)
		time.Sleep(5 * time.Minute)
		if kinds := alerts.kinds(); len(kinds) > 0 {
			cl.Errorf("alerts %v, want none", kinds)
		}
	})
}
