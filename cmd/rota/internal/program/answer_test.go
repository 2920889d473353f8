package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/processor"
)

// answerCases are what a program says to each operation, and what that means: ! is a wrong reply.
var answerCases = map[string]map[string]string{
	OpSelect: {
		`"items":[]`:            "0 items",
		`"items":[{"key":"a"}]`: `1 items a{}`,
		`"items":[{"key":"a","row":{"Id":1,"id":[1.50]}}]`:   `1 items a{"Id":1,"id":[1.50]}`,
		`"items":[{"key":"b","order_key":"c1"},{"key":"a"}]`: `2 items b{}c1 a{}`,
		`"items":[{"key":"b","order_key":null}]`:             `1 items b{}`,
		`"items":[{"key":"a"},{"key":"a"}]`:                  `! the reply has the item "a" twice`,
		`"items":[{"key":"a"},{"key":"b"},{"key":"c"}]`:      `! the reply has 3 items, which is more than the limit (2)`,
		`"items":[{"key":""}]`:                               `! item 1 of the reply (""): key is missing or empty`,
		`"items":[{"key":"a"},{"row":{}}]`:                   `! item 2 of the reply (""): key is missing or empty`,
		`"items":[{"key":"a\u0000"}]`:                        `! item 1 of the reply ("a\x00"): key has the character U+0000, which no database can record`,
		`"items":[{"key":"a","row":[1]}]`:                    `! item 1 of the reply ("a"): row must be an object`,
		`"items":[{"key":"a","row":null}]`:                   `! item 1 of the reply ("a"): row must be an object`,
		`"items":[{"key":7}]`:                                `! json: cannot unmarshal number into Go struct field`,
		`"items":[{"key":"a","order":"c1"}]`:                 `! json: unknown field "order"`,
		`"items":[{"key":"a","Order_Key":"c1"}]`:             `! unknown field "Order_Key"`,
		`"items":[{"key":"a","key":"b"}]`:                    `! the field "key" is there twice`,
		`"items":null`:                                       `! the reply to select must have either items or error`,
		`"items":[],"error":"x"`:                             `! the reply to select must have either items or error`,
		`"queues":[]`:                                        `! the reply to select must have either items or error`,
		`"items":[],"retry_after_ms":1`:                      `! retry_after_ms of the reply needs error`,
		`"items":[],"oldest_age_ms":1`:                       `! oldest_age_ms of the reply needs count`,
		`"error":"the folder is away"`:                       `the folder is away`,
		`"error":"away","retry_after_ms":1500`:               `away (retry after 1.5s)`,
		`"error":"away","retry_after_ms":-1`:                 `! retry_after_ms (-1) must be from 0 to 2592000000`,
		`"fenced":true`:                                      `! the reply to select must have either items or error`,
	},
	OpBacklog: {
		`"count":0`:                                  "count 0",
		`"count":7,"oldest_age_ms":1500`:             "count 7 since 1500",
		`"count":7,"oldest_age_ms":null`:             "count 7",
		`"count":-1`:                                 `! count (-1) must be at least 0`,
		`"count":1.5`:                                `! json: cannot unmarshal number 1.5`,
		`"count":1,"oldest_age_ms":-1`:               `! oldest_age_ms (-1) must be from 0 to 946080000000`,
		`"count":1,"oldest_age_ms":9000000000000000`: `! oldest_age_ms (9000000000000000) must be from 0 to 946080000000`,
		`"items":[]`:                                 `! the reply to backlog must have either count or error`,
	},
	OpPeek: {
		`"queues":[]`:        "queues ",
		`"queues":["3"]`:     "queues 3",
		`"queues":["3","3"]`: `! the reply has the queue "3" twice`,
		`"queues":["4"]`:     `! the reply has the queue "4", which is not in the request`,
		`"queues":[3]`:       `! json: cannot unmarshal number`,
		`"count":1`:          `! the reply to peek must have either queues or error`,
	},
}

// question returns a request of an operation.
func question(op string) *Batch {
	b := newQuestion(op, &processor.Selection{
		TaskType: "settle", OwnSign: "TEST", Server: owner, Total: 4, Queue: processor.Queue{ID: "3", Index: 3, Epoch: 7, Parameter: "north"},
	})
	switch op {
	case OpSelect:
		b.Limit, b.Held = 2, []string{"c9"}
	case OpPeek:
		b = &Batch{Op: op, TaskType: "settle", OwnSign: "TEST", Server: owner, Queues: []Idle{{"3", 7, *b.Part}}}
	}
	b.complete(time.Second)
	b.ID = "1"
	return b
}

