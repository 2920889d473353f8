package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/processor"
)

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

// Answer is the reply to OpSelect, OpPeek or OpBacklog. One of Items, Queues and Count is there.
type Answer struct {
	ID           string        `json:"batch"`
	Items        []Selected    `json:"items"`         // of OpSelect
	Queues       []string      `json:"queues"`        // of OpPeek: those that have work
	Count        *int64        `json:"count"`         // of OpBacklog
	OldestAgeMS  *int64        `json:"oldest_age_ms"` // of OpBacklog
	Error        string        `json:"error"`
	RetryAfterMS *milliseconds `json:"retry_after_ms"`
}

// answers are the operations with an Answer, and the name of what it must have.
var answers = map[string]string{OpSelect: "items", OpPeek: "queues", OpBacklog: "count"}

// mostAge bounds the age of an item: 30 years.
const mostAge = int64(30 * 365 * 24 * time.Hour / time.Millisecond)

// parseAnswer is parse for the operations with an Answer.
func (b *Batch) parseAnswer(text []byte) (*Answer, error) {
	a := &Answer{}
	if err := decode(text, a); err != nil {
		return nil, err
	}
	if err := a.check(b); err != nil {
		return nil, badReply{err}
	}
	if a.Error != "" {
		return nil, a.RetryAfterMS.after(errors.New(a.Error))
	}
	return a, nil
}

// check says what is wrong with the answer to a request.
func (a *Answer) check(b *Batch) error {
	var has []string
	for name, said := range map[string]bool{
		"items": a.Items != nil, "queues": a.Queues != nil, "count": a.Count != nil, "error": a.Error != "",
	} {
		if said {
			has = append(has, name)
		}
	}
	switch {
	case a.ID != b.ID:
		return fmt.Errorf("the reply is for batch %.80q, not for %s", a.ID, b.ID)
	case len(has) != 1 || has[0] != answers[b.Op] && has[0] != "error":
		return fmt.Errorf("the reply to %s must have either %s or error", b.Op, answers[b.Op])
	case a.RetryAfterMS != nil && a.Error == "":
		return errors.New("retry_after_ms of the reply needs error")
	case a.OldestAgeMS != nil && a.Count == nil:
		return errors.New("oldest_age_ms of the reply needs count")
	case a.OldestAgeMS != nil && (*a.OldestAgeMS < 0 || *a.OldestAgeMS > mostAge):
		return fmt.Errorf("oldest_age_ms (%d) must be from 0 to %d", *a.OldestAgeMS, mostAge)
	case a.Count != nil && *a.Count < 0:
		return fmt.Errorf("count (%d) must be at least 0", *a.Count)
	case len(a.Items) > b.Limit:
		return fmt.Errorf("the reply has %d items, which is more than the limit (%d)", len(a.Items), b.Limit)
	}
	if err := errors.Join(a.checkItems(), a.checkQueues(b.Queues)); err != nil {
		return err
	}
	return a.RetryAfterMS.check()
}

// checkItems checks that each key is there once.
func (a *Answer) checkItems() error {
	seen := make(map[string]bool, len(a.Items))
	for i := range a.Items {
		item := &a.Items[i]
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
func (a *Answer) checkQueues(of []Idle) error {
	for i, id := range a.Queues {
		switch {
		case !slices.ContainsFunc(of, func(q Idle) bool { return q.Queue == id }):
			return fmt.Errorf("the reply has the queue %.80q, which is not in the request", id)
		case slices.Contains(a.Queues[:i], id):
			return fmt.Errorf("the reply has the queue %.80q twice", id)
		}
	}
	return nil
}
