package program

import (
	"crypto/rand"
	"strconv"
	"sync/atomic"
)

// batchNames makes the ids of batches, which no other process uses.
type batchNames struct {
	process string
	last    atomic.Int64
}

func newBatchNames() *batchNames { return &batchNames{process: rand.Text()} }

func (n *batchNames) next() string { return n.process + "-" + strconv.FormatInt(n.last.Add(1), 10) }
