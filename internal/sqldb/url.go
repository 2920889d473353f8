package sqldb

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
)

// ParseURL parses the URL of a database of one kind. schemes are the schemes of that kind. The error for another scheme
// asks for want.
func ParseURL(raw, want string, schemes ...string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The error of url.Parse quotes the URL with its password.
		return nil, fmt.Errorf("database URL: not a URL; want %s", want)
	}
	switch {
	case u.Scheme == "":
		return nil, fmt.Errorf("database URL %q: no scheme; want %s", u.Redacted(), want)
	case !slices.Contains(schemes, u.Scheme):
		return nil, fmt.Errorf("database URL %q: scheme %q; want %s", u.Redacted(), u.Scheme, want)
	}
	return u, nil
}

// Loopback reports whether the server of a URL is on this host.
func Loopback(u *url.URL) bool {
	q := u.Query()
	host := u.Hostname()
	if h := q.Get("host"); h != "" {
		host = h
	}
	if q.Get("socket") != "" || strings.HasPrefix(host, "/") || host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
