package console

import (
	"crypto/rand"
	"crypto/sha256"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// sessionCookie is the name of the cookie of a session.
	sessionCookie = "rota_session"
	// sessionTime is how long a session lasts.
	sessionTime = 12 * time.Hour
	// maxSessions is how many sessions there may be. The oldest one ends when there are more.
	maxSessions = 1000
	// attemptPause is the time after which one more attempt to sign in is free, of a name from an address.
	attemptPause = 30 * time.Second
	// freeAttempts is how many attempts may follow each other at once.
	freeAttempts = 5
	// maxAttempts is how many pairs of a name and an address are remembered.
	maxAttempts = 10_000
	// maxHashing is how many passwords are compared at a time. Each takes a core for a good part of a second.
	maxHashing = 2
)

// sessions are the people who have signed in. They are lost when the process ends.
type sessions struct {
	passwords *Passwords
	hashing   chan struct{} // has room for the comparisons that run

	mu       sync.Mutex
	byKey    map[[sha256.Size]byte]session // by the hash of the cookie's value
	attempts map[string]*rate.Limiter      // by address and name
}

type session struct {
	name    string
	rights  []Right
	expires time.Time
}

func newSessions(p *Passwords) *sessions {
	return &sessions{
		passwords: p, hashing: make(chan struct{}, maxHashing),
		byKey: map[[sha256.Size]byte]session{}, attempts: map[string]*rate.Limiter{},
	}
}

// access is the Access of a console with passwords.
func (s *sessions) access(r *http.Request) (Actor, error) {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return Actor{}, errSignIn
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.byKey[sha256.Sum256([]byte(cookie.Value))]
	if !ok || !time.Now().Before(found.expires) {
		return Actor{}, errSignIn
	}
	return Actor{Name: found.name, May: func(right Right, _ string) bool { return slices.Contains(found.rights, right) }}, nil
}

// signIn begins a session if the password is right. It returns the value of the cookie.
func (s *sessions) signIn(r *http.Request, name, password string) (value string, expires time.Time, err error) {
	if !s.allow(r, name) {
		return "", time.Time{}, errTooMany
	}
	select {
	case s.hashing <- struct{}{}:
	case <-r.Context().Done():
		return "", time.Time{}, r.Context().Err()
	}
	rights, ok := s.passwords.check(name, password)
	<-s.hashing
	if !ok {
		return "", time.Time{}, errWrong
	}
	value, expires = rand.Text()+rand.Text(), time.Now().Add(sessionTime)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.makeRoom()
	s.byKey[sha256.Sum256([]byte(value))] = session{name, rights, expires}
	return value, expires, nil
}

// makeRoom ends the sessions that have expired, and the oldest one if there are too many. The caller holds the lock.
func (s *sessions) makeRoom() {
	var oldest [sha256.Size]byte
	for key, found := range s.byKey {
		if !time.Now().Before(found.expires) {
			delete(s.byKey, key)
			continue
		}
		if o, ok := s.byKey[oldest]; !ok || found.expires.Before(o.expires) {
			oldest = key
		}
	}
	if len(s.byKey) >= maxSessions {
		delete(s.byKey, oldest)
	}
}

// signOut ends the session of a request.
func (s *sessions) signOut(r *http.Request) {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byKey, sha256.Sum256([]byte(cookie.Value)))
}

// allow reports whether one more attempt to sign in with this name is allowed from the address of the request. Other
// addresses may go on, so that nobody can lock a person out from elsewhere.
func (s *sessions) allow(r *http.Request, name string) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	key := host + "\x00" + name
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.attempts[key]
	if l == nil {
		if len(s.attempts) >= maxAttempts {
			s.forgetAttempts()
		}
		l = rate.NewLimiter(rate.Every(attemptPause), freeAttempts)
		s.attempts[key] = l
	}
	return l.Allow()
}

// forgetAttempts drops the pairs that may try as often as new ones, or all if there are none of those. The caller holds the
// lock.
func (s *sessions) forgetAttempts() {
	for key, l := range s.attempts {
		if l.Tokens() >= freeAttempts {
			delete(s.attempts, key)
		}
	}
	if len(s.attempts) >= maxAttempts {
		clear(s.attempts)
	}
}
