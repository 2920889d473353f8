package processor

import "sync/atomic"

// memory bounds what the queues of a processor hold together about failed items.
type memory struct {
	records budget // besides suspects and records that could not be saved, which may exceed it
	dead    budget // keys of dead items
}

func newMemory() memory {
	return memory{records: budget{most: maxRecords}, dead: budget{most: maxDeadKeys}}
}

// maxRecords is how many records of failed items a processor holds at most, besides suspects and records that it could
// not save: some megabytes. While the store has more, each page costs a statement that finds them by their keys.
const maxRecords = 10_000

// budget is a bound that queues share.
type budget struct {
	held atomic.Int64
	most int64
}

// room returns how many more memory may hold. Executors that ask at the same time may exceed the bound by one each.
func (b *budget) room() int64 { return b.most - b.held.Load() }
