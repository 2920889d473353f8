package program

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dutyrota/rota/processor"
)

// serveHTTP starts a service and returns its client.
func serveHTTP(t *testing.T, secret string, handle http.HandlerFunc) *HTTP {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	h, err := NewHTTP(HTTPOptions{URL: server.URL, Secret: []byte(secret)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

const traceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// A request has the batch, the trace of its run, its idempotency key, and a signature of its time and its body.
func TestPost(t *testing.T) {
	t.Parallel()
	h := serveHTTP(t, "secret", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var b Batch
		var items struct{ Items []struct{ Key string } }
		if err := json.Unmarshal(body, &items); err != nil {
			t.Error(err)
		}
		_ = json.Unmarshal([]byte(strings.Replace(string(body), `"items"`, `"rest"`, 1)), &b)
		if b.TaskType != "settle" || b.Queue != "1" || b.Epoch != 7 || len(items.Items) != 2 || r.Method != http.MethodPost {
			t.Errorf("%s %s", r.Method, body)
		}
		if got := r.Header.Get(idempotencyHeader); got != b.IdempotencyKey || len(got) != 32 {
			t.Errorf("%s is %q, in the body %q", idempotencyHeader, got, b.IdempotencyKey)
		}
		if got := r.Header.Get("Traceparent"); got != traceParent || b.TraceParent != traceParent {
			t.Errorf("the trace is %q, in the body %q", got, b.TraceParent)
		}
		if got := r.Header.Get(timestampHeader); got != "1767225600" {
			t.Errorf("%s is %q", timestampHeader, got)
		}
		if got, want := r.Header.Get(signatureHeader), "v1="+Signature([]byte("secret"), "1767225600", body); got != want {
			t.Errorf("%s is %s, want %s", signatureHeader, got, want)
		}
		_, _ = fmt.Fprintf(w, `{"batch":%q,"items":[{"key":"a","result":"done"},{"key":"b","result":"failed","error":"no"}]}`, b.ID)
	})
	h.now = func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
	b := batch("a", "b")
	b.TraceParent = traceParent
	if got := describe(h.Ask(t.Context(), b)); got != "b: no" {
		t.Error(got)
	}
}

// A service that repeats a secret does not get a part of it into an error, wherever the text of its answer is cut.
func TestNoPartOfASecretIsInAnError(t *testing.T) {
	t.Parallel()
	const secret = "abcdefghijklmnopqrstuvwx"
	for _, status := range []int{http.StatusOK, http.StatusForbidden} {
		for before := range 260 {
			h := serveHTTP(t, secret, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				_, _ = fmt.Fprint(w, strings.Repeat(".", before), secret)
			})
			h.redact = func(text string) string { return strings.ReplaceAll(text, secret, "***") }
			if _, err := h.Ask(t.Context(), batch("a")); err == nil || strings.Contains(err.Error(), secret[:1]+"b") {
				t.Fatalf("status %d: %d bytes before the secret: %v", status, before, err)
			}
		}
	}
}

// A request whose connection breaks is not sent again behind the back of the processor, which decides when to retry.
func TestBrokenConnectionIsNoSecondRequest(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	h := serveHTTP(t, "", func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 1 {
			var b struct{ Batch string }
			_ = json.NewDecoder(r.Body).Decode(&b)
			_, _ = fmt.Fprintf(w, `{"batch":%q,"items":[{"key":"a","result":"done"}]}`, b.Batch)
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			err = conn.Close()
		}
		if err != nil {
			t.Error(err)
		}
	})
	if got := describe(h.Ask(t.Context(), batch("a"))); got != "" {
		t.Fatal(got)
	}
	if _, err := h.Ask(t.Context(), batch("a")); err == nil || requests.Load() != 2 {
		t.Errorf("error %v, and the service saw %d requests, want 2", err, requests.Load())
	}
}

// No more batches are in the service at once than it may have connections.
func TestConnectionLimit(t *testing.T) {
	t.Parallel()
	const most = 2
	var now, tooMany atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if now.Add(1) > most {
			tooMany.Add(1)
		}
		defer now.Add(-1)
		time.Sleep(50 * time.Millisecond) // so that more could come if they were let in
	}))
	t.Cleanup(server.Close)
	h, err := NewHTTP(HTTPOptions{URL: server.URL, Connections: most})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	var g sync.WaitGroup
	for range 4 * most {
		g.Go(func() { _, _ = h.Ask(t.Context(), batch("a")) }) // the replies are empty
	}
	g.Wait()
	if tooMany.Load() > 0 {
		t.Errorf("%d of %d batches came while %d others were in the service", tooMany.Load(), 4*most, most)
	}
}

