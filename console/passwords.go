package console

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/dutyrota/rota/internal/regular"
)

const (
	// successFor is how long a password that was right needs no comparison.
	successFor = 5 * time.Minute
	// fileEvery is the least time between two looks at the file.
	fileEvery = time.Second
	// maxFile is the greatest length of the file.
	maxFile = 1 << 20
	// maxHashing is how many passwords are compared at a time. Each takes a core for a good part of a second.
	maxHashing = 2
)

var (
	errSignIn  = errors.New("sign in with a name and a password")
	errWrong   = fmt.Errorf("the name or the password is wrong: %w", errSignIn)
	errTooMany = errors.New("too many attempts to sign in: try again in ten seconds")
	errPlain   = errors.New("the console takes passwords over TLS or from its own host, because they would cross the " +
		"network as plain text")
)

// Passwords lets people in who give a name and a password of a file, by HTTP Basic over TLS or from the same host. It
// reads the file again when that has changed.
type Passwords struct {
	path    string
	log     *slog.Logger
	key     []byte        // of the process
	hashing chan struct{} // has room for the comparisons that run
	limits  *limits
	refused rate.Sometimes

	mu     sync.Mutex
	looked time.Time // at the file
	text   []byte    // of the file then, or the text of the error
	people *people
}

// people are the persons of one state of the file.
type people struct {
	byName  map[string]user
	dummy   []byte // as costly as the hashes, for names that nobody has
	flights singleflight.Group

	mu sync.Mutex
	// right says when passwords were last found right, by the HMAC of name and password. Only what the file's hashes
	// accept gets in, and so the file bounds it.
	right map[string]time.Time
}

// OpenPasswords reads a file with a line NAME:HASH or NAME:HASH:RIGHTS for each person, such as
//
//	ann:$2a$12$...:look,operate
//
// HASH is a bcrypt hash, as PasswordLine or htpasswd -B makes it. RIGHTS is a list of look, operate and change; without
// it the person has all three. Empty lines and lines that begin with # mean nothing. An error names the line.
//
// A change of the file takes effect within two seconds. While the file cannot be read or a line is wrong, the previous
// lines stay in force. log gets that, and each sign-in that succeeds or fails. A password that was right needs no
// comparison for five minutes.
func OpenPasswords(path string, log *slog.Logger) (*Passwords, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	p := &Passwords{
		path: path, log: log, key: []byte(rand.Text()), hashing: make(chan struct{}, maxHashing), limits: newLimits(),
		refused: rate.Sometimes{Interval: attemptPause}, looked: time.Now(),
	}
	var err error
	if p.text, err = readLimited(path); err != nil {
		return nil, fmt.Errorf("read the passwords: %w", err)
	}
	p.people, err = parsePeople(bytes.NewReader(p.text))
	return p, err
}

func readLimited(path string) ([]byte, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s must have at most %d bytes", path, maxFile)
	}
	return text, err
}

// Access is for Options.Access.
func (p *Passwords) Access(r *http.Request) (Actor, error) {
	if r.TLS == nil && !fromThisHost(r) {
		return Actor{}, errPlain
	}
	name, password, ok := r.BasicAuth()
	if !ok {
		return Actor{}, errSignIn
	}
	people := p.current()
	mac := p.mac(name, password)
	if at, _ := people.rightAt(mac); time.Since(at) >= successFor {
		// Requests that come at once are one attempt: a browser asks for several things.
		_, err, _ := people.flights.Do(mac, func() (any, error) { return nil, p.signIn(r, people, mac, name, password) })
		if err != nil {
			return Actor{}, err
		}
	}
	rights := people.byName[name].rights
	return Actor{Name: name, May: func(right Right, _ string) bool { return slices.Contains(rights, right) }}, nil
}

// mac names a pair of a name and a password, without telling them.
func (p *Passwords) mac(name, password string) string {
	h := hmac.New(sha256.New, p.key)
	_, _ = h.Write([]byte(name + "\x00" + password)) // a hash returns no error
	return string(h.Sum(nil))
}

// rightAt returns when a password was last found right; known says whether it ever was.
func (s *people) rightAt(mac string) (at time.Time, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, known = s.right[mac]
	return at, known
}

// signIn compares a password. A password that was right before does not count towards the limits, so that failures of
// others with the same address, such as that of a proxy, do not lock its owner out.
func (p *Passwords) signIn(r *http.Request, people *people, mac, name, password string) error {
	ctx, address := r.Context(), addressOf(r)
	log := func(ctx context.Context, level slog.Level, text string) {
		p.log.LogAttrs(ctx, level, text, slog.String("actor", cut(name, maxName)), slog.String("address", address))
	}
	if _, known := people.rightAt(mac); !known && !p.limits.allow(address) {
		p.refused.Do(func() { log(ctx, slog.LevelWarn, "refused attempts to sign in to the console: too many") })
		return errTooMany
	}
	select {
	case p.hashing <- struct{}{}:
	case <-ctx.Done():
		return errTooMany // only requests that have come with this one at once read it
	}
	ok := people.check(name, password)
	<-p.hashing
	if !ok {
		log(ctx, slog.LevelWarn, "sign in to the console: the name or the password is wrong")
		return errWrong
	}
	people.mu.Lock()
	people.right[mac] = time.Now()
	people.mu.Unlock()
	log(ctx, slog.LevelInfo, "signed in to the console")
	return nil
}

// check reports whether a person has a password. It takes as long for names that nobody has, because all hashes of a
// file cost the same.
func (s *people) check(name, password string) bool {
	u, known := s.byName[name]
	if !known {
		u.hash = s.dummy
	}
	return bcrypt.CompareHashAndPassword(u.hash, []byte(password)) == nil && known && len(password) <= maxPassword
}

// current returns the people of the file, or of its last valid state if it is broken.
func (p *Passwords) current() *people {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.looked) < fileEvery {
		return p.people
	}
	p.looked = time.Now()
	text, err := readLimited(p.path)
	if err != nil {
		text = []byte(err.Error())
	}
	if bytes.Equal(text, p.text) {
		return p.people
	}
	p.text = text // an error is told once
	var changed *people
	if err == nil {
		changed, err = parsePeople(bytes.NewReader(text))
	}
	if err != nil {
		p.log.LogAttrs(context.Background(), slog.LevelError, "read the changed passwords of the console: "+
			"the previous ones stay in force", slog.Any("error", err))
		return p.people
	}
	p.log.LogAttrs(context.Background(), slog.LevelInfo, "the passwords of the console have changed")
	p.people = changed
	return changed
}
