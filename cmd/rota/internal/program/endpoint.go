package program

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	method    string
	url, body *template // without a body, it is the row
	headers   map[string]*template
	permanent []int
	columns   []string      // that the templates use
	free      chan struct{} // has an entry for each call in progress
}

// secretColumn is what a header has for the secret.
const secretColumn = "secret"

var headerName = regexp.MustCompile(`^[\w-]+$`)

// newEndpoint returns an endpoint. Its error names the field of the options.
func newEndpoint(o HTTPOptions) (*endpoint, error) {
	e := &endpoint{
		method: cmp.Or(o.Each.Method, http.MethodPost), permanent: o.Each.Permanent, headers: map[string]*template{},
	}
	if !slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch}, e.method) {
		return nil, fmt.Errorf("method (%s) must be POST, PUT or PATCH", e.method)
	}
	for _, status := range e.permanent {
		if status < 300 || status > 599 || mayWait(status) {
			return nil, fmt.Errorf("permanent (%d) must be statuses from 300 to 599, without 429 and 503, after which a row "+
				"waits", status)
		}
	}
	add := func(field, text string, in place) (t *template, err error) {
		if t, err = parseTemplate(text, in); err != nil {
			return nil, fmt.Errorf("%s %w", field, err)
		}
		for _, name := range t.names {
			if in != inHeader || name != secretColumn || len(o.Secret) == 0 {
				e.columns = append(e.columns, name)
			}
		}
		return t, nil
	}
	var err error
	if e.url, err = add("url", o.URL, inPath); err != nil {
		return nil, err
	}
	if o.Each.Body != "" {
		if e.body, err = add("body", o.Each.Body, inBody); err != nil {
			return nil, err
		}
		if !json.Valid([]byte(strings.Join(e.body.parts, "0"))) {
			return nil, errors.New("body is not JSON: {{column}} is a part of a text between quotes, and a whole value " +
				"elsewhere")
		}
	}
	for name, value := range o.Each.Headers {
		if e.headers[name], err = add("headers."+name, value, inHeader); err == nil && !headerName.MatchString(name) {
			err = fmt.Errorf("headers.%s is no name of a header", name)
		}
		if err != nil {
			return nil, err
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
	case <-ctx.Done(): // the row has not failed
		return processor.Busy(time.Second, errors.New("not called: the time of the batch was over"))
	}
	const limit = 64 << 10 // of a text that is only shown
	status, text, after, err := h.send(r, b.TraceParent, limit)
	switch {
	case status/100 == 2:
		return nil
	case status == 0:
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err // without the URL, which has values of the row
		}
		return fmt.Errorf("call the endpoint: %w", err)
	}
	err = failure("call the endpoint", status, text, after)
	if slices.Contains(h.each.permanent, status) {
		return processor.Permanent(err)
	}
	return err
}

// requestOf returns the request for a row. It is signed if there is a secret, unless a header has the secret.
func (h *HTTP) requestOf(ctx context.Context, b *Batch, item Item) (*http.Request, error) {
	body, err := item.Row.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var columns map[string]json.RawMessage
	if err := json.Unmarshal(body, &columns); err != nil {
		return nil, err
	}
	row := make(map[string]json.RawMessage, len(columns)+1)
	for name, value := range columns {
		row[strings.ToLower(name)] = value
	}
	to, err := h.each.url.text(row)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	if h.each.body != nil {
		text, err := h.each.body.text(row)
		if err != nil {
			return nil, fmt.Errorf("body: %w", err)
		}
		body = []byte(text)
	}
	r, err := http.NewRequestWithContext(ctx, h.each.method, to, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("url is malformed") // the error would print it
	}
	one := Batch{Op: b.Op, TaskType: b.TaskType, OwnSign: b.OwnSign, RunKey: b.RunKey, Items: []Item{item}}
	r.Header = http.Header{"Content-Type": {"application/json"}, idempotencyHeader: {one.idempotencyKey()}}
	if len(h.secret) > 0 {
		row[secretColumn], _ = json.Marshal(string(h.secret)) // a string has no error
	}
	signed := true
	for name, t := range h.each.headers {
		text, err := t.text(row)
		if err != nil {
			return nil, fmt.Errorf("headers.%s: %w", name, err)
		}
		r.Header.Set(name, text)
		signed = signed && !slices.Contains(t.names, secretColumn)
	}
	if signed {
		h.sign(r.Header, body)
	}
	return r, nil
}
