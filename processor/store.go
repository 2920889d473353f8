package processor

import (
	"context"
	"time"
)

// FailedItem is what is kept of an item that has failed and not succeeded since.
type FailedItem struct {
	Key       string        // Keyed.Key, or Cursored.Cursor if the dealer is not Keyed
	Attempts  int           // how often it has failed alone or by name
	Dead      bool          // given up: not executed again before its record is gone
	LastError string        // of the last attempt
	RetryIn   time.Duration // from now until the next attempt; 0 or less is at once
}

// ItemStore keeps failed items. Its methods are called by executors: for different queues at once, for one queue
// never Load beside any other, and never for one key twice at once. They should bound their time. An error for which
// Env.Lost is true means that the queue is lost. Nothing is called for items that succeed at once, nor for queues with a
// Run.
type ItemStore interface {
	// Load returns the failed items of q. It is called before the first select under a grant, and before the next
	// one after Reload. An error counts as that of the select.
	Load(ctx context.Context, q Queue) ([]FailedItem, error)

	// Save inserts or replaces items, before their batch counts as finished, in the context of the batch. An error
	// is logged, and the items are kept in memory; but no cursor passes a dead item that was not saved.
	Save(ctx context.Context, q Queue, items []FailedItem) error

	// Delete removes items that have succeeded. An error is logged.
	Delete(ctx context.Context, q Queue, keys []string) error
}

// CursorStore keeps cursors. Its methods are called by executors: for different queues at once, never for one. They
// should bound their time. An error for which Env.Lost is true means that the queue is lost. The cursor of a queue with a
// Run is that of the queue in the run.
type CursorStore interface {
	// Load returns the cursor of q. It is called before the next select after anything but a success of a batch,
	// because what the batch did may have been committed all the same. An error counts as that of the select. In a
	// sweep it is also called at once when a batch has failed, and after an error the sweep has failed.
	Load(ctx context.Context, q Queue) (string, error)

	// Save moves the cursor of q. It is called after Execute has returned nil, in the context that Bind made with
	// this very cursor, so that nothing needs to be done if the fence has saved it; and in such a context of its own
	// when a dead item is passed. After an error the batch has failed, but none of its items, and the queue pauses.
	Save(ctx context.Context, q Queue, cursor string) error
}
