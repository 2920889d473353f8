package center

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"
)

// ErrNoHints says that no hint reaches this process: the program's own connector cannot listen, or a pooler stands
// between.
var ErrNoHints = errors.New("hints do not reach this process")

const (
	// echoTimeout is how long a listener waits for the hint that it sends to itself.
	echoTimeout = 10 * time.Second

	// The pause before a listener that was lost connects again: it doubles up to the second. Behind a pooler nothing is
	// heard, so it is the third.
	listenRetry, listenRetryMax, deafRetry = time.Second, time.Minute, 10 * time.Minute
)

// readPause is the time between two reads of the hints that are left in rows. A process reads for all its task types.
const readPause = 250 * time.Millisecond

// CanListen reports whether Listen can receive hints.
func (c *Center) CanListen() bool { return !c.Notifies() || c.db.Database.Listen != nil }

// Listen receives the hints of all processes for this environment until ctx is done. It calls changed from its
// goroutine with nil when it hears, and with an error when it does not any more. receive is called from that
// goroutine, too, and must return quickly. If no hint can reach this process, Listen returns ErrNoHints at once.
// Package manager calls it.
//
// Notifications come on a connection of its own, which it makes again when that is lost, with growing pauses. While it
// hears them, Tell sends. Where the database sends none, Listen reads four times a second what Wake has left in the
// rows of the task types that hinted returns, and nothing while that is empty.
func (c *Center) Listen(ctx context.Context, hinted func() []string, changed func(error), receive func(Hint)) error {
	switch {
	case !c.CanListen():
		return ErrNoHints
	case !c.Notifies():
		c.readHints(ctx, hinted, changed, receive)
		return nil
	}
	var telling sync.WaitGroup
	telling.Go(func() { c.teller.run(ctx, c) })
	defer telling.Wait()
	var hears int32 // 1 while this listener hears hints, so that the teller can count such listeners
	hear := func(now int32) {
		c.teller.hearing.Add(now - hears)
		hears = now
	}
	defer hear(0)
	noted := func(err error) {
		if err == nil {
			hear(1)
		} else {
			hear(0)
		}
		changed(err)
	}
	pause := listenRetry
	for ctx.Err() == nil {
		heard, err := c.listenOnce(ctx, noted, receive)
		if ctx.Err() != nil {
			break
		}
		noted(err)
		switch pause = min(2*pause, listenRetryMax); {
		case errors.Is(err, ErrNoHints):
			pause = deafRetry
		case heard:
			pause = listenRetry
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

// readHints is Listen without notifications.
func (c *Center) readHints(ctx context.Context, hinted func() []string, changed func(error), receive func(Hint)) {
	var seen map[string]int64 // nil while nothing is heard
	pause := readPause
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		names := hinted()
		if len(names) == 0 {
			continue
		}
		versions, err := c.readHintsOnce(ctx, names)
		if pause = readPause; err != nil {
			pause, seen = listenRetry, nil
			changed(err)
			continue
		}
		if seen == nil {
			changed(nil)
		}
		for name, version := range versions {
			if before, known := seen[name]; seen != nil && (!known || before != version) {
				receive(Hint{OwnSign: c.ownSign, TaskType: name})
			}
		}
		seen = versions
	}
}

func (c *Center) readHintsOnce(ctx context.Context, taskTypes []string) (map[string]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	return c.roster.HintVersions(ctx, taskTypes)
}

// listenOnce receives hints until the connection is lost, and reports whether it has heard itself.
func (c *Center) listenOnce(ctx context.Context, changed func(error), receive func(Hint)) (heard bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	echo := uuid.NewString()
	deaf := time.AfterFunc(echoTimeout, func() { cancel(ErrNoHints) })
	defer deaf.Stop()
	sent := make(chan struct{})
	ready := func() {
		go func() { // beside the connection that listens
			defer close(sent)
			if err := c.send(ctx, Hint{OwnSign: c.ownSign, Echo: echo}); err != nil {
				cancel(err)
			}
		}()
	}
	began := false
	err = c.db.Database.Listen(ctx, hintChannel, func() { began = true; ready() }, func(payload string) {
		var list []Hint
		if json.Unmarshal([]byte(payload), &list) != nil {
			return // of another version
		}
		for _, h := range list {
			switch {
			case h.OwnSign != c.ownSign:
			case h.Echo == echo && deaf.Stop():
				heard = true
				changed(nil)
			case h.Echo == "":
				receive(h)
			}
		}
	})
	cancel(nil)
	if began {
		<-sent
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return heard, err
}
