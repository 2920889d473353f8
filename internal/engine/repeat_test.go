package engine_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// alertBook collects alerts.
type alertBook struct {
	mu  sync.Mutex
	all []engine.Alert
}

func (a *alertBook) add(alert engine.Alert) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, alert)
}

// kinds returns the kinds of the alerts and forgets them.
func (a *alertBook) kinds() (kinds []string) {
	for _, alert := range a.take() {
		kinds = append(kinds, alert.Kind)
	}
	return kinds
}

// text returns the kinds and queues of the alerts, as "STALLED of a; PARKED of b; ", and forgets them.
func (a *alertBook) text() (text string) {
	for _, alert := range a.take() {
		text += alert.Kind + " of " + alert.Queue
		if alert.Subject != "" {
			text += " about " + alert.Subject
		}
		text += "; "
	}
	return text
}

// take returns the alerts and forgets them.
func (a *alertBook) take() []engine.Alert {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.all
	a.all = nil
	return all
}

// idleDealer executes its items without effect, except new ones.
type idleDealer struct {
	*rows
	calls int
}

func (d *idleDealer) Execute(ctx context.Context, items []string) error {
	d.mu.Lock()
	d.calls++
	d.mu.Unlock()
	if err := nap(ctx, d.takes); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = slices.DeleteFunc(d.open, func(item string) bool { return item == "anew" && slices.Contains(items, item) })
	return nil
}

// An Execute that succeeds without effect causes an alert and no busy loop. The processor still executes other items.
func TestExecuteWithoutEffectPauses(t *testing.T) {
	for _, notSleep := range []bool{false, true} {
		bubble(t, func(t *testing.T, w *world) {
			d, told := &idleDealer{rows: newRows(w, numbered("a", 25)...)}, &alertBook{}
			s := usual()
			s.NotSleep, s.FetchNumber, s.ExecuteNumber = notSleep, 10, 3
			w.start(t, d, engine.Env{Alert: told.add}, s, "a")
			time.Sleep(time.Hour)
			synctest.Wait()
			d.mu.Lock()
			if d.calls > 1200 { // 100 pages, and one a minute
				t.Errorf("NOTSLEEP %t: %d calls of Execute in an hour, want at most 1200", notSleep, d.calls)
			}
			d.mu.Unlock()
			if kinds := told.kinds(); !slices.Equal(kinds, []string{engine.AlertNoEffect}) {
				t.Errorf("NOTSLEEP %t: alerts %v, want one NO_EFFECT", notSleep, kinds)
			}
			if err := w.Stats().LastError; err == nil ||
				!strings.Contains(err.Error(), "selects returned the same first items as before") {
				t.Errorf("NOTSLEEP %t: last error %v, want the repeated item", notSleep, err)
			}
			d.mu.Lock()
			d.open = append([]string{"anew"}, d.open...)
			d.mu.Unlock()
			time.Sleep(2 * time.Minute)
			d.mu.Lock()
			defer d.mu.Unlock()
			if slices.Contains(d.open, "anew") {
				t.Errorf("NOTSLEEP %t: a new item was not executed within two minutes", notSleep)
			}
		})
	}
}

// stepping executes each item in steps: it is selected under its key until the last.
type stepping struct {
	*rows
	left map[string]int
}

func (d *stepping) Execute(_ context.Context, items []string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, item := range items {
		d.left[item]--
	}
	d.open = slices.DeleteFunc(d.open, func(item string) bool { return d.left[item] <= 0 })
	return nil
}

func TestItemsMayTakeSteps(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &stepping{newRows(w, "a1", "a2"), map[string]int{"a1": 90, "a2": 90}}
		w.start(t, d, engine.Env{}, usual(), "a")
		synctest.Wait() // at once
		if len(d.open) > 0 {
			t.Errorf("%v are not done after %v steps were left", d.open, d.left)
		}
	})
}

// A dealer whose page takes long, or whose queue rests, polls on purpose.
func TestSlowRepetitionsAreNoBusyLoop(t *testing.T) {
	for name, change := range map[string]func(*idleDealer, *engine.Settings){
		"interval": func(_ *idleDealer, s *engine.Settings) { s.SleepTimeInterval = time.Second },
		"pages":    func(d *idleDealer, _ *engine.Settings) { d.takes = time.Second },
	} {
		bubble(t, func(t *testing.T, w *world) {
			d, told, s := &idleDealer{rows: newRows(w, "a1")}, &alertBook{}, usual()
			change(d, &s)
			w.start(t, d, engine.Env{Alert: told.add}, s, "a")
			time.Sleep(999*time.Second + time.Second/2)
			synctest.Wait()
			if kinds := told.kinds(); d.calls != 1000 || kinds != nil {
				t.Errorf("%s: %d calls, alerts %v, want 1000 and none", name, d.calls, kinds)
			}
		})
	}
}

// greedy ignores the limit of its selects.
type greedy struct {
	*rows
	most int
}

func (d *greedy) Select(ctx context.Context, s processor.Selection) ([]string, error) {
	s.Limit = d.most
	return d.rows.Select(ctx, s)
}

func TestIgnoredLimitRaisesAnAlert(t *testing.T) {
	for name, test := range map[string]struct {
		most, bad int
		want      []string
	}{
		"all rows":                {most: 1000, want: []string{engine.AlertLimit}},
		"behind the failed items": {most: 10, bad: 12, want: []string{engine.AlertLimit}},
		"few failed items":        {most: 10, bad: 5},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d, told := &greedy{newRows(w, numbered("a", 30)...), test.most}, &alertBook{}
				for _, item := range d.open[:test.bad] {
					d.bad[item] = processor.Permanent(errBroken)
				}
				w.start(t, d, engine.Env{Alert: told.add}, settings(), "a")
				time.Sleep(time.Minute)
				synctest.Wait()
				if kinds := told.kinds(); !slices.Equal(kinds, test.want) {
					t.Errorf("alerts %v, want %v", kinds, test.want)
				}
			})
		})
	}
}

// joined returns each row twice, as a join with two lines per order does.
type joined struct{ *rows }

func (d joined) Select(ctx context.Context, s processor.Selection) ([]string, error) {
	list, err := d.rows.Select(ctx, s)
	return slices.Concat(list, list), err
}

// A select that returns an item twice is told at once, and seldom again while that lasts, also when the queue comes
// back.
func TestAnItemTwiceInAPageIsToldSeldom(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d, told := joined{newRows(w, numbered("a", 3)...)}, &alertBook{}
		for _, item := range d.open {
			d.bad[item] = errBroken // they are selected for days
		}
		w.start(t, d, engine.Env{Alert: told.add}, settings(), "a")
		time.Sleep(time.Hour)
		w.Drain("a")
		synctest.Wait()
		w.Forget("a")
		w.grant(t, "a")
		time.Sleep(time.Hour)
		synctest.Wait()
		var pages []engine.Alert
		for _, a := range told.take() {
			if a.Kind == engine.AlertPage {
				pages = append(pages, a)
			}
		}
		if len(pages) != 4 || pages[3].Queue != "a" ||
			!strings.HasPrefix(pages[0].Text, "a select of queue a returned item a0 twice") {
			t.Errorf("alerts %+v, want four in two hours, with queue a and item a0", pages)
		}
	})
}
