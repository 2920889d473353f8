package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// hashes of the least cost, made once.
var hashOf = sync.OnceValue(func() map[string]string {
	hashes := map[string]string{}
	for _, password := range []string{"correct horse", "battery staple"} {
		hash, err := bcrypt.GenerateFromPassword([]byte(password), minCost)
		if err != nil {
			panic(err)
		}
		hashes[password] = string(hash)
	}
	return hashes
})

// The costs of hashes in programs. In the tests they are the least that bcrypt has.
var realMinCost, realNewCost = minCost, newCost

func init() { minCost, newCost = bcrypt.MinCost, bcrypt.MinCost }

// useRealCosts gives the test, which must not be parallel, the costs that programs have.
func useRealCosts(t *testing.T) {
	t.Helper()
	minCost, newCost = realMinCost, realNewCost
	t.Cleanup(func() { minCost, newCost = bcrypt.MinCost, bcrypt.MinCost })
}

// gate is a Passwords with its file, and what it logs.
type gate struct {
	testing.TB
	*Passwords
	path string
	log  bytes.Buffer
}

// newGate lets ann with all rights and bob, who may look, in.
func newGate(t testing.TB) *gate {
	t.Helper()
	g := &gate{TB: t, path: filepath.Join(t.TempDir(), "people")}
	g.write("ann:" + hashOf()["correct horse"] + "\nbob:" + hashOf()["battery staple"] + ":look\n")
	p, err := OpenPasswords(g.path, slog.New(slog.NewTextHandler(&g.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	g.Passwords = p
	return g
}

func (g *gate) write(text string) {
	g.Helper()
	if err := os.WriteFile(g.path, []byte(text), 0o600); err != nil {
		g.Fatal(err)
	}
}

// try makes a request over TLS from an address.
func (g *gate) try(address, name, password string) (Actor, error) {
	r := httptest.NewRequest(http.MethodGet, "https://rota.example.com/", nil)
	r.RemoteAddr = address + ":4711"
	r.SetBasicAuth(name, password)
	return g.Access(r)
}

// want checks what a request gets.
func (g *gate) want(address, name, password string, want error) {
	g.Helper()
	if _, err := g.try(address, name, password); !errors.Is(err, want) || want == nil && err != nil {
		g.Errorf("%s with %q from %s: %v, want %v", cut(name, 20), password, address, err, want)
	}
}

func TestPeopleHaveTheRightsOfTheirLines(t *testing.T) {
	g := newGate(t)
	for name, c := range map[string]struct {
		password string
		change   bool
	}{"ann": {"correct horse", true}, "bob": {"battery staple", false}} {
		a, err := g.try("192.0.2.1", name, c.password)
		if err != nil || a.Name != name || !a.may(Look, "x") || a.may(Operate, "x") != c.change || a.may(Change, "x") != c.change {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	g.want("192.0.2.1", "ann", "battery staple", errWrong)
	g.want("192.0.2.1", "eve", "correct horse", errWrong)
	g.want("192.0.2.1", "ann", "correct horse"+strings.Repeat("x", maxPassword), errWrong)
	for _, text := range []string{`level=INFO msg="signed in to the console" actor=ann address=192.0.2.1`, `level=WARN`, "actor=eve"} {
		if !strings.Contains(g.log.String(), text) {
			t.Errorf("the log lacks %s:\n%s", text, g.log.String())
		}
	}
	if strings.Contains(g.log.String(), "horse") {
		t.Error("a password is logged")
	}
}

// A person whose line is removed is out within five seconds, also with a success of a moment before. A broken file
// changes nothing.
func TestChangedFile(t *testing.T) {
	hashOf()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t)
		g.want("192.0.2.1", "ann", "correct horse", nil)
		for _, broken := range []string{"", "ann", "ann:" + hashOf()["correct horse"] + "\nbob:secret"} {
			g.write(broken)
			time.Sleep(5 * time.Second)
			g.want("192.0.2.1", "ann", "correct horse", nil)
			g.want("192.0.2.1", "bob", "battery staple", nil)
		}
		if n := strings.Count(g.log.String(), "level=ERROR"); n != 3 {
			t.Errorf("three broken files are told %d times:\n%s", n, g.log.String())
		}
		if err := os.Remove(g.path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		g.want("192.0.2.1", "ann", "correct horse", nil)
		g.write("ann:" + hashOf()["battery staple"])
		time.Sleep(5 * time.Second)
		g.want("192.0.2.1", "ann", "correct horse", errWrong)
		g.want("192.0.2.1", "ann", "battery staple", nil)
		g.want("192.0.2.1", "bob", "battery staple", errWrong)
	})
}

// A success saves comparisons for five minutes, and not for longer.
func TestSuccessIsRemembered(t *testing.T) {
	hashOf()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t)
		signIns := func() int { return strings.Count(g.log.String(), "signed in") }
		for range 30 {
			g.want("192.0.2.1", "ann", "correct horse", nil)
			time.Sleep(20 * time.Second)
		}
		if n := signIns(); n != 2 {
			t.Errorf("%d comparisons in ten minutes, want 2", n)
		}
	})
}

