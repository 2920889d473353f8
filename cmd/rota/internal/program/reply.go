package program

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/processor"
)

// Reply is the reply to a request of any operation. One type has the fields of all operations, as Batch does.
type Reply struct {
	ID           string        `json:"batch"`
	Items        any           `json:"items"`         // points to Selected or results, by the operation
	Queues       []string      `json:"queues"`        // of OpPeek: the queues that have work
	Count        *int64        `json:"count"`         // of OpBacklog
	OldestAgeMS  *int64        `json:"oldest_age_ms"` // of OpBacklog
	Fenced       bool          `json:"fenced"`
	Error        string        `json:"error"`
	RetryAfterMS *milliseconds `json:"retry_after_ms"`

	Selected []Selected `json:"-"` // of OpSelect
	Outcome  Outcome    `json:"-"` // of OpExecute and OpDiscard
	results  []result   // what Outcome is made of
}

// replyParts are what the reply to an operation may have. It has one of them.
var replyParts = map[string][]string{
	OpExecute: {"items", "error", "fenced"},
	OpDiscard: {"items", "error", "fenced"},
	OpSelect:  {"items", "error"},
	OpPeek:    {"queues", "error"},
	OpBacklog: {"count", "error"},
}

// The results of an item.
const (
	done   = "done"
	failed = "failed"
)

// result is an item of the reply to OpExecute or OpDiscard.
type result struct {
	Key          *string       `json:"key"`
	Result       string        `json:"result"`
	Error        string        `json:"error"`
	RetryAfterMS *milliseconds `json:"retry_after_ms"`
	Permanent    bool          `json:"permanent"`
}

// Selected is an item that a program has selected.
type Selected struct {
	Key      string          `json:"key"`
	Row      json.RawMessage `json:"row"`       // an object; the program gets it again with the item
	OrderKey string          `json:"order_key"` // empty for an item in no order

	of *processor.Selection
}

// noRow is the row of an item that the program has selected without one.
var noRow = json.RawMessage(`{}`)

// check completes an item, and says what is wrong with it.
func (s *Selected) check() error {
	if len(s.Row) == 0 {
		s.Row = noRow
	}
	switch {
	case s.Key == "":
		return errors.New("key is missing or empty")
	case strings.Contains(s.Key, "\x00"):
		return errors.New("key has the character U+0000, which no database can record")
	case s.Row[0] != '{':
		return errors.New("row must be an object")
	}
	return nil
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

// mostAge bounds the age of an item: 30 years.
const mostAge = int64(30 * 365 * 24 * time.Hour / time.Millisecond)

// parse reads the reply to a batch. An error says what is wrong with the reply, or is that of the whole batch.
func (b *Batch) parse(text []byte) (*Reply, error) {
	r := &Reply{}
	if r.Items = &r.results; b.Op == OpSelect {
		r.Items = &r.Selected
	}
	err := b.decode(text, r)
	if err == nil {
		err = r.check(b)
	}
	switch {
	case err != nil:
		return nil, badReply{err}
	case r.Fenced:
		return nil, ErrFenced
	case r.Error != "":
		return nil, r.RetryAfterMS.after(errors.New(r.Error))
	}
	return r, nil
}

// excerpt returns the start of what a program wrote, for an error. Its secrets are taken out before it is cut, because
// no one knows the half of a secret.
func (b *Batch) excerpt(text []byte) string {
	if b.redact != nil {
		text = []byte(b.redact(string(text)))
	}
	return excerpt(text)
}

// excerpt returns the start of what a program wrote, for an error.
func excerpt(text []byte) string {
	const most = 200
	if len(text) > most {
		return fmt.Sprintf("%q...", text[:most])
	}
	return fmt.Sprintf("%q", text)
}

// decode decodes a reply, which has all that the protocol says and nothing else.
func (b *Batch) decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("the reply %s is not as the protocol says: %w", b.excerpt(text), err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("the reply %s has more than one value", b.excerpt(text))
	}
	if err := checkNames(json.NewDecoder(bytes.NewReader(text))); err != nil {
		return fmt.Errorf("the reply %s is not as the protocol says: %w", b.excerpt(text), err)
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

// check completes the reply to a request, and says what is wrong with it.
func (r *Reply) check(b *Batch) error {
	var has []string
	for name, said := range map[string]bool{
		"items": r.results != nil || r.Selected != nil, "queues": r.Queues != nil, "count": r.Count != nil,
		"fenced": r.Fenced, "error": r.Error != "",
	} {
		if said {
			has = append(has, name)
		}
	}
	switch parts := replyParts[b.Op]; {
	case r.ID != b.ID:
		return fmt.Errorf("the reply is for batch %.80q, not for %s", r.ID, b.ID)
	case len(has) != 1 || !slices.Contains(parts, has[0]):
		return fmt.Errorf("the reply to %s must have either %s", b.Op, strings.Join(parts, " or "))
	case r.RetryAfterMS != nil && r.Error == "":
		return errors.New("retry_after_ms of the reply needs error")
	case r.OldestAgeMS != nil && r.Count == nil:
		return errors.New("oldest_age_ms of the reply needs count")
	case r.OldestAgeMS != nil && (*r.OldestAgeMS < 0 || *r.OldestAgeMS > mostAge):
		return fmt.Errorf("oldest_age_ms (%d) must be from 0 to %d", *r.OldestAgeMS, mostAge)
	case r.Count != nil && *r.Count < 0:
		return fmt.Errorf("count (%d) must be at least 0", *r.Count)
	case len(r.Selected) > b.Limit:
		return fmt.Errorf("the reply has %d items, which is more than the limit (%d)", len(r.Selected), b.Limit)
	case r.results != nil:
		var err error
		r.Outcome, err = r.outcome(b.Items)
		return err
	}
	return errors.Join(r.checkSelected(), r.checkQueues(b.Queues), r.RetryAfterMS.check())
}

// checkSelected checks that each key is there once.
func (r *Reply) checkSelected() error {
	seen := make(map[string]bool, len(r.Selected))
	for i := range r.Selected {
		item := &r.Selected[i]
		if err := item.check(); err != nil {
			return fmt.Errorf("item %d of the reply (%.80q): %w", i+1, item.Key, err)
		}
		if seen[item.Key] {
			return fmt.Errorf("the reply has the item %.80q twice", item.Key)
		}
		seen[item.Key] = true
	}
	return nil
}

// checkQueues checks that each queue is one of the request, and there once.
func (r *Reply) checkQueues(of []Idle) error {
	for i, id := range r.Queues {
		switch {
		case !slices.ContainsFunc(of, func(q Idle) bool { return q.Queue == id }):
			return fmt.Errorf("the reply has the queue %.80q, which is not in the request", id)
		case slices.Contains(r.Queues[:i], id):
			return fmt.Errorf("the reply has the queue %.80q twice", id)
		}
	}
	return nil
}

// outcome returns what became of each item.
func (r *Reply) outcome(items []Item) (Outcome, error) {
	open := make(map[string]bool, len(items))
	for _, item := range items {
		open[item.Key] = true
	}
	outcome := Outcome{}
	for _, item := range r.results {
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
func (i *result) judge() (err, problem error) {
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
