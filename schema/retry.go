package schema

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// retry repeats op while again reports true for its error, until limit has passed or ctx ends. A limit of 0 is none.
func retry(ctx context.Context, again func(error) bool, limit time.Duration, op func() error) error {
	pauses := &backoff.ExponentialBackOff{
		InitialInterval:     20 * time.Millisecond,
		MaxInterval:         time.Second,
		Multiplier:          1.5,
		RandomizationFactor: 0.5, // so that many processes that wait for the same lease do not ask at the same time
	}
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := op()
		if err != nil && !again(err) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pauses), backoff.WithMaxElapsedTime(limit))
	return causeOr(ctx, err)
}

// causeOr returns err. If ctx has ended, too, it returns the cause of that: err is then a consequence, such as a
// driver's "canceling statement due to user request".
func causeOr(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
