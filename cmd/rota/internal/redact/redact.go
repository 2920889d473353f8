// Package redact takes secrets out of texts before they leave the process: out of the log, of what the worker writes to
// the roster, and of what a command prints about an error.
//
// It does so at the outlets and not where an error is made, because a text passes libraries on its way: net/http writes
// the whole URL of a request into its errors, and a program in another language writes what it likes to its stderr.
package redact

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// mask stands for a secret.
const mask = "***"

const (
	// shortest is the length of the shortest secret that is taken out wherever it is, in bytes. A shorter one may be a
	// part of any word, and is taken out of URLs only.
	shortest = 6

	// shortestToken is the length of the shortest part of a path that is taken for a token.
	shortestToken = 16
)

// Redactor takes the secrets that it knows, and those of all URLs, out of texts. The zero value knows none. Several
// goroutines may call Text when no secret is added any more.
type Redactor struct {
	secrets []string // the longest first: one may contain another
}

// Add makes the secret known, and the forms that it has in a URL and between quotes.
func (r *Redactor) Add(secret string) {
	quoted := strconv.Quote(secret)
	for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret), quoted[1 : len(quoted)-1]} {
		if len(form) >= shortest && !slices.Contains(r.secrets, form) {
			r.secrets = append(r.secrets, form)
		}
	}
	slices.SortStableFunc(r.secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
}

// AddDatabase makes the password in the URL of a database known.
func (r *Redactor) AddDatabase(database string) {
	u, err := url.Parse(database)
	if err != nil {
		return // the program refuses the URL and does not print it
	}
	if password, ok := u.User.Password(); ok {
		r.Add(password)
	}
	for key, values := range u.Query() {
		if strings.Contains(key, "password") { // sslpassword of PostgreSQL, and password itself
			r.addAll(values)
		}
	}
}

// AddService makes the tokens in the URL of a service known: what stands for a user, long parts of the path, and the
// values of the query. A part or a value that is one of the names is no token: the texts would not say any more what
// they are about.
func (r *Redactor) AddService(service string, names ...string) {
	u, err := url.Parse(service)
	if err != nil {
		return // the program refuses the URL and does not print it
	}
	password, _ := u.User.Password()
	r.addAll([]string{u.User.Username(), password})
	for part := range strings.SplitSeq(u.EscapedPath(), "/") {
		plain, err := url.PathUnescape(part)
		if len(part) < shortestToken || slices.Contains(names, plain) {
			continue
		}
		if r.Add(part); err == nil {
			r.Add(plain)
		}
	}
	for _, values := range u.Query() {
		r.addAll(slices.DeleteFunc(values, func(value string) bool { return slices.Contains(names, value) }))
	}
}

func (r *Redactor) addAll(secrets []string) {
	for _, secret := range secrets {
		r.Add(secret)
	}
}

// Text returns a text without secrets.
func (r *Redactor) Text(text string) string {
	for _, secret := range r.secrets {
		text = strings.ReplaceAll(text, secret, mask)
	}
	return URLs(text)
}

// Error returns an error whose text has no secrets. It returns nil for nil.
func (r *Redactor) Error(err error) error {
	if err == nil {
		return nil
	}
	text := r.Text(err.Error())
	if text == err.Error() {
		return err
	}
	return redacted{text, err}
}

// redacted is an error with another text.
type redacted struct {
	text string
	err  error
}

func (e redacted) Error() string { return e.text }
func (e redacted) Unwrap() error { return e.err }

var (
	anyURL   = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>` + "`" + `]+`)
	anyValue = regexp.MustCompile(`=[^&;]*`)
)

// URLs returns a text whose URLs have no passwords and no values in their queries. A user stays only where a URL is not
// one of the web, whose user is often a token.
func URLs(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	return anyURL.ReplaceAllStringFunc(text, redactURL)
}

// redactURL redacts one URL, which need not be valid: a text may be cut in the middle of it.
func redactURL(text string) string {
	scheme, rest, _ := strings.Cut(text, "://")
	rest, query, asks := strings.Cut(rest, "?")
	end := strings.IndexByte(rest, '/')
	if at := strings.LastIndexByte(rest, '@'); at > end && end >= 0 && strings.Contains(rest[:at], ":") {
		end = strings.IndexByte(rest[at:], '/') // the password has a slash, which it should have escaped
		if end >= 0 {
			end += at
		}
	}
	if end < 0 {
		end = len(rest)
	}
	host, path := rest[:end], rest[end:]
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		user, _, hasPassword := strings.Cut(host[:at], ":")
		switch web := strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"); {
		case web:
			user = mask
		case hasPassword:
			user += ":" + mask
		}
		host = user + host[at:]
	}
	text = scheme + "://" + host + path
	if asks {
		text += "?" + anyValue.ReplaceAllString(query, "="+mask)
	}
	return text
}
