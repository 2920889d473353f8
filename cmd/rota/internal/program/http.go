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
}

const defaultConnections = 16

// HTTP executes batches in a service.
type HTTP struct {
	url    string
	secret []byte
	client *http.Client
	now    func() time.Time
}

// NewHTTP returns an HTTP that has not connected yet. Its error names the field of the options.
func NewHTTP(o HTTPOptions) (*HTTP, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil:
		return nil, errors.New("url is malformed") // the error would print it
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
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
	return &HTTP{url: o.URL, secret: o.Secret, client: client, now: time.Now}, nil
}

// Ask sends a request and returns the reply.
func (h *HTTP) Ask(ctx context.Context, b *Batch) (*Reply, error) {
	b.complete(timeLeft(ctx))
	body, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	status, text, after, err := h.post(ctx, b, body)
	switch {
	case err != nil:
		return nil, err
	case status/100 != 2:
		err = fmt.Errorf("post the batch: status %d %s: %s", status, http.StatusText(status), excerpt(text))
		return nil, processor.RetryAfter(after, err)
	}
	return b.parse(text)
}

// post returns the status, the body and the time to wait of the response.
func (h *HTTP) post(ctx context.Context, b *Batch, body []byte) (status int, text []byte, after time.Duration,
	err error,
) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, 0, err
	}
	request.GetBody = nil // net/http would send a request with an Idempotency-Key again by itself, with an old signature
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "rota/"+strconv.Itoa(Version))
	if b.IdempotencyKey != "" {
		request.Header.Set(idempotencyHeader, b.IdempotencyKey)
	}
	if b.TraceParent != "" {
		request.Header.Set("traceparent", b.TraceParent) // W3C Trace Context
	}
	h.sign(request.Header, body)
	response, err := h.client.Do(request)
	if err != nil {
		return 0, nil, 0, err
	}
	defer response.Body.Close() //nolint:errcheck // nothing is written
	limit := b.replyLimit()
	text, err = io.ReadAll(io.LimitReader(response.Body, int64(limit)+1))
	switch {
	case err != nil:
		return 0, nil, 0, fmt.Errorf("read the reply: %w", err)
	case len(text) > limit:
		return 0, nil, 0, errLong(limit)
	}
	return response.StatusCode, text, retryAfter(response, h.now()), nil
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

// retryAfter returns the pause for which a service that is busy or away asks. item_retry_max of the task type bounds
// it.
func retryAfter(r *http.Response, now time.Time) time.Duration {
	if r.StatusCode != http.StatusTooManyRequests && r.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	text := strings.TrimSpace(r.Header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// Close closes the connections.
func (h *HTTP) Close() { h.client.CloseIdleConnections() }
