package program

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dutyrota/rota/processor"
)

// EachOptions say how a row becomes a request to an endpoint that knows nothing of this protocol. The URL, the values
// of the headers and the body are templates.
type EachOptions struct {
	Method    string // empty is POST
	Headers   map[string]string
	Body      string // JSON; empty is the row as an object
	Permanent []int  // the statuses by which a row is dead at once
}

// endpoint makes the requests for rows.
type endpoint struct {
	EachOptions
	fields  []field
	columns []string      // that the templates use
	free    chan struct{} // has an entry for each call in progress
}

// field is a part of a request.
type field struct {
	name string // of the options
	in   place
	text string
	*template
}

// secret is what a header has for the secret, if there is one.
const secret = "secret"

var headerName = regexp.MustCompile(`^headers\.[\w-]+$`)

// ofClient are the headers that net/http makes of the request itself, whatever its Header has.
var ofClient = regexp.MustCompile(`(?i)^headers\.(Host|Content-Length|Transfer-Encoding|Trailer)$`)

// newEndpoint returns an endpoint. Its error names the field of the options.
func newEndpoint(o HTTPOptions) (e *endpoint, err error) {
	e = &endpoint{EachOptions: *o.Each, fields: []field{{name: "url", in: inPath, text: o.URL}}}
	if e.Method = cmp.Or(e.Method, http.MethodPost); !slices.Contains([]string{"POST", "PUT", "PATCH"}, e.Method) {
		return nil, fmt.Errorf("method (%s) must be POST, PUT or PATCH", e.Method)
	}
	for _, status := range e.Permanent {
		if status < 300 || status > 599 || mayWait(status) {
			return nil, fmt.Errorf("permanent (%d) must be statuses from 300 to 599, without 429 and 503, after which a row "+
				"waits", status)
		}
	}
	if e.Body != "" {
		e.fields = append(e.fields, field{name: "body", in: inBody, text: e.Body})
	}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		e.fields = append(e.fields, field{name: "headers." + name, in: inHeader, text: e.Headers[name]})
	}
	for i := range e.fields {
		f := &e.fields[i]
		f.template, err = parseTemplate(f.text, f.in)
		if err == nil && f.in == inHeader {
			text := f.text
			if slices.Contains(f.names, secret) { // else each row would be dead at once
				text += string(o.Secret)
			}
			err = checkHeader(text)
		}
		if err != nil {
			return nil, fmt.Errorf("%s %w", f.name, err)
		}
		names := f.names
		if len(o.Secret) > 0 {
			names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == secret })
		}
		switch e.columns = append(e.columns, names...); {
		case f.in == inHeader && !headerName.MatchString(f.name):
			return nil, fmt.Errorf("%s is no name of a header", f.name)
		case slices.ContainsFunc(e.fields[:i], func(other field) bool { return strings.EqualFold(other.name, f.name) }):
			return nil, fmt.Errorf("%s is there twice: the case of a name does not count", f.name)
		case ofClient.MatchString(f.name):
			return nil, fmt.Errorf("%s has no effect: it follows from the url and the body", f.name)
		case f.in != inHeader && len(names) < len(f.names):
			return nil, fmt.Errorf("%s has {{secret}}, which only a header may have", f.name)
		case f.in == inBody && !json.Valid([]byte(strings.Join(f.parts, "0"))):
			return nil, errors.New("body is not JSON: {{column}} is a part of a text between quotes, and a whole value " +
				"elsewhere")
		}
	}
	return e, nil
}

// Columns returns the columns of select that the requests need, in lower case; none for a service that gets batches.
func (h *HTTP) Columns() []string {
	if h.each == nil {
		return nil
	}
	return h.each.columns
}

// askEach sends a request for each row, at most as many at once as there are connections. It ends when a tenth of the
// time of the batch is left, so that what is done is marked even if one call hangs.
func (h *HTTP) askEach(ctx context.Context, b *Batch) (*Reply, error) {
	calls := ctx
	if left := timeLeft(ctx); left > 0 {
		var cancel context.CancelFunc
		calls, cancel = context.WithTimeout(ctx, left*9/10)
		defer cancel()
	}
	errs := make([]error, len(b.Items))
	var all sync.WaitGroup
	for i, item := range b.Items {
		all.Go(func() { errs[i] = h.call(calls, b, item) })
	}
	all.Wait()
	outcome := Outcome{}
	for i, err := range errs {
		outcome[b.Items[i].Key] = err
	}
	return &Reply{Outcome: outcome}, ctx.Err()
}

// call sends the request for a row.
func (h *HTTP) call(ctx context.Context, b *Batch, item Item) error {
	r, err := h.requestOf(ctx, b, item)
	if err != nil {
		return processor.Permanent(err)
	}
	select {
	case h.each.free <- struct{}{}:
		defer func() { <-h.each.free }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil { // perhaps the end of the time has made a place free; the row has not failed
		return processor.Busy(time.Second, errors.New("not called: the time of the batch was over"))
	}
	const limit = 64 << 10 // of a text that is only shown
	began := time.Now()
	status, text, after, err := h.send(r, b.TraceParent, limit)
	switch {
	case status/100 == 2:
		return nil
	case status == 0:
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err // without the URL, which has values of the row
		}
		if end, ok := ctx.Deadline(); ok && errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("no response within %s, which is what batch_timeout leaves: %w",
				end.Sub(began).Round(100*time.Millisecond), err)
		}
		return fmt.Errorf("call the endpoint: %w", err)
	}
	err = b.failure("call the endpoint", status, text, after)
	if slices.Contains(h.each.Permanent, status) {
		return processor.Permanent(err)
	}
	return err
}

// requestOf returns the request for a row. It is signed if there is a secret, unless a header has the secret.
func (h *HTTP) requestOf(ctx context.Context, b *Batch, item Item) (*http.Request, error) {
	var row map[string]json.RawMessage
	body, err := item.Row.MarshalJSON()
	if err = cmp.Or(err, json.Unmarshal(body, &row)); err != nil {
		return nil, err
	}
	for name, value := range row {
		row[strings.ToLower(name)] = value
	}
	signed := len(h.secret) > 0
	if signed {
		row[secret], _ = json.Marshal(string(h.secret)) // a string has no error
	}
	one := Batch{Op: b.Op, TaskType: b.TaskType, OwnSign: b.OwnSign, RunKey: b.RunKey, Items: []Item{item}}
	header := http.Header{"Content-Type": {"application/json"}, idempotencyHeader: {one.idempotencyKey()}}
	var to string
	for _, f := range h.each.fields {
		text, err := f.fill(row)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		switch f.in {
		case inPath:
			to = text
		case inBody:
			body = []byte(text)
		default:
			header.Set(strings.TrimPrefix(f.name, "headers."), text)
			signed = signed && !slices.Contains(f.names, secret)
		}
	}
	if signed {
		h.sign(header, body)
	}
	r, err := http.NewRequestWithContext(ctx, h.each.Method, to, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("url is malformed") // the error would print it
	}
	r.Header = header
	return r, nil
}
