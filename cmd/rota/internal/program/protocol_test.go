package program

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// replies are what a program says about a batch of the items a and b, and what that means: ! is a wrong reply.
var replies = map[string]string{
	`"items":[{"key":"a","result":"done"},{"key":"b","result":"done"}]`:                                      "",
	`"items":[{"key":"b","result":"done"},{"key":"a","result":"failed","error":"no"}]`:                       "a: no",
	`"items":[{"key":"a","result":"failed","error":"no","retry_after_ms":1500},{"key":"b","result":"done"}]`: "a: no (retry after 1.5s)",
	`"items":[{"key":"a","result":"failed","error":"no","permanent":true},{"key":"b","result":"done"}]`:      "a: no",
	`"items":[{"key":"a","result":"done"}]`:                                                                  `! the reply lacks the item "b"`,
	`"items":[]`:                                                                                             `! the reply lacks the item "a"`,
	`"items":[{"key":"a","result":"done"},{"key":"b","result":"done"},{"key":"a","result":"done"}]`:          `! the reply has the item "a" twice`,
	`"items":[{"key":"a","result":"done"},{"key":"c","result":"done"}]`:                                      `! the reply has the item "c", which is not in the batch`,
	`"items":[{"result":"done"}]`:                                                                            `! an item of the reply has no key`,
	`"items":[{"key":"a","result":"ok"}]`:                                                                    `! item "a": result ("ok") must be done or failed`,
	`"items":[{"key":"a"}]`:                                                                                  `! item "a": result ("") must be done or failed`,
	`"items":[{"key":"a","result":"failed"}]`:                                                                `! item "a": error is missing: it says why the item has failed`,
	`"items":[{"key":"a","result":"done","error":"x"}]`:                                                      `! item "a": error, permanent and retry_after_ms are for items that have failed`,
	`"items":[{"key":"a","result":"failed","error":"x","permanent":true,"retry_after_ms":1}]`:                `! item "a": permanent and retry_after_ms exclude each other`,
	`"items":[{"key":"a","result":"failed","error":"x","retry_after_ms":-1}]`:                                `! item "a": retry_after_ms (-1) must be from 0 to 2592000000`,
	`"items":[{"key":"a","result":"failed","error":"x","final":true}]`:                                       `! the reply "{\"batch\":\"1\",\"items\":[{\"key\":\"a\",\"result\":\"failed\",\"error\":\"x\",\"final\":true}]}\n" is not as the protocol says: json: unknown field "final"`,
	`"error":"the database is away"`:                                                                         `the database is away`,
	`"error":"the database is away","retry_after_ms":2000`:                                                   `the database is away (retry after 2s)`,
	`"error":"x","items":[]`:                                                                                 `! the reply to execute must have either items or error or fenced`,
	`"retry_after_ms":1,"items":[]`:                                                                          `! retry_after_ms of the reply needs error`,
	`"fenced":true`:                                                                                          `the program says that the batch is fenced`,
	`"fenced":false`:                                                                                         `! the reply to execute must have either items or error or fenced`,
	`"fenced":true,"error":"x"`:                                                                              `! the reply to execute must have either items or error or fenced`,
}

