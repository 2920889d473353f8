package program

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// serveEach starts an endpoint and returns its client. path is behind the address of the endpoint.
func serveEach(t *testing.T, o HTTPOptions, path string, handle http.HandlerFunc) *HTTP {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	o.URL = server.URL + path
	if o.Each == nil {
		o.Each = &EachOptions{}
	}
	h, err := NewHTTP(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// rowsOf returns a batch of rows whose keys are their positions.
func rowsOf(rows ...string) *Batch {
	b := batch()
	for i, row := range rows {
		b.Items = append(b.Items, Item{Key: fmt.Sprint(i), Row: json.RawMessage(row)})
	}
	return b
}

// outcomes returns what became of each row, as text.
func outcomes(ctx context.Context, t *testing.T, h *HTTP, b *Batch) (list []string) {
	t.Helper()
	r, err := h.Ask(ctx, b)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range b.Items {
		list = append(list, errorText(r.Outcome[item.Key]))
	}
	return list
}

// A row becomes a request whose URL, headers and body have its columns. No value leaves its place, and a value that
// has no place there is an error of its row alone.
func TestEachRowIsARequest(t *testing.T) {
	t.Parallel()
	type seen struct{ Method, URI, Kind, Body string }
	const full = `{"ID": 7, "name": "a\"b/c?d&e\n\\{{id}}", "none": null, "json": "{\"x\": [1]}", "amount": 12.50, "yes": true}`
	for name, c := range map[string]struct {
		path string
		EachOptions
		row    string
		want   seen
		failed string
	}{
		"the row is the body":            {path: "/hook", row: `{"id": 7, "t": "x"}`, want: seen{"POST", "/hook", "", `{"id": 7, "t": "x"}`}},
		"path and query":                 {path: "/o/{{ id }}/{{name}}?n={{name}}&x={{none}}#{{id}}", row: full, want: seen{"POST", "/o/7/a%22b%2Fc%3Fd&e%0A%5C%7B%7Bid%7D%7D?n=a%22b%2Fc%3Fd%26e%0A%5C%7B%7Bid%7D%7D&x=", "", full}},
		"method and header":              {path: "/", EachOptions: EachOptions{Method: "PUT", Headers: map[string]string{"kind": "k {{id}}, {{none}}{{yes}}"}, Body: `{}`}, row: full, want: seen{"PUT", "/", "k 7, true", "{}"}},
		"values and texts":               {path: "/", EachOptions: EachOptions{Body: `{"a\"": {{name}}, "b": "<{{name}}>", "c": [{{id}}, {{none}}, {{amount}}, "{{none}}"], "d": {{json json}}, "e": {{json none}}}`}, row: full, want: seen{"POST", "/", "", `{"a\"": "a\"b/c?d&e\n\\{{id}}", "b": "<a\"b/c?d\u0026e\n\\{{id}}>", "c": [7, null, 12.50, ""], "d": {"x": [1]}, "e": null}`}},
		"user agent":                     {path: "/", EachOptions: EachOptions{Headers: map[string]string{"user-agent": "shop/2", "kind": "k"}, Body: `{}`}, row: full, want: seen{"POST", "/", "k, for shop/2", "{}"}},
		"another path, by dots":          {path: "/o/{{name}}/x", row: `{"name": ".."}`, failed: `url: column "name" ("..") would lead to another path`},
		"another path, by nothing":       {path: "/o/{{name}}", row: `{"name": null}`, failed: `url: column "name" ("") would lead to another path`},
		"the end of a header":            {path: "/", EachOptions: EachOptions{Headers: map[string]string{"kind": "{{name}}"}}, row: `{"name": "a\r\nX: y"}`, failed: `headers.kind: column "name" has a control character, such as the end of a line, which no header may have`},
		"a text that is said to be JSON": {path: "/", EachOptions: EachOptions{Body: `{"a": {{json name}}}`}, row: `{"name": "1, \"b\": 2"}`, failed: `body: column "name" is not JSON`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got seen
			h := serveEach(t, HTTPOptions{Each: &c.EachOptions}, c.path, func(_ http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if got.Method != "" {
					t.Error("a second request")
				}
				got = seen{r.Method, r.RequestURI, r.Header.Get("Kind"), string(body)}
				if agent := r.UserAgent(); agent != "rota/1" {
					got.Kind += ", for " + agent
				}
				if r.Header.Get("Content-Type") != "application/json" || len(r.Header.Get(idempotencyHeader)) != 32 || r.Header.Get(signatureHeader) != "" {
					t.Errorf("headers %v", r.Header)
				}
			})
			if errs := outcomes(t.Context(), t, h, rowsOf(c.row)); errs[0] != c.failed {
				t.Errorf("error %q, want %q", errs[0], c.failed)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if got.Body != "" && !json.Valid([]byte(got.Body)) {
				t.Errorf("the body is not JSON: %s", got.Body)
			}
		})
	}
}

// What a row is, the status says. The service that is busy says when to come again, and that is no attempt.
func TestStatusOfARow(t *testing.T) {
	t.Parallel()
	h := serveEach(t, HTTPOptions{Each: &EachOptions{Permanent: []int{404, 410}}}, "/{{status}}", func(w http.ResponseWriter, r *http.Request) {
		var status int
		_, _ = fmt.Sscan(r.URL.Path[1:], &status)
		if status == 0 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Retry-After", r.URL.Query().Get("after"))
		if status == 429 {
			w.Header().Set("Retry-After", "Thu, 01 Jan 2026 00:01:00 GMT")
		}
		if status == 503 {
			w.Header().Set("Retry-After", "7")
		}
		w.WriteHeader(status)
		if status == 202 {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler) // the response breaks off
		}
		_, _ = io.WriteString(w, strings.Repeat("x", 300))
	})
	h.now = func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
	text := `"` + strings.Repeat("x", 200) + `"...`
	want := map[int]string{
		200: "", 202: "", 204: "",
		302: "call the endpoint: status 302 Found: " + text,
		404: "call the endpoint: status 404 Not Found: " + text,
		429: "call the endpoint: status 429 Too Many Requests: " + text + " (retry after 1m0s)",
		500: "call the endpoint: status 500 Internal Server Error: " + text,
		503: "call the endpoint: status 503 Service Unavailable: " + text + " (retry after 7s)",
		0:   "call the endpoint: EOF",
	}
	var rows, texts []string
	for status, text := range want {
		rows, texts = append(rows, fmt.Sprintf(`{"status": "%03d"}`, status)), append(texts, text)
	}
	if diff := cmp.Diff(texts, outcomes(t.Context(), t, h, rowsOf(rows...))); diff != "" {
		t.Error(diff)
	}
}

// The key of a row is the same whenever it is sent, alone or in any batch, and another one in another run.
func TestIdempotencyKeyOfARow(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	keys := map[string][]string{}
	h := serveEach(t, HTTPOptions{Connections: 1}, "/{{n}}", func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		keys[r.URL.Path] = append(keys[r.URL.Path], r.Header.Get(idempotencyHeader))
	})
	run := rowsOf(`{"n": 1}`)
	run.RunKey = "2026-11-20"
	for _, b := range []*Batch{rowsOf(`{"n": 1}`, `{"n": 2}`), rowsOf(`{"n": 1}`), run} {
		outcomes(t.Context(), t, h, b)
	}
	if k := keys["/1"]; len(k) != 3 || k[0] != k[1] || k[0] == k[2] || k[0] == keys["/2"][0] {
		t.Errorf("the keys are %v: want the first two alike, and the others not", keys)
	}
}

