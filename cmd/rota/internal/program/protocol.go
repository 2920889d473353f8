package program

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"time"
)

// Version is the protocol of a Batch.
const Version = 1

// The operations of a Batch.
const (
	OpExecute = "execute"
	OpDiscard = "discard" // an item that is dead; the reply is that of OpExecute
	OpSelect  = "select"
	OpPeek    = "peek"
	OpBacklog = "backlog"
)

// Schema is the JSON schema of requests and replies.
//
//go:embed schema.json
var Schema string

// Batch is a request of any operation. Its fields are the names of the protocol. One type has those of all operations,
// because most are common to them.
type Batch struct {
	Protocol       int    `json:"protocol"`
	Op             string `json:"op"`    // OpExecute if it is empty
	ID             string `json:"batch"` // the reply repeats it
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	TaskType       string `json:"task_type"`
	OwnSign        string `json:"own_sign"`
	Queue          string `json:"queue,omitempty"`
	Epoch          int64  `json:"epoch,omitempty"`
	Server         string `json:"server"`
	Database       string `json:"database,omitempty"` // the data database of the queue
	Parameter      string `json:"parameter,omitempty"`
	RunKey         string `json:"run_key,omitempty"`
	TraceParent    string `json:"trace_parent,omitempty"` // of the run

	Run map[string]any `json:"run,omitempty"` // processor.RunFields and the params, by name

	TimeoutMS int64  `json:"timeout_ms,omitempty"` // until the program is killed
	Fence     *Fence `json:"fence,omitempty"`
	Items     []Item `json:"items,omitempty"` // of OpExecute and OpDiscard

	*Part           // of OpSelect and OpBacklog
	Limit  int      `json:"limit,omitempty"`  // of OpSelect
	Held   []string `json:"held,omitempty"`   // of OpSelect
	Queues []Idle   `json:"queues,omitempty"` // of OpPeek

	redact func(string) string // takes secrets out of the reply; nil changes nothing
}

// Part says which items of the source a queue has, as processor.Selection does.
type Part struct {
	Index     int    `json:"queue_index"`
	Total     int    `json:"queue_total"`
	Parameter string `json:"queue_parameter,omitempty"`
}

// Idle is a queue of OpPeek.
type Idle struct {
	Queue string `json:"queue"`
	Epoch int64  `json:"epoch"`
	Part
}

// Fence is the statement that a program runs first in its own transaction.
type Fence struct {
	SQL  string `json:"sql"`
	Args []any  `json:"args"`
}

// Item is a row of a batch. A batch has each key once.
type Item struct {
	Key   string         `json:"key"`
	Row   json.Marshaler `json:"row"`
	Error string         `json:"error,omitempty"` // why it is discarded
}

// complete sets what follows from the other fields, and what belongs to one request.
func (b *Batch) complete(timeout time.Duration) {
	b.Protocol, b.Op, b.ID = Version, cmp.Or(b.Op, OpExecute), rand.Text()
	b.TimeoutMS = timeout.Milliseconds()
	if len(b.Items) > 0 {
		b.IdempotencyKey = b.idempotencyKey()
	}
}

// idempotencyKey returns a text that is the same whenever the same rows are executed in one batch again, also by
// another worker.
func (b *Batch) idempotencyKey() string {
	names := []string{b.Op, b.TaskType, b.OwnSign, b.RunKey}
	for _, item := range b.Items {
		names = append(names, item.Key)
	}
	text, _ := json.Marshal(names) // strings have no error
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// replyLimit is the longest reply, in bytes: a long error text for each item, or 8 KiB for each item of a select.
func (b *Batch) replyLimit() int { return 64<<10 + (len(b.Items)+b.Limit+len(b.Queues))*8<<10 }