// An address may try ten times, and then once in ten seconds. Others are free, and so is a person with the same address
// whose password was right before: also when it has to be compared again.
func TestAttemptsAreLimited(t *testing.T) {
	hashOf()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t)
		const proxy = "192.0.2.1"
		g.want(proxy, "bob", "battery staple", nil)
		for i := range freeAttempts - 1 {
			g.want(proxy, fmt.Sprint("name", i), "wrong", errWrong)
		}
		g.want(proxy, "ann", "correct horse", errTooMany)
		g.want("192.0.2.2", "ann", "correct horse", nil)
		for range 40 {
			time.Sleep(attemptPause)
			g.want(proxy, "eve", "wrong", errWrong)
			g.want(proxy, "eve", "wrong too", errTooMany)
			g.want(proxy, "bob", "battery staple", nil)
		}
	})
}

// All addresses together have a limit, too, which those that have used up their own do not touch.
func TestAttemptsOfAllAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimits()
		for range 1000 {
			l.allow("192.0.2.1")
		}
		allowed := 0
		for i := range 1000 {
			if l.allow(fmt.Sprint("198.51.100.", i)) {
				allowed++
			}
		}
		if want := freeForAll - freeAttempts; allowed != want {
			t.Errorf("%d more attempts were allowed at once, want %d", allowed, want)
		}
		time.Sleep(time.Minute)
		if !l.allow("203.0.113.1") {
			t.Error("after a minute an address has no attempt")
		}
	})
}

// However many names and addresses are tried, what is remembered is bounded, and an address that has used up its
// attempts gets no new ones.
func TestAttemptsAreBounded(t *testing.T) {
	hashOf()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t)
		for range freeAttempts + 1 {
			g.limits.allow("192.0.2.1")
		}
		for i := range 2 * maxAddresses {
			g.limits.allow(fmt.Sprintf("2001:db8:%x::/64", i))
		}
		if n := len(g.limits.byAddress); n > maxAddresses {
			t.Errorf("%d addresses are remembered, want at most %d", n, maxAddresses)
		}
		for i := range 20 {
			g.want("192.0.2.1", fmt.Sprint(i, strings.Repeat("x", 1<<20)), "wrong", errTooMany)
		}
		if g.log.Len() > 1000 || len(g.people.right) != 0 {
			t.Errorf("%d bytes are logged, and %d successes remembered", g.log.Len(), len(g.people.right))
		}
		time.Sleep(time.Hour)
		g.limits.allow("new")
		if n := len(g.limits.byAddress); n > 1 {
			t.Errorf("%d addresses are remembered after an hour", n)
		}
	})
}

// Two passwords are compared at a time. Requests that come at once with the same name and password are one attempt.
func TestComparisonsAreLimited(t *testing.T) {
	hashOf()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t)
		for range maxHashing {
			g.hashing <- struct{}{}
		}
		var all sync.WaitGroup
		var ended sync.Map
		for i := range 2 * freeAttempts {
			all.Go(func() {
				g.want("192.0.2.1", "ann", "correct horse", nil)
				ended.Store(i, true)
			})
		}
		synctest.Wait()
		ended.Range(func(_, _ any) bool { t.Error("a password is compared beside two others"); return false })
		for range maxHashing {
			<-g.hashing
		}
		all.Wait()
		if n := strings.Count(g.log.String(), "signed in"); n != 1 {
			t.Errorf("%d comparisons for requests that came at once", n)
		}
	})
}

