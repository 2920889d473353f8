package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// randomMaxAttempts is the number of attempts after which an item of a randomSource is dead.
const randomMaxAttempts = 3

// names says for each item of a batch whether it fails.
type names []bool

// err returns the error of an Execute that ends like this. spend has returned the other errors.
func (n names) err(how ending) error {
	switch how {
	case byName:
		var f processor.Failures
		for i, bad := range n {
			if bad {
				f.Add(i, errBroken)
			}
		}
		return fmt.Errorf("wrapped: %w", f.Err())
	case commits:
		return errBroken
	}
	return nil
}

// drawFailures makes batches with poison items fail, and draws how.
func (f *randomSource) drawFailures(items []string, how *ending) names {
	named := make(names, len(items))
	poisoned := false
	for i, item := range items {
		named[i] = f.poison[item]
		poisoned = poisoned || f.poison[item]
	}
	switch {
	case !f.kind.tracks():
		return named
	case poisoned && (f.kind.cursored || f.kind.atomic):
		*how = []ending{fails, panics}[f.rnd.IntN(2)]
	case poisoned:
		*how = []ending{fails, panics, byName}[f.rnd.IntN(3)]
	case *how == fails && (f.kind.cursored || f.kind.atomic) && f.rnd.IntN(2) == 0:
		*how = commits
	case *how == fails && f.kind.keyed && !f.kind.cursored && !f.kind.atomic && f.rnd.IntN(2) == 0:
		*how = byName
		named[f.rnd.IntN(len(named))] = true
	}
	return named
}

// checkOrder expects that a batch of a cursored source begins with the first item that is neither done nor dead, and
// that no other call of its queue runs (X3).
func (f *randomSource) checkOrder(items []string) {
	if !f.kind.cursored {
		return
	}
	q := items[0][:1]
	if f.running[q] > 0 {
		f.fault("a batch of queue %s is executed while %d calls run", q, f.running[q])
	}
	for i, item := range items {
		if i > 0 && item <= items[i-1] {
			f.fault("batch out of order: %v", items)
		}
	}
	f.checkPassed(q, items[0], items)
}

// checkKeys returns why a batch breaks the order of its keys; empty if it does not.
func (f *randomSource) checkKeys(items []string) string {
	if !f.kind.ordered {
		return ""
	}
	return f.kind.checkKeys(items, f.open[items[0][:1]], f.busy, func(item string) bool {
		return f.kind.passes && f.store.items[item].Dead
	})
}

// checkPassed expects that all items of a queue ahead of the given one are done or dead (X3).
func (f *randomSource) checkPassed(q, before string, batch []string) {
	for _, item := range f.open[q] {
		if item < before && !f.isGivenUp(item) && !slices.Contains(batch, item) {
			f.fault("item %s is neither done nor dead, and passed by %s", item, before)
		}
	}
}

// isGivenUp reports whether an item of the source is dead and stays in the source: a Discarder takes it out.
func (f *randomSource) isGivenUp(item string) bool {
	return f.store.items[item].Dead && !f.kind.discards
}

// commit saves the cursor of the batch, as the fence does.
func (f *randomSource) commit(ctx context.Context) {
	both := ctx.Value(bothKey{}).(boundBoth)
	q := both.queue.ID
	f.checkPassed(q, *both.cursor+"~", nil)
	f.store.cursors[q] = *both.cursor
}

type bothKey struct{}

type boundBoth struct {
	queue  processor.Queue
	cursor *string
}

// bindBoth puts queue and cursor into a context.
func bindBoth(ctx context.Context, q processor.Queue, cursor *string) context.Context {
	return bind(context.WithValue(ctx, bothKey{}, boundBoth{q, cursor}), q, nil)
}

// randomItems and randomCursors are the stores of a randomSource. They fail at random.
type (
	randomItems   struct{ *randomSource }
	randomCursors struct{ *randomSource }
)

// delay takes a random time, and reports whether the store fails.
func (f *randomSource) delay() bool {
	f.mu.Lock()
	d, bad := time.Duration(f.rnd.IntN(500))*time.Millisecond, f.rnd.Float64() < f.failureRate/2
	f.storing++
	f.mu.Unlock()
	time.Sleep(d)
	f.mu.Lock()
	f.storing--
	f.mu.Unlock()
	return bad
}

// Any is true at random for a queue without items: then other queues have records of its items.
func (s randomItems) Any(_ context.Context, q processor.Queue) (bool, error) {
	s.mu.Lock()
	s.admitted[q.ID] = true
	has := s.store.any(q.ID) || s.moved && s.rnd.IntN(2) == 0
	s.mu.Unlock()
	if s.delay() {
		return false, errBroken
	}
	return has, nil
}