// The signature is that of the documentation, so that programs of other languages compute the same.
func TestSignature(t *testing.T) {
	t.Parallel()
	// printf '1767225600.{}' | openssl dgst -sha256 -hmac secret
	const want = "fa7eaa06bf97d7815f3f456e97cde70c9e50cb005f01660c8d10b10c21964887"
	if got := Signature([]byte("secret"), "1767225600", []byte("{}")); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A status outside 2xx fails the batch. A service that is busy says when to come again.
func TestStatus(t *testing.T) {
	t.Parallel()
	var status int
	var after string
	h := serveHTTP(t, "", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(signatureHeader) != "" {
			t.Error("a request without a secret is signed")
		}
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		if status/100 == 3 {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "sorry")
	})
	h.now = func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
	for _, c := range []struct {
		status      int
		after, want string
	}{
		{500, "", `post the batch: status 500 Internal Server Error: "sorry"`},
		{404, "7", `post the batch: status 404 Not Found: "sorry"`},
		{503, "", `post the batch: status 503 Service Unavailable: "sorry"`},
		{503, "7", `post the batch: status 503 Service Unavailable: "sorry" (retry after 7s)`},
		{429, "Thu, 01 Jan 2026 00:01:00 GMT", `post the batch: status 429 Too Many Requests: "sorry" (retry after 1m0s)`},
		{429, "Wed, 31 Dec 2025 23:59:00 GMT", `post the batch: status 429 Too Many Requests: "sorry" (retry after 1s)`},
		{503, "0", `post the batch: status 503 Service Unavailable: "sorry" (retry after 1s)`},
		{429, "99999999999", `post the batch: status 429 Too Many Requests: "sorry"`},
		{429, "4000000000", `post the batch: status 429 Too Many Requests: "sorry" (retry after 1111111h6m40s)`},
		{302, "", `post the batch: status 302 Found: "sorry"`},
		{200, "", `the reply "sorry" is not as the protocol says: invalid character 's' looking for beginning of value`},
	} {
		status, after = c.status, c.after
		if _, err := h.Ask(t.Context(), batch("a")); errorText(err) != c.want {
			t.Errorf("%d %q:\ngot  %v\nwant %s", c.status, c.after, err, c.want)
		}
	}
}

// A long reply is not read to its end.
func TestLongResponse(t *testing.T) {
	t.Parallel()
	h := serveHTTP(t, "", func(w http.ResponseWriter, _ *http.Request) {
		for range 200 {
			if _, err := w.Write(make([]byte, 1<<10)); err != nil {
				return
			}
		}
	})
	if _, err := h.Ask(t.Context(), batch("a")); errorText(err) != "the reply is longer than 73728 bytes" {
		t.Errorf("error %v", err)
	}
}

// A service that is busy says so by its status, however its body ends. If that were an error of the reply, its pause
// would be lost, and each call an attempt.
func TestBusyWithoutAReadableBody(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(w http.ResponseWriter){
		"long": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, strings.Repeat("sorry ", 100_000))
		},
		"cut off": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "1000")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, "sorry")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := serveHTTP(t, "", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "7")
				answer(w)
			})
			_, err := h.Ask(t.Context(), batch("a"))
			if after, busy := processor.RetryOf(err); after != 7*time.Second || !busy {
				t.Errorf("%.200v", err)
			}
		})
	}
}

// The certificate of a service is verified, by a CA of its own if there is one.
func TestTLSIsVerified(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for ca, want := range map[string]string{"": x509.UnknownAuthorityError{}.Error(), file: "status 418"} {
		h, err := NewHTTP(HTTPOptions{URL: server.URL, CAFile: ca})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Ask(t.Context(), batch("a")); !strings.Contains(errorText(err), want) {
			t.Errorf("ca_file %q: error %v, want %s", ca, err, want)
		}
		h.Close()
	}
}

// An error of the options names the field, and no secret.
func TestHTTPOptions(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://user:secret@h/": "url must have no user and no password: the log would show them; use a secret",
		"ftp://h/":               "url must start with https:// or http:// and have a host",
		"127.0.0.1:80/{{id}}":    "url must start with https:// or http:// and have a host",
		"HTTP:///":               "url must start with https:// or http:// and have a host",
		"/settle":                "url must start with https:// or http:// and have a host",
		"https://h:x/secret":     "url is malformed",
	} {
		if _, err := NewHTTP(HTTPOptions{URL: url}); errorText(err) != want {
			t.Errorf("%s: %v, want %s", url, err, want)
		}
	}
	if _, err := NewHTTP(HTTPOptions{URL: "https://h/", CAFile: "absent"}); !strings.HasPrefix(errorText(err), "ca_file: open absent: ") {
		t.Errorf("%v", err)
	}
}
