package schema

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// retry repeats op while again says so of its error, until limit (0: for ever) has passed or ctx ends.
func retry(ctx context.Context, again func(error) bool, limit time.Duration, op func() error) error {
	pauses := &backoff.ExponentialBackOff{
		InitialInterval:     20 * time.Millisecond,
		MaxInterval:         time.Second,
		Multiplier:          1.5,
		RandomizationFactor: 0.5, // so that many that wait for one thing do not ask in step
	}
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := op()
		if err != nil && !again(err) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pauses), backoff.WithMaxElapsedTime(limit))
	return because(ctx, err)
}

// because puts the reason why ctx ended in the place of an error that only came of it, such as a driver's
// "canceling statement due to user request".
func because(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