// A reply to an operation has what that needs, and nothing else.
func TestAnswer(t *testing.T) {
	t.Parallel()
	for op, cases := range answerCases {
		for reply, want := range cases {
			got := describeAnswer(question(op).parse([]byte(`{"batch":"1",` + reply + `}` + "\n")))
			if strings.HasPrefix(want, "!") { // the error has the reply before the reason
				if !strings.HasPrefix(got, "!") || !strings.Contains(got, strings.TrimPrefix(want, "! ")) {
					t.Errorf("%s %s:\ngot  %s\nwant %s", op, reply, got, want)
				}
			} else if got != want {
				t.Errorf("%s %s:\ngot  %s\nwant %s", op, reply, got, want)
			}
		}
	}
	_, err := question(OpSelect).parse([]byte(`{"batch":"2","items":[]}`))
	if want := `the reply is for batch "2", not for 1`; errorText(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// describeAnswer returns what an answer has, or its error, with ! if the reply is wrong.
func describeAnswer(r *Reply, err error) string {
	switch {
	case errors.As(err, new(badReply)):
		return "! " + err.Error()
	case err != nil:
		return err.Error()
	case r.Selected != nil:
		text := fmt.Sprintf("%d items", len(r.Selected))
		for _, s := range r.Selected {
			text += fmt.Sprintf(" %s%s%s", s.Key, s.Row, s.OrderKey)
		}
		return text
	case r.Queues != nil:
		return "queues " + strings.Join(r.Queues, " ")
	case r.OldestAgeMS != nil:
		return fmt.Sprintf("count %d since %d", *r.Count, *r.OldestAgeMS)
	}
	return fmt.Sprintf("count %d", *r.Count)
}

// The schema and the worker accept the same replies. The worker alone knows the request, and sees a name that stands
// twice. The schema accepts each request, and none without its queue.
func TestSchemaOfAnswers(t *testing.T) {
	t.Parallel()
	accepts := schemaAccepts(t)
	for op, cases := range answerCases {
		for reply, want := range cases {
			text := `{"batch":"1",` + reply + `}`
			unknowable := strings.Contains(want, "more than the limit") || strings.Contains(want, "not in the request") ||
				strings.Contains(want, `the item "a" twice`) || strings.Contains(want, "is there twice") || strings.Contains(want, "U+0000")
			if unknowable {
				continue
			}
			if ok := accepts(op+"_reply", []byte(text)); ok == strings.HasPrefix(want, "!") {
				t.Errorf("the schema accepts %s %s: %t, and the worker says %q", op, reply, ok, want)
			}
		}
		text, err := json.Marshal(question(op))
		if err != nil {
			t.Fatal(err)
		}
		if !accepts("request", text) {
			t.Errorf("the schema refuses the request %s", text)
		}
		for _, name := range []string{`"queue":`, `"queue_total":`, `"epoch":`} {
			if without := strings.Replace(string(text), name, `"x":`, 1); accepts("request", []byte(without)) {
				t.Errorf("the schema accepts the request %s", without)
			}
		}
	}
}

// A request about one queue says which items that has. The idempotency key belongs to items.
func TestQuestion(t *testing.T) {
	t.Parallel()
	for op, want := range map[string]string{
		OpSelect:  `{"protocol":1,"op":"select","batch":"1","task_type":"settle","own_sign":"TEST","queue":"3","epoch":7,"server":"web1:1:00000001","timeout_ms":1000,"queue_index":3,"queue_total":4,"queue_parameter":"north","limit":2,"held":["c9"]}`,
		OpBacklog: `{"protocol":1,"op":"backlog","batch":"1","task_type":"settle","own_sign":"TEST","queue":"3","epoch":7,"server":"web1:1:00000001","timeout_ms":1000,"queue_index":3,"queue_total":4,"queue_parameter":"north"}`,
		OpPeek:    `{"protocol":1,"op":"peek","batch":"1","task_type":"settle","own_sign":"TEST","server":"web1:1:00000001","timeout_ms":1000,"queues":[{"queue":"3","epoch":7,"queue_index":3,"queue_total":4,"queue_parameter":"north"}]}`,
	} {
		if text, err := json.Marshal(question(op)); err != nil || string(text) != want {
			t.Errorf("%s, %v\nwant %s", text, err, want)
		}
	}
	if n := question(OpSelect).replyLimit(); n != 64<<10+2*8<<10 {
		t.Errorf("a reply may have %d bytes", n)
	}
}