// A client that has gone waits for no comparison: with hashes that cost seconds, such clients would stand before the
// people who come later.
func TestClientsThatHaveGoneWaitForNoComparison(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t)
		for range maxHashing {
			g.hashing <- struct{}{}
		}
		ctx, leave := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "https://rota.example.com/", nil)
		r.SetBasicAuth("ann", "correct horse")
		var err error
		go func() { _, err = g.Access(r) }()
		synctest.Wait()
		leave()
		synctest.Wait()
		if !errors.Is(err, errTooMany) {
			t.Errorf("got %v, want %v", err, errTooMany)
		}
		for range maxHashing {
			<-g.hashing
		}
	})
}

// Passwords are not taken over a network without TLS.
func TestPasswordsNeedTLS(t *testing.T) {
	g := newGate(t)
	for address, want := range map[string]error{"127.0.0.1:1": nil, "[::1]:1": nil, "192.0.2.1:1": errPlain, "@": errPlain} {
		r := httptest.NewRequest(http.MethodGet, "http://rota.example.com/", nil)
		r.RemoteAddr = address
		r.Header.Set("X-Forwarded-Proto", "https") // anybody can say so
		r.SetBasicAuth("ann", "correct horse")
		if _, err := g.Access(r); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("from %s: %v, want %v", address, err, want)
		}
	}
}

func TestAddressOf(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1:5": "192.0.2.1", "[::ffff:192.0.2.1]:5": "192.0.2.1", "[2001:db8:1:2:3::4]:5": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:5": "fe80::/64", "@": "@",
	} {
		if got := addressOf(&http.Request{RemoteAddr: address}); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

func TestParsePeopleRefuses(t *testing.T) {
	useRealCosts(t)
	hash := strings.Replace(hashOf()["correct horse"], "$04$", "$10$", 1)
	dear := strings.Replace(hash, "$10$", "$12$", 1)
	for text, want := range map[string]string{
		"":                              "the passwords name nobody: nobody could sign in",
		"# nobody":                      "the passwords name nobody: nobody could sign in",
		"ann":                           "line 1 of the passwords: want NAME:HASH or NAME:HASH:RIGHTS",
		"a:b:c:d":                       "line 1 of the passwords: want NAME:HASH or NAME:HASH:RIGHTS",
		"ann:secret":                    `line 1 of the passwords: the hash of "ann" must be one of bcrypt: `,
		"ann:$1$x$y":                    `line 1 of the passwords: the hash of "ann" must be one of bcrypt: `,
		"\nann:" + hash + ":all":        `line 2 of the passwords: the right "all" must be look, operate or change`,
		"ann:" + hash + ":":             `line 1 of the passwords: the right "" must be look, operate or change`,
		":" + hash:                      `line 1 of the passwords: the name "" must have 1 to 100 bytes`,
		"a b:" + hash:                   `line 1 of the passwords: the name "a b" must have 1 to 100 bytes`,
		"ann:" + hash + "\nann:" + hash: `line 2 of the passwords: "ann" is there twice`,
		"ann:" + hash + "\nbob:" + dear: `line 2 of the passwords: the hash of "bob" must have the cost 10 of the lines before, not 12`,
		"ann:" + strings.Replace(hash, "$10$", "$05$", 1): `line 1 of the passwords: the hash of "ann" must have a cost of 10 to 15, not 5`,
		"ann:" + strings.Replace(hash, "$10$", "$31$", 1): `line 1 of the passwords: the hash of "ann" must have a cost of 10 to 15, not 31`,
	} {
		if _, err := parsePeople(strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := OpenPasswords(filepath.Join(t.TempDir(), "nowhere"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestPasswordLine(t *testing.T) {
	useRealCosts(t)
	line, err := PasswordLine("ann", "correct horse", Look, Operate)
	if err != nil {
		t.Fatal(err)
	}
	p, err := parsePeople(strings.NewReader(line))
	if err != nil {
		t.Fatal(err)
	}
	if !p.check("ann", "correct horse") || p.check("ann", "correct horsf") || len(p.byName["ann"].rights) != 2 {
		t.Errorf("%s: %+v", line, p.byName["ann"])
	}
	for _, password := range []string{"", "short12", strings.Repeat("x", 73)} {
		if _, err := PasswordLine("ann", password); err == nil {
			t.Errorf("a password of %d bytes is accepted", len(password))
		}
	}
}
