package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// newPeople returns sessions of ann, who may do everything, and bob, who may look.
func newPeople(t *testing.T) *sessions {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte("correct horse"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParsePasswords(strings.NewReader(fmt.Sprintf("# people\n\nann:%s\nbob:%s:look\n", hash, hash)))
	if err != nil {
		t.Fatal(err)
	}
	p.dummy = hash // quick, and the right password: a name that nobody has must be refused all the same
	return newSessions(p)
}

func from(address string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/login", nil)
	r.RemoteAddr = address
	return r
}

func with(value string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.AddCookie(&http.Cookie{Name: sessionCookie, Value: value})
	return r
}

func TestSessionExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPeople(t)
		value, _, err := s.signIn(from("192.0.2.1:1"), "bob", "correct horse")
		if err != nil || len(value) < 50 {
			t.Fatalf("sign in: %q, %v", value, err)
		}
		time.Sleep(sessionTime - time.Second)
		a, err := s.access(with(value))
		if err != nil || a.Name != "bob" || !a.may(Look, "x") || a.may(Operate, "x") || a.may(Change, "x") {
			t.Errorf("before the end: %+v, %v", a, err)
		}
		time.Sleep(time.Second)
		if _, err := s.access(with(value)); !errors.Is(err, errSignIn) {
			t.Errorf("at the end: %v, want %v", err, errSignIn)
		}
	})
}

func TestSignOutEndsOneSession(t *testing.T) {
	s := newPeople(t)
	first, _, _ := s.signIn(from("192.0.2.1:1"), "ann", "correct horse")
	second, _, _ := s.signIn(from("192.0.2.1:1"), "ann", "correct horse")
	s.signOut(with(first))
	if _, err := s.access(with(first)); err == nil {
		t.Error("the session that was ended is valid")
	}
	if _, err := s.access(with(second)); err != nil {
		t.Errorf("the other session: %v", err)
	}
}

// An address may try a name five times, and then once in half a minute. Other names and other addresses are free.
func TestAttemptsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPeople(t)
		for range freeAttempts {
			if _, _, err := s.signIn(from("192.0.2.1:1"), "ann", "wrong"); !errors.Is(err, errWrong) {
				t.Fatalf("a wrong password: %v", err)
			}
		}
		if _, _, err := s.signIn(from("192.0.2.1:2"), "ann", "correct horse"); !errors.Is(err, errTooMany) {
			t.Errorf("the next attempt: %v, want %v", err, errTooMany)
		}
		if _, _, err := s.signIn(from("192.0.2.2:1"), "ann", "correct horse"); err != nil {
			t.Errorf("from another address: %v", err)
		}
		time.Sleep(attemptPause)
		if _, _, err := s.signIn(from("192.0.2.1:1"), "ann", "correct horse"); err != nil {
			t.Errorf("after half a minute: %v", err)
		}
	})
}

func TestUnknownNamesAreRefused(t *testing.T) {
	s := newPeople(t)
	if _, _, err := s.signIn(from("192.0.2.1:1"), "eve", "correct horse"); !errors.Is(err, errWrong) {
		t.Errorf("a name that nobody has: %v, want %v", err, errWrong)
	}
}

// Neither sessions nor attempts grow without bound.
func TestSessionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPeople(t)
		first, _, _ := s.signIn(from("192.0.2.1:1"), "ann", "correct horse")
		for i := range maxSessions {
			time.Sleep(time.Second)
			s.makeRoom()
			s.byKey[[32]byte{byte(i), byte(i >> 8), 1}] = session{"bob", nil, time.Now().Add(sessionTime)}
		}
		if _, err := s.access(with(first)); err == nil || len(s.byKey) != maxSessions {
			t.Errorf("%d sessions, error of the first %v, want %d without it", len(s.byKey), err, maxSessions)
		}
		for i := range maxAttempts + 10 {
			s.allow(from("192.0.2.1:1"), fmt.Sprint(i))
		}
		if len(s.attempts) > maxAttempts {
			t.Errorf("%d pairs of a name and an address", len(s.attempts))
		}
	})
}

func TestOwnPage(t *testing.T) {
	for address, want := range map[string]string{
		"task?task=a%26b": "task?task=a%26b", "events": "events", "": "./", "/": "./", "./": "./", "login": "./", "logout": "./",
		"//evil.example": "./", "https://evil.example/task": "./", "/\\evil.example": "./", "\\\\evil.example": "./", "/task": "./",
		"javascript:alert(1)": "./", "task:1": "./", "../task": "./", "task/../../x": "./", "task\r\nX: y": "./", "%2f%2fevil.example": "./",
	} {
		if got := ownPage(address); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
}

func TestParsePasswordsRefuses(t *testing.T) {
	const hash = "$2a$04$abcdefghijklmnopqrstuuPPmfLvbVJZyFbWkF0VzPtnQK6BHYzP6"
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
	} {
		if _, err := ParsePasswords(strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestPasswordLine(t *testing.T) {
	line, err := PasswordLine("ann", "correct horse", Look, Operate)
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParsePasswords(strings.NewReader(line))
	if err != nil {
		t.Fatal(err)
	}
	if rights, ok := p.check("ann", "correct horse"); !ok || len(rights) != 2 {
		t.Errorf("%s: rights %v, %t", line, rights, ok)
	}
	if _, ok := p.check("ann", "correct horsf"); ok {
		t.Error("a wrong password is accepted")
	}
	for _, password := range []string{"", "short12", strings.Repeat("x", 73)} {
		if _, err := PasswordLine("ann", password); err == nil {
			t.Errorf("a password of %d bytes is accepted", len(password))
		}
	}
}
