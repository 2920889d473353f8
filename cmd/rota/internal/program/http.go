package program

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/regular"
	"github.com/dutyrota/rota/processor"
)

// The headers of a request, beside those of the protocol HTTP.
const (
	idempotencyHeader = "Idempotency-Key"
	timestampHeader   = "Rota-Timestamp"
	signatureHeader   = "Rota-Signature"
)

// HTTPOptions are a service and how to reach it.
type HTTPOptions struct {
	URL         string
	Secret      []byte // signs the requests; empty for none
	CAFile      string // the certificates that sign that of the service; empty for those of the system
	Connections int    // the most connections at once; 0 is 16

	// Redact takes the secrets out of what a service says, before it is cut for an error. Nil changes nothing.
	Redact func(string) string

	Each *EachOptions // one request for each row; nil for one with the batch
}

const defaultConnections = 16

// HTTP executes batches in a service.
type HTTP struct {
	url    string
	each   *endpoint // nil for a service that gets batches
	secret []byte
	redact func(string) string // nil changes nothing
	client *http.Client
	now    func() time.Time
}

var schemes = regexp.MustCompile(`^(?i:https?)://`)

// NewHTTP returns an HTTP that has not connected yet. Its error names the field of the options.
func NewHTTP(o HTTPOptions) (*HTTP, error) {
	u, err := url.Parse(o.URL)
	switch {
	case !schemes.MatchString(o.URL):
		return nil, errors.New("url must start with https:// or http:// and have a host")
	case err != nil && o.Each != nil:
		return nil, errors.New("url is malformed: {{column}} may stand in its path and in its query")
	case err != nil:
		return nil, errors.New("url is malformed") // the error would print it
	case u.Host == "":
		return nil, errors.New("url must start with https:// or http:// and have a host")
	case u.User != nil:
		return nil, errors.New("url must have no user and no password: the log would show them; use a secret")
	}
	n := cmp.Or(o.Connections, defaultConnections)
	transport := &http.Transport{
		Proxy:       http.ProxyFromEnvironment,
		DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext, TLSHandshakeTimeout: 10 * time.Second,
		MaxConnsPerHost: n, MaxIdleConnsPerHost: n, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
		MaxResponseHeaderBytes: 64 << 10, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if o.CAFile != "" {
		pem, err := regular.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("ca_file: %w", err)
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca_file (%s) has no certificate", o.CAFile)
		}
	}
	client := &http.Client{
		Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // a redirected POST may lose its body, and goes to a server that nobody named
		},
	}
	h := &HTTP{url: o.URL, secret: o.Secret, redact: o.Redact, client: client, now: time.Now}
	if o.Each != nil {
		if h.each, err = newEndpoint(o); err != nil {
			return nil, err
		}
		h.each.free = make(chan struct{}, n)
	}
	return h, nil
}

// Ask sends a request, or one for each row, and returns the reply.
func (h *HTTP) Ask(ctx context.Context, b *Batch) (*Reply, error) {
	b.complete(timeLeft(ctx))
	b.redact = h.redact
	if h.each != nil {
		return h.askEach(ctx, b)
	}
	body, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	status, text, after, err := h.post(ctx, b, body)
	switch {
	case status != 0 && status/100 != 2: // also if its body is too long, or cut off
		return nil, b.failure("post the batch", status, text, after)
	case err != nil:
		return nil, err
	}
	return b.parse(text)
}

// failure returns the error of a response whose status is not a success. A service that asks to come again later says
// nothing about the rows.
func (b *Batch) failure(doing string, status int, text []byte, after time.Duration) error {
	err := fmt.Errorf("%s: status %d %s: %s", doing, status, http.StatusText(status), b.excerpt(text))
	return processor.Busy(after, err)
}

// post sends a batch. It returns the status, the body and the time to wait of the response.
func (h *HTTP) post(ctx context.Context, b *Batch, body []byte) (status int, text []byte, after time.Duration,
	err error,
) {
	header := http.Header{"Content-Type": {"application/json"}}
	if b.IdempotencyKey != "" {
		header.Set(idempotencyHeader, b.IdempotencyKey)
	}
	h.sign(header, body)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, 0, err
	}
	request.Header = header
	limit := b.replyLimit()
	status, text, after, err = h.send(request, b.TraceParent, limit)
	if err == nil && len(text) > limit {
		err = errLong(limit)
	}
	return status, text, after, err
}

// send sends a request. Of the response, it returns the status, the time to wait, and at most limit bytes of the body
// and one more. If it cannot read these, it returns an error beside the status.
func (h *HTTP) send(r *http.Request, trace string, limit int) (status int, text []byte, after time.Duration,
	err error,
) {
	r.GetBody = nil // net/http would send a request with an Idempotency-Key again by itself, with an old signature
	if r.Header.Get("User-Agent") == "" {
		r.Header.Set("User-Agent", "rota/"+strconv.Itoa(Version))
	}
	if trace != "" {
		r.Header.Set("traceparent", trace) // W3C Trace Context
	}
	response, err := h.client.Do(r)
	if err != nil {
		return 0, nil, 0, err
	}
	defer response.Body.Close() //nolint:errcheck // nothing is written
	if text, err = io.ReadAll(io.LimitReader(response.Body, int64(limit)+1)); err != nil {
		err = fmt.Errorf("read the reply: %w", err)
	}
	return response.StatusCode, text, retryAfter(response, h.now()), err
}

// sign adds the time and a signature of it and of the body: whoever replays a request later is told by its time.
func (h *HTTP) sign(header http.Header, body []byte) {
	if len(h.secret) == 0 {
		return
	}
	timestamp := strconv.FormatInt(h.now().Unix(), 10)
	header.Set(timestampHeader, timestamp)
	header.Set(signatureHeader, "v1="+Signature(h.secret, timestamp, body))
}

// Signature returns what the header Rota-Signature has behind v1=.
func Signature(secret []byte, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	_, _ = io.WriteString(mac, timestamp+".") // a hash has no error
	_, _ = mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// mayWait reports whether a response of this status may ask for a pause.
func mayWait(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// retryAfter returns the pause for which a service that is busy or away asks, a second at least; 0 if it does not ask.
// item_retry_max of the task type bounds it.
func retryAfter(r *http.Response, now time.Time) time.Duration {
	if !mayWait(r.StatusCode) {
		return 0
	}
	text := strings.TrimSpace(r.Header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		return max(time.Duration(seconds)*time.Second, time.Second)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), time.Second) // the clock of the service may be behind
	}
	return 0
}

// Close closes the connections.
func (h *HTTP) Close() { h.client.CloseIdleConnections() }
