package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"golang.org/x/time/rate"
)

// policy allows what the pages need and nothing else.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// maxForm is the greatest body of a request, in bytes.
const maxForm = 1 << 20

// secure sets the headers of all responses, and refuses requests that a page of another site has made.
func (s *site) secure(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.denied(r, "", errOtherSite)
		http.Error(w, errOtherSite.Error(), http.StatusForbidden)
	}))
	return setHeaders(protection.Handler(next))
}

// errOtherSite is the error of a change that a page of another site has sent.
var errOtherSite = errors.New("the console takes changes only from its own pages")

func setHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		if r.TLS != nil {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		h.Set("Cache-Control", "no-store") // a style sheet or script says otherwise
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		next.ServeHTTP(w, r)
	})
}

// Each refused request is logged, but no more of them than these a second, after so many at once.
const (
	deniedRate  = 10
	deniedBurst = 100
)

func newDenials() *rate.Limiter { return rate.NewLimiter(deniedRate, deniedBurst) }

// denied logs that a request was refused. The actor is empty if nobody knows who made it.
func (s *site) denied(r *http.Request, actor string, err error) {
	if !s.denials.Allow() {
		return
	}
	s.options.Logger.LogAttrs(context.WithoutCancel(r.Context()), slog.LevelWarn, "refused a request to the console",
		slog.String("path", r.URL.Path), slog.String("actor", actor), slog.String("address", addressOf(r)), slog.Any("error",
			err))
}