// A secret signs the requests, or is a part of a header and then signs none.
func TestSecretOfAnEndpoint(t *testing.T) {
	t.Parallel()
	var got http.Header
	handle := func(_ http.ResponseWriter, r *http.Request) { got = r.Header }
	o := HTTPOptions{Secret: []byte("to\"ken"), Each: &EachOptions{Body: "{}"}}
	h := serveEach(t, o, "/", handle)
	h.now = func() time.Time { return time.Unix(1767225600, 0) }
	outcomes(t.Context(), t, h, rowsOf(`{}`))
	if want := "v1=" + Signature(o.Secret, "1767225600", []byte("{}")); got.Get(signatureHeader) != want {
		t.Errorf("the signature is %q, want %q", got.Get(signatureHeader), want)
	}
	o.Each.Headers = map[string]string{"authorization": "Bearer {{secret}}", "Idempotency-Key": "order {{id}}"}
	outcomes(t.Context(), t, serveEach(t, o, "/", handle), rowsOf(`{"id": 7}`))
	if got.Get("Authorization") != `Bearer to"ken` || got.Get(signatureHeader) != "" || got.Get(idempotencyHeader) != "order 7" {
		t.Errorf("the headers are %v", got)
	}
}

// memory is a Listener whose connections are in memory, so that a synctest bubble can wait for them.
type memory struct {
	accept chan net.Conn
	closed chan struct{}
	close  func()
}

func newMemory() *memory {
	m := &memory{accept: make(chan net.Conn), closed: make(chan struct{})}
	m.close = sync.OnceFunc(func() { close(m.closed) })
	return m
}

func (m *memory) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case m.accept <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.accept:
		return c, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error { m.close(); return nil }

func (m *memory) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

// As many rows of a batch are called at once as there are connections. One that hangs fails alone before the time of the
// batch is over, and so do no rows that had no turn.
func TestRowThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testRowThatHangs)
}