// A reply says what became of each item once, or it fails the batch with the reason.
func TestReply(t *testing.T) {
	t.Parallel()
	for reply, want := range replies {
		b := batch("a", "b")
		b.complete(0)
		b.ID = "1"
		got := describe(b.parse([]byte(`{"batch":"1",` + reply + `}` + "\n")))
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", reply, got, want)
		}
	}
	for text, want := range map[string]string{
		`{"batch":"2","fenced":true}`:           `! the reply is for batch "2", not for 1`,
		`hello`:                                 `! the reply "hello" is not as the protocol says: invalid character 'h' looking for beginning of value`,
		`{"batch":"1","fenced":true} {}`:        `! the reply "{\"batch\":\"1\",\"fenced\":true} {}" has more than one value`,
		``:                                      `! the reply "" is not as the protocol says: EOF`,
		`{"batch":"1","error":"x","error":"y"}`: `! the reply "{\"batch\":\"1\",\"error\":\"x\",\"error\":\"y\"}" is not as the protocol says: the field "error" is there twice`,
		`{"batch":"1","Error":"x"}`:             `! the reply "{\"batch\":\"1\",\"Error\":\"x\"}" is not as the protocol says: unknown field "Error"`,
		`{"batch":"1","items":[{"key":"a","key":"b","result":"done"}]}`: `! the reply "{\"batch\":\"1\",\"items\":[{\"key\":\"a\",\"key\":\"b\",\"result\":\"done\"}]}" ` +
			`is not as the protocol says: the field "key" is there twice`,
		`{"batch":"1","items":[{"key":"a","result":"done","error":"","permanent":false,"retry_after_ms":null},{"key":"b","result":"done"}]}`: ``,
		`{"batch":"1"` + strings.Repeat(" ", 300): `! the reply "{\"batch\":\"1\"` + strings.Repeat(" ", 188) + `"... is not as the protocol says: unexpected EOF`,
	} {
		b := batch("a", "b")
		b.complete(0)
		b.ID = "1"
		if got := describe(b.parse([]byte(text))); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}
}

// describe returns the errors of items by key, or that of the batch, with ! if the reply is wrong.
func describe(r *Reply, err error) string {
	if err != nil {
		if errors.As(err, new(badReply)) {
			return "! " + err.Error()
		}
		return err.Error()
	}
	lines := make([]string, 0, len(r.Outcome))
	for _, key := range slices.Sorted(maps.Keys(r.Outcome)) {
		lines = append(lines, fmt.Sprintf("%s: %v", key, r.Outcome[key]))
	}
	return strings.Join(lines, "; ")
}

// The idempotency key is that of the rows, whichever worker executes them.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	key := func(b *Batch) string {
		b.complete(time.Second)
		return b.IdempotencyKey
	}
	first, again, other := batch("a", "b"), batch("a", "b"), batch("a", "c")
	again.Server, again.Epoch = "web2:2:00000002", 8
	inRun := batch("a", "b")
	inRun.RunKey = "2026-01-01"
	dead := batch("a", "b")
	dead.Op = OpDiscard
	if key(first) != key(again) || key(first) == key(other) || key(first) == key(inRun) || key(first) == key(dead) || len(key(first)) != 32 {
		t.Errorf("%s, again %s, other rows %s, in a run %s", key(first), key(again), key(other), key(inRun))
	}
}

// schemaAccepts returns a function that reports whether a text satisfies a definition of the schema.
func schemaAccepts(t *testing.T) func(definition string, text []byte) bool {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	return func(definition string, text []byte) bool {
		schema, err := c.Compile("schema.json#/$defs/" + definition)
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(value) == nil
	}
}

// The schema accepts the replies that the worker accepts. It differs in two points: it does not know the request, and it
// refuses empty fields, which the worker takes for absent. It accepts each request.
func TestSchema(t *testing.T) {
	t.Parallel()
	accepts := schemaAccepts(t)
	for reply, want := range replies {
		ofRequest := strings.Contains(want, "lacks the item") || strings.Contains(want, "has the item")
		if ok := accepts("reply", []byte(`{"batch":"1",`+reply+`}`)); ok != (ofRequest || !strings.HasPrefix(want, "!")) {
			t.Errorf("the schema accepts %s: %t, and the worker says %q", reply, ok, want)
		}
	}
	full := batch("a")
	full.TraceParent = traceParent
	full.Parameter, full.RunKey, full.Fence = "p", "r", &Fence{"UPDATE x SET y = $1", []any{"a", int64(7)}}
	dead := batch("a")
	dead.Op, dead.Items[0].Error = OpDiscard, "no"
	for _, b := range []*Batch{batch("a", "b"), full, dead} {
		b.complete(time.Second)
		text, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		if !accepts("request", text) {
			t.Errorf("the schema refuses the request %s", text)
		}
		if empty := bytes.Replace(text, []byte(`"queue":"1"`), []byte(`"q":"1"`), 1); accepts("request", empty) {
			t.Errorf("the schema accepts the request %s", empty)
		}
	}
}
