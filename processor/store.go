package processor

import (
	"context"
	"time"
)

// FailedItem is the record of an item that failed and has not succeeded since.
type FailedItem struct {
	Key       string        // Keyed.Key, or Cursored.Cursor if the dealer is not Keyed
	Queue     string        // ID of the queue that had the item when it was saved; the store sets it
	Attempts  int           // number of failures, alone or by name in Failures
	Dead      bool          // given up: not executed again while the record exists
	LastError string        // of the last attempt
	Started   bool          // its execution alone has begun, and its end is not recorded (S14)
	RetryIn   time.Duration // from now until the next attempt; 0 or less is at once
}

// ItemStore keeps failed items. Executors call its methods: concurrently for different queues, for one queue never Load
// beside another method, and never two methods for one key at once. The methods should bound their time. An error for
// which Env.Lost is true means that the queue is lost. The processor calls nothing for items that succeed at once. A
// queue with a Run keeps no failures here: Load and Find tell which items are dead, and Save gets items that have Started,
// and those of them that have ended their process.
//
// A record belongs to the key of its item, not to a queue (X6). Memory holds a bounded number of records,
// and of dead items only the keys, as digests of 16 bytes: at most a million.
type ItemStore interface {
	// Load returns failed items of q: about most that are not dead, among them all that are Started, and the keys of at
	// most mostDead that are dead. It is called before the first select under a grant, and before the first select after
	// Reload. An error fails the select.
	Load(ctx context.Context, q Queue, most, mostDead int) (LoadedItems, error)

	// Find returns the failed items with these keys, whatever their queue is. It is called for the items of a page before
	// they are executed, and for an item whose record changes. An error fails the select; after a failed batch it is
	// logged, and no item of the batch counts as failed.
	Find(ctx context.Context, q Queue, keys []string) ([]FailedItem, error)

	// Save inserts or replaces items. It is called before their batch counts as finished, in the context of the
	// batch. An error is logged, and the items are kept in memory. No cursor passes a dead item that was not saved.
	Save(ctx context.Context, q Queue, items []FailedItem) error

	// Delete removes items that have succeeded. An error is logged.
	Delete(ctx context.Context, q Queue, keys []string) error
}

// LoadedItems are the failed items that ItemStore.Load returns.
type LoadedItems struct {
	Items []FailedItem // that are not dead
	Dead  []KeyDigest  // of the dead items, in any order

	// More reports whether an item of the queue may have a record that is in neither: the store has more records of the
	// queue, or records from before items last changed queues. The processor then asks Find for the items that it selects.
	More bool
}

// CursorStore keeps cursors. Executors call its methods: concurrently for different queues, never for one queue. The
// methods should bound their time. An error for which Env.Lost is true means that the queue is lost. The cursor of a
// queue with a Run belongs to the queue in that run.
type CursorStore interface {
	// Load returns the cursor of q. It is called before the next select after a batch that did not succeed, because
	// the batch may have committed all the same. An error fails the select. In a sweep it is also called directly
	// after a failed batch. An error then fails the sweep.
	Load(ctx context.Context, q Queue) (string, error)

	// Save moves the cursor of q. It is called after Execute has returned nil, in the context that Bind made with
	// this cursor. If the fence has saved the cursor, Save has nothing to do. It is also called when the cursor passes
	// a dead item, in a context of its own that Bind made. After an error the batch has failed, but none of its
	// items, and the queue pauses.
	Save(ctx context.Context, q Queue, cursor string) error
}