func (s randomItems) Started(_ context.Context, q processor.Queue) ([]engine.FailedItem, error) {
	s.mu.Lock()
	s.admitted[q.ID] = true
	list := s.store.started(q.ID)
	s.mu.Unlock()
	if s.delay() {
		return nil, errBroken
	}
	return list, nil
}

func (s randomItems) Find(_ context.Context, q processor.Queue, keys []string) ([]engine.FailedItem, error) {
	s.mu.Lock()
	s.admitted[q.ID] = true
	s.mu.Unlock()
	if s.delay() {
		return nil, errBroken
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.find(keys), nil
}

// Save fails only for a source with cursors, where a dead item must not be passed before it is recorded. For the other
// sources the source would not know which items are dead.
func (s randomItems) Save(_ context.Context, q processor.Queue, items []engine.FailedItem) error {
	if s.delay() && s.kind.cursored {
		return errBroken
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, item := range items {
		if item.Key[:1] != q.ID {
			s.fault("item %s is saved for queue %s", item.Key, q.ID)
		}
		if item.Attempts > s.alone[item.Key] && item.Attempts > randomMaxAttempts {
			s.fault("%+v, but it was blamed %d times", item, s.alone[item.Key])
		}
		if item.Dead && item.Attempts < randomMaxAttempts && !s.kind.crashed { // else an earlier grant may have ended in it
			s.fault("%+v is dead too early", item)
		}
		if before := s.store.items[item.Key]; item.Attempts < before.Attempts {
			s.fault("%d attempts of %s are forgotten: %+v", before.Attempts, item.Key, item)
		}
		s.store.save(item)
	}
	return nil
}

func (s randomItems) Delete(_ context.Context, _ processor.Queue, keys []string) error {
	if s.delay() {
		return errBroken
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		if !s.done[key] && !s.store.items[key].Started {
			s.fault("the record of %s is deleted before the item is done", key)
		}
		delete(s.store.items, key)
	}
	return nil
}

func (s randomCursors) Load(_ context.Context, q processor.Queue) (string, error) {
	s.mu.Lock()
	s.admitted[q.ID] = true
	s.mu.Unlock()
	if s.delay() {
		return "", errBroken
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.cursors[q.ID], nil
}

func (s randomCursors) Save(ctx context.Context, q processor.Queue, cursor string) error {
	if s.delay() {
		return errBroken
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if both := ctx.Value(bothKey{}).(boundBoth); *both.cursor != cursor {
		s.fault("cursor %s is saved in the context of %s", cursor, *both.cursor)
	}
	s.checkPassed(q.ID, cursor+"~", nil)
	s.store.cursors[q.ID] = cursor
	return nil
}

// A randomSource with capabilities.
type (
	randomKeyed      struct{ *randomSource }
	randomBin        struct{ randomKeyed }
	randomTape       struct{ *randomSource }
	randomTapeAndBin struct {
		randomBin
		tape randomTape
	}
)

func (f *randomSource) dealer() processor.TaskDealer[string] {
	switch k := f.kind; {
	case k.cursored && k.keyed:
		return randomTapeAndBin{randomBin{randomKeyed{f}}, randomTape{f}}
	case k.cursored:
		return randomTape{f}
	case k.keyed:
		return randomOptions{randomBin{randomKeyed{f}}}
	}
	return f
}

func (randomKeyed) Key(item string) string { return item }

func (b randomBin) Discard(_ context.Context, item string, cause error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy[item] || !b.store.items[item].Dead || b.done[item] || cause == nil {
		b.fault("item %s is discarded: busy %t, done %t, %+v", item, b.busy[item], b.done[item], b.store.items[item])
	}
	fails := b.rnd.IntN(3) == 0 // also after the test has ended all other failures: few items die before
	if !fails || b.rnd.IntN(2) == 0 {
		b.open[item[:1]] = slices.DeleteFunc(b.open[item[:1]], func(open string) bool { return open == item })
	}
	if fails {
		return errors.New("no room") // or the commit succeeded, and its reply was lost
	}
	return nil
}

func (t randomTape) Cursor(item string) string { return item }

// Select returns the items after the cursor, done or not.
func (t randomTape) Select(ctx context.Context, s processor.Selection) ([]string, error) {
	q := s.Queue.ID
	t.mu.Lock()
	all := t.open[q]
	var behind []string
	for _, item := range all {
		if item > s.Queue.Cursor {
			behind = append(behind, item)
		}
	}
	slices.Sort(behind)
	behind = behind[:min(len(behind), s.Limit)]
	t.mu.Unlock()
	if _, err := t.fetch(ctx, s.Limit, q); err != nil {
		return nil, err
	}
	return behind, nil
}

func (t randomTapeAndBin) Cursor(item string) string { return item }

func (t randomTapeAndBin) Select(ctx context.Context, s processor.Selection) ([]string, error) {
	return t.tape.Select(ctx, s)
}
