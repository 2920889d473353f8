package program

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dutyrota/rota/processor"
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
	TimeoutMS      int64  `json:"timeout_ms,omitempty"`   // until the program is killed
	Fence          *Fence `json:"fence,omitempty"`
	Items          []Item `json:"items,omitempty"` // of OpExecute and OpDiscard

	*Part           // of OpSelect and OpBacklog
	Limit  int      `json:"limit,omitempty"`  // of OpSelect
	Held   []string `json:"held,omitempty"`   // of OpSelect
	Queues []Idle   `json:"queues,omitempty"` // of OpPeek
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
func (b *Batch) complete(id string, timeout time.Duration) {
	b.Protocol, b.Op, b.ID = Version, cmp.Or(b.Op, OpExecute), id
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

// The results of an item.
const (
	done   = "done"
	failed = "failed"
)

// reply is what a program answers. Either it has items, or one of the other fields says that the batch is not done.
type reply struct {
	ID           string        `json:"batch"`
	Items        []replyItem   `json:"items"`
	Fenced       bool          `json:"fenced"`
	Error        string        `json:"error"`
	RetryAfterMS *milliseconds `json:"retry_after_ms"`
}

type replyItem struct {
	Key          *string       `json:"key"`
	Result       string        `json:"result"`
	Error        string        `json:"error"`
	RetryAfterMS *milliseconds `json:"retry_after_ms"`
	Permanent    bool          `json:"permanent"`
}

// milliseconds is a pause that a program asks for.
type milliseconds int64

// mostRetryAfter bounds the pause that a program asks for.
const mostRetryAfter = milliseconds(30 * 24 * time.Hour / time.Millisecond)

func (m *milliseconds) check() error {
	if m != nil && (*m < 0 || *m > mostRetryAfter) {
		return fmt.Errorf("retry_after_ms (%d) must be from 0 to %d", *m, mostRetryAfter)
	}
	return nil
}

// after adds the pause to an error.
func (m *milliseconds) after(err error) error {
	if m == nil {
		return err
	}
	return processor.RetryAfter(time.Duration(*m)*time.Millisecond, err)
}

// ErrFenced means that a program has run the fencing statement of its batch, and no row has changed.
var ErrFenced = errors.New("the program says that the batch is fenced")

// Outcome has the errors of the items that failed, by key. The other items are done.
type Outcome map[string]error

// replyLimit is the longest reply, in bytes: a long error text for each item, or 8 KiB for each item of a select.
func (b *Batch) replyLimit() int { return 64<<10 + (len(b.Items)+b.Limit+len(b.Queues))*8<<10 }

// excerpt returns the start of what a program wrote, for an error.
func excerpt(text []byte) string {
	const most = 200
	if len(text) > most {
		return fmt.Sprintf("%q...", text[:most])
	}
	return fmt.Sprintf("%q", text)
}

// parse reads the reply to a batch. An error says what is wrong with the reply, or is that of the whole batch.
func (b *Batch) parse(text []byte) (Outcome, error) {
	var r reply
	if err := decode(text, &r); err != nil {
		return nil, err
	}
	if err := r.check(b.ID); err != nil {
		return nil, badReply{err}
	}
	switch {
	case r.Fenced:
		return nil, ErrFenced
	case r.Error != "":
		return nil, r.RetryAfterMS.after(errors.New(r.Error))
	}
	outcome, err := r.outcome(b.Items)
	if err != nil {
		return nil, badReply{err}
	}
	return outcome, nil
}

// decode decodes a reply, which has all that the protocol says and nothing else.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return badReply{fmt.Errorf("the reply %s is not as the protocol says: %w", excerpt(text), err)}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return badReply{fmt.Errorf("the reply %s has more than one value", excerpt(text))}
	}
	if err := checkNames(json.NewDecoder(bytes.NewReader(text))); err != nil {
		return badReply{fmt.Errorf("the reply %s is not as the protocol says: %w", excerpt(text), err)}
	}
	return nil
}

// checkNames returns an error if an object of a value has a name twice, or one with capitals: encoding/json takes the
// last of two values, and any case. What is in a row is for the program alone.
func checkNames(d *json.Decoder) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('['):
		for d.More() {
			if err := checkNames(d); err != nil {
				return err
			}
		}
	case json.Delim('{'):
		seen := map[string]bool{}
		for d.More() {
			token, err := d.Token()
			if err != nil {
				return err
			}
			name, _ := token.(string) // as all names are
			if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
				return fmt.Errorf("unknown field %q", name)
			}
			if seen[name] {
				return fmt.Errorf("the field %q is there twice", name)
			}
			seen[name] = true
			check := checkNames
			if name == "row" {
				check = skip
			}
			if err := check(d); err != nil {
				return err
			}
		}
	default:
		return nil
	}
	_, err = d.Token() // the end of the array or object
	return err
}

func skip(d *json.Decoder) error { return d.Decode(new(json.RawMessage)) }

// badReply is the error of a reply that is not as the protocol says.
type badReply struct{ error }

func (e badReply) Unwrap() error { return e.error }

func (r *reply) check(id string) error {
	says := 0
	for _, said := range []bool{r.Items != nil, r.Fenced, r.Error != ""} {
		if said {
			says++
		}
	}
	switch {
	case r.ID != id:
		return fmt.Errorf("the reply is for batch %.80q, not for %s", r.ID, id)
	case says != 1:
		return errors.New("the reply must have either items, or error, or fenced")
	case r.RetryAfterMS != nil && r.Error == "":
		return errors.New("retry_after_ms of the reply needs error")
	}
	return r.RetryAfterMS.check()
}

// outcome returns what became of each item.
func (r *reply) outcome(items []Item) (Outcome, error) {
	open := make(map[string]bool, len(items))
	for _, item := range items {
		open[item.Key] = true
	}
	outcome := Outcome{}
	for _, item := range r.Items {
		if item.Key == nil {
			return nil, errors.New("an item of the reply has no key")
		}
		wanted, known := open[*item.Key]
		switch {
		case !known:
			return nil, fmt.Errorf("the reply has the item %.80q, which is not in the batch", *item.Key)
		case !wanted:
			return nil, fmt.Errorf("the reply has the item %.80q twice", *item.Key)
		}
		open[*item.Key] = false
		err, problem := item.judge()
		if problem != nil {
			return nil, fmt.Errorf("item %.80q: %w", *item.Key, problem)
		}
		if err != nil {
			outcome[*item.Key] = err
		}
	}
	for _, item := range items {
		if open[item.Key] {
			return nil, fmt.Errorf("the reply lacks the item %.80q", item.Key)
		}
	}
	return outcome, nil
}

// judge returns the error of an item, and what is wrong with the reply about it.
func (i *replyItem) judge() (err, problem error) {
	switch {
	case i.Result != done && i.Result != failed:
		return nil, fmt.Errorf("result (%.80q) must be %s or %s", i.Result, done, failed)
	case i.Result == done && (i.Error != "" || i.Permanent || i.RetryAfterMS != nil):
		return nil, errors.New("error, permanent and retry_after_ms are for items that have failed")
	case i.Result == done:
		return nil, nil
	case i.Error == "":
		return nil, errors.New("error is missing: it says why the item has failed")
	case i.Permanent && i.RetryAfterMS != nil:
		return nil, errors.New("permanent and retry_after_ms exclude each other")
	}
	err = errors.New(i.Error)
	if i.Permanent {
		return processor.Permanent(err), nil
	}
	return i.RetryAfterMS.after(err), i.RetryAfterMS.check()
}
