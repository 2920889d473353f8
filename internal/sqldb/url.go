package sqldb

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// URL is the parsed URL of a database server. Unlike a url.URL it may name several hosts. Nothing prints its password.
type URL struct {
	Scheme   string
	User     string
	Password string
	Hosts    []Host // in the order in which they are tried; empty if the URL names none
	Database string // the path without its first slash
	Query    url.Values
}

// Host is a host of a URL.
type Host struct {
	Name string // without brackets
	Port string // empty if the URL names none
}

// String returns the host as a URL writes it.
func (h Host) String() string {
	if h.Port != "" {
		return net.JoinHostPort(h.Name, h.Port)
	}
	if strings.Contains(h.Name, ":") {
		return "[" + h.Name + "]"
	}
	return h.Name
}

// Loopback reports whether the host is this host.
func (h Host) Loopback() bool {
	if strings.HasPrefix(h.Name, "/") || h.Name == "localhost" {
		return true
	}
	ip := net.ParseIP(h.Name)
	return ip != nil && ip.IsLoopback()
}

// Address returns the URL without its password and its parameters, except for the parameters that say where the server
// is.
func (u *URL) Address() string {
	var b strings.Builder
	b.WriteString(u.Scheme + "://")
	if u.User != "" {
		b.WriteString(url.User(u.User).String() + "@")
	}
	for i, h := range u.Hosts {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(h.String())
	}
	b.WriteString("/" + url.PathEscape(u.Database))
	sep := "?"
	for _, name := range []string{"host", "hostaddr", "port", "socket"} {
		if v := u.Query.Get(name); v != "" {
			b.WriteString(sep + name + "=" + v)
			sep = "&"
		}
	}
	return b.String()
}

// Loopback reports whether all servers of the URL are on this host.
func (u *URL) Loopback() bool {
	return !slices.ContainsFunc(u.Hosts, func(h Host) bool { return !h.Loopback() })
}