func testRowThatHangs(t *testing.T) {
	const most = 2
	var now, tooMany atomic.Int32
	network := newMemory()
	server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if now.Add(1) > most {
			tooMany.Add(1)
		}
		defer now.Add(-1)
		time.Sleep(time.Millisecond) // so that calls overlap
		if r.URL.Path == "/hang" {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}
	})}
	go func() { _ = server.Serve(network) }()
	defer func() { _ = server.Close() }()
	h, err := NewHTTP(HTTPOptions{URL: "http://127.0.0.1/{{n}}", Connections: most, Each: &EachOptions{}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	h.client.Transport.(*http.Transport).DialContext = network.dial
	rows := []string{`{"n": "hang"}`}
	for i := range 20 {
		rows = append(rows, fmt.Sprintf(`{"n": %d}`, i))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	errs := outcomes(ctx, t, h, rowsOf(rows...))
	if errs[0] != "call the endpoint: no response within 1.8s, which is what batch_timeout leaves: context deadline exceeded" {
		t.Errorf("the row that hangs: %s", errs[0])
	}
	if failed := slices.DeleteFunc(errs[1:], func(text string) bool { return text == "" }); len(failed) > 0 {
		t.Errorf("rows that do not hang: %q", failed)
	}
	if tooMany.Load() > 0 {
		t.Errorf("%d calls came while %d others were in the endpoint", tooMany.Load(), most)
	}
	over, end := context.WithDeadline(t.Context(), time.Now())
	defer end()
	batch := rowsOf(rows...)
	for i, item := range batch.Items { // the end of the time has made places free
		if got := errorText(h.call(over, batch, item)); got != "not called: the time of the batch was over (retry after 1s)" {
			t.Errorf("row %d after the time of the batch: %s", i, got)
		}
	}
	h.each.free = make(chan struct{}) // no row has its turn
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	r, _ := h.Ask(ctx, rowsOf(`{"n": 1}`))
	if got := errorText(r.Outcome["0"]); got != "not called: the time of the batch was over (retry after 1s)" {
		t.Errorf("a row without a turn: %s", got)
	}
}

// An error of the options names the field.
func TestEachOptions(t *testing.T) {
	t.Parallel()
	const notJSON = "body is not JSON: {{column}} is a part of a text between quotes, and a whole value elsewhere"
	for want, o := range map[string]HTTPOptions{
		"url has {{secret}}, which only a header may have":                                               {URL: "https://h/{{secret}}", Secret: []byte("x"), Each: &EachOptions{}},
		"method (GET) must be POST, PUT or PATCH":                                                        {URL: "https://h/", Each: &EachOptions{Method: "GET"}},
		"permanent (200) must be statuses from 300 to 599, without 429 and 503, after which a row waits": {URL: "https://h/", Each: &EachOptions{Permanent: []int{404, 200}}},
		"permanent (429) must be statuses from 300 to 599, without 429 and 503, after which a row waits": {URL: "https://h/", Each: &EachOptions{Permanent: []int{429}}},
		"url is malformed: {{column}} may stand in its path and in its query":                            {URL: "https://{{host}}/", Each: &EachOptions{}},
		`url has a placeholder that is no {{column}}: "{{a b}}"`:                                         {URL: "https://h/{{a b}}", Each: &EachOptions{}},
		"url has {{json a}}, which must be a whole value of the body":                                    {URL: "https://h/{{json a}}", Each: &EachOptions{}},
		"body has {{json a}}, which must be a whole value of the body":                                   {URL: "https://h/", Each: &EachOptions{Body: `{"a": "{{json a}}"}`}},
		notJSON:                              {URL: "https://h/", Each: &EachOptions{Body: `{"a": x{{a}}}`}},
		"headers.a b is no name of a header": {URL: "https://h/", Each: &EachOptions{Headers: map[string]string{"a b": "x"}}},
		"headers.a has a control character, such as the end of a line, which no header may have": {URL: "https://h/", Each: &EachOptions{Headers: map[string]string{"a": "Bearer x\n"}}},
		"headers.b has a control character, such as the end of a line, which no header may have": {URL: "https://h/", Secret: []byte("x\n"), Each: &EachOptions{Headers: map[string]string{"b": "Bearer {{secret}}"}}},
		"headers.x-kind is there twice: the case of a name does not count":                       {URL: "https://h/", Each: &EachOptions{Headers: map[string]string{"X-Kind": "a", "x-kind": "b"}}},
		"headers.host has no effect: it follows from the url and the body":                       {URL: "https://h/", Each: &EachOptions{Headers: map[string]string{"host": "x"}}},
		`headers.a has a placeholder that is no {{column}}: "{{1}}"`:                             {URL: "https://h/", Each: &EachOptions{Headers: map[string]string{"a": "{{1}}"}}},
	} {
		if _, err := NewHTTP(o); errorText(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	h, err := NewHTTP(HTTPOptions{URL: "https://h/{{ID}}?a={{secret}}", Each: &EachOptions{Headers: map[string]string{"A": "{{secret}}{{kind}}"}, Body: `"{{id}}"`}})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(h.Columns(), " "); got != "id secret id secret kind" {
		t.Errorf("the columns are %s", got)
	}
}
