package console

import (
	"maps"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// attemptPause is the time after which an address has one more attempt to sign in, after freeAttempts at once.
	attemptPause = 10 * time.Second
	freeAttempts = 10
	// allAttempts is how many attempts all addresses have a second, after freeForAll at once: half of what maxHashing
	// comparisons can do.
	allAttempts = 3
	freeForAll  = 30
	// maxAddresses is how many addresses are remembered. More of them share the attempts of one.
	maxAddresses = 10_000
)

// limits bound the attempts to sign in.
type limits struct {
	all    *rate.Limiter
	others *rate.Limiter // of the addresses that are not remembered

	mu        sync.Mutex
	byAddress map[string]*rate.Limiter
	cleaned   time.Time
}

func newLimits() *limits {
	return &limits{
		all: rate.NewLimiter(allAttempts, freeForAll), others: newLimiter(),
		byAddress: map[string]*rate.Limiter{},
	}
}

func newLimiter() *rate.Limiter { return rate.NewLimiter(rate.Every(attemptPause), freeAttempts) }

// allow reports whether an address may try once more. An address that has used up its attempts takes none of the
// others'.
func (l *limits) allow(address string) bool {
	return l.of(address).Allow() && l.all.Allow()
}

func (l *limits) of(address string) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if limiter := l.byAddress[address]; limiter != nil {
		return limiter
	}
	if now := time.Now(); len(l.byAddress) >= maxAddresses && now.Sub(l.cleaned) > time.Second {
		l.cleaned = now
		maps.DeleteFunc(l.byAddress, func(_ string, limiter *rate.Limiter) bool { return limiter.Tokens() >= freeAttempts })
	}
	if len(l.byAddress) >= maxAddresses {
		return l.others // to forget an address that has tried would give it new attempts
	}
	limiter := newLimiter()
	l.byAddress[address] = limiter
	return limiter
}

// addressOf returns the address of a client. Of an IPv6 address it returns the first 64 bits, because a client has all
// addresses that begin with them.
func addressOf(r *http.Request) string {
	ip, err := clientOf(r)
	if err != nil {
		return r.RemoteAddr
	}
	if prefix, err := ip.Prefix(64); ip.Is6() && err == nil {
		return prefix.String()
	}
	return ip.String()
}