var (
	schemeForm  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*$`)
	keywordForm = regexp.MustCompile(`^\s*[a-z_]+\s*=`)
	dsnForm     = regexp.MustCompile(`@[a-z0-9]*\(|^[a-z0-9]+\([^)]*\)/`)
	badEscape   = regexp.MustCompile(`%($|[^0-9A-Fa-f]|[0-9A-Fa-f]($|[^0-9A-Fa-f]))`)
	controls    = regexp.MustCompile(`[\x00-\x20\x7f]`)
	userForm    = regexp.MustCompile(`^[A-Za-z0-9._~!$&'()*+,;=:@%-]*$`)
	hostForm    = regexp.MustCompile(`^([A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])?(:[0-9]*)?$`)
)

// ParseURL parses the URL of a database of one kind. schemes are the schemes of that kind. The error for another scheme
// asks for want. No error prints what was not understood, because it may be a password.
func ParseURL(raw, want string, schemes ...string) (*URL, error) {
	scheme, rest, err := cutScheme(raw, want, schemes...)
	if err != nil {
		return nil, err
	}
	switch {
	case strings.Contains(rest, "#"):
		return nil, URLError("# would end the URL: in a password write %%23 instead of #")
	case badEscape.MatchString(rest):
		return nil, URLError("%% must be followed by two hexadecimal digits: in a password write %%25 instead of %%")
	case controls.MatchString(rest):
		return nil, URLError("white space and control characters must be escaped: in a password write %%20 for a space")
	}
	u := &URL{Scheme: scheme}
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	if strings.Contains(tail, "@") {
		return nil, URLError("@ stands behind the host: in a password write %%2F instead of / and %%3F instead of ?; " +
			"elsewhere write %%40 instead of @")
	}
	if err := u.parseAuthority(authority); err != nil {
		return nil, err
	}
	return u, u.parseTail(tail)
}

// cutScheme returns the scheme, in lower case, and what stands behind "://".
func cutScheme(raw, want string, schemes ...string) (scheme, rest string, err error) {
	scheme, rest, found := strings.Cut(raw, "://")
	opaque, _, _ := strings.Cut(raw, ":")
	switch {
	case keywordForm.MatchString(raw):
		return "", "", URLError("libpq's form keyword=value is not accepted; want %s", want)
	case found && schemeForm.MatchString(scheme):
	case slices.Contains(schemes, strings.ToLower(opaque)):
		return "", "", URLError("no // behind the scheme; want %s", want)
	case dsnForm.MatchString(raw):
		return "", "", URLError("the form user:password@tcp(host)/database is not accepted; want %s", want)
	default:
		return "", "", URLError("no scheme; want %s", want)
	}
	if scheme = strings.ToLower(scheme); !slices.Contains(schemes, scheme) {
		return "", "", URLError("unknown scheme; want %s", want)
	}
	return scheme, rest, nil
}

// parseAuthority reads user:password@host:port,host:port.
func (u *URL) parseAuthority(text string) error {
	hosts := text
	if i := strings.LastIndex(text, "@"); i >= 0 {
		user, password, _ := strings.Cut(text[:i], ":")
		if !userForm.MatchString(text[:i]) {
			return URLError("user and password may hold letters, digits and ._~!$&'()*+,;=:- only: write any other character " +
				"as %%XX")
		}
		var err, errPassword error
		u.User, err = url.PathUnescape(user)
		u.Password, errPassword = url.PathUnescape(password)
		if cmp.Or(err, errPassword) != nil { // quotes the password
			return URLError("user or password has a malformed escape")
		}
		hosts = text[i+1:]
	}
	if hosts == "" {
		return nil
	}
	for host := range strings.SplitSeq(hosts, ",") {
		h, err := parseHost(host)
		if err != nil {
			return err
		}
		u.Hosts = append(u.Hosts, h)
	}
	return nil
}

func parseHost(text string) (Host, error) {
	m := hostForm.FindStringSubmatch(text)
	if m == nil {
		return Host{}, URLError("want host:port, or [IPv6]:port, between @ and /: in a password write %%2F instead of / " +
			"and %%3F instead of ?")
	}
	h := Host{Name: strings.Trim(m[1], "[]"), Port: strings.TrimPrefix(m[2], ":")}
	if port, err := strconv.Atoi(cmp.Or(h.Port, "1")); err != nil || port < 1 || port > 65535 {
		return Host{}, URLError("a port must be a number from 1 to 65535")
	}
	return h, nil
}

// parseTail reads /database?name=value.
func (u *URL) parseTail(text string) error {
	path, query, _ := strings.Cut(text, "?")
	var err error
	if u.Database, err = url.PathUnescape(strings.TrimPrefix(path, "/")); err != nil {
		return URLError("the name of the database has a malformed escape")
	}
	if u.Query, err = url.ParseQuery(query); err != nil { // quotes the query
		return URLError("the parameters cannot be read: want name=value&name=value; in a value write %%3B instead of ;")
	}
	return nil
}

// Params says what happens to each parameter of the URLs of a driver, by name. A parameter that is missing is refused:
// drivers hand names that they do not know to the server, as settings of the session.
type Params map[string]Param

// Join returns all of the params.
func Join(all ...Params) Params {
	joined := Params{}
	for _, p := range all {
		maps.Copy(joined, p)
	}
	return joined
}

// Each is the param of each of the names.
func (p Param) Each(names ...string) Params {
	all := Params{}
	for _, name := range names {
		all[name] = p
	}
	return all
}

// Param says what happens to one parameter. Pass, Only, Force and Refuse return one.
type Param struct {
	fate  fate
	rule  string            // what a value must be, or the reason
	valid func(string) bool // nil: any value
}

type fate int

const (
	pass fate = iota
	force
	refuse
)

// Pass hands the parameter to the driver.
func Pass() Param { return Param{} }

// Only hands the parameter to the driver if its value is valid. rule says what it must be, and why.
func Only(valid func(string) bool, rule string) Param { return Param{valid: valid, rule: rule} }

// Force ignores the parameter: the package sets it to the value, for the reason.
func Force(value, reason string) Param {
	return Param{fate: force, rule: fmt.Sprintf("is forced to %s: %s", value, reason)}
}

// Refuse refuses the parameter for the reason.
func Refuse(reason string) Param { return Param{fate: refuse, rule: "is refused: " + reason} }

// String returns what happens to the parameter and why.
func (p Param) String() string {
	if p.rule == "" {
		return "is passed on"
	}
	return p.rule
}

// OneOf returns a test for Only.
func OneOf(values ...string) func(string) bool {
	return func(v string) bool { return slices.Contains(values, v) }
}

// paramName is the form of a name that an error may print. Any other name may be a part of a password.
var paramName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

// Check returns the parameters for the driver. The error names a parameter, its value and the rule, in one line. The
// value of an unknown parameter is not printed: it may be a password.
func (p Params) Check(query url.Values) (url.Values, error) {
	passed := url.Values{}
	names := make([]string, 0, len(query))
	for name := range query {
		names = append(names, name)
	}
	slices.Sort(names) // one URL has one error
	for _, name := range names {
		param, known := p[name]
		values := query[name]
		switch {
		case !known && !paramName.MatchString(name):
			return nil, URLError("a parameter behind the question mark has no valid name")
		case !known:
			return nil, URLError("parameter %s is refused: its effect on the roster is not known", name)
		case len(values) > 1:
			return nil, URLError("parameter %s must be given once, not %d times", name, len(values))
		case param.fate == refuse, param.valid != nil && !param.valid(values[0]):
			return nil, URLError("parameter %s (%q) %s", name, values[0], param.rule)
		case param.fate == pass:
			passed.Set(name, values[0])
		}
	}
	return passed, nil
}

// URLError returns an error about a database URL.
func URLError(format string, args ...any) error {
	return fmt.Errorf("database URL: "+format, args...)
}
