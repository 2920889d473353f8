package console

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
)

// Proxy is the access of a console behind a proxy that knows who makes a request, such as oauth2-proxy or an ingress
// with single sign-on. The proxy must replace the header in all requests that it passes on.
type Proxy struct {
	// Header holds the name of the person, such as X-Forwarded-User.
	Header string

	// From are the addresses of the proxy. A request from elsewhere is refused, whatever its header says.
	From []netip.Prefix

	// May reports whether a person has a right to a task type. The task type is empty for pages that show all of them. It
	// is called concurrently. Defaults to the right to look at everything.
	May func(name string, right Right, taskType string) bool
}

// Access is for Options.Access.
func (p Proxy) Access(r *http.Request) (Actor, error) {
	client, err := clientOf(r)
	if err != nil || !slices.ContainsFunc(p.From, func(proxies netip.Prefix) bool { return proxies.Contains(client) }) {
		return Actor{}, fmt.Errorf("the console serves only requests of its proxy, and not of %s", r.RemoteAddr)
	}
	names := r.Header.Values(p.Header)
	if len(names) != 1 || names[0] == "" {
		return Actor{}, fmt.Errorf("the proxy must tell who makes the request, by one header %s", p.Header)
	}
	if err := checkName(names[0]); err != nil {
		return Actor{}, fmt.Errorf("header %s: %w", p.Header, err)
	}
	a := Actor{Name: names[0]}
	if p.May != nil {
		a.May = func(right Right, taskType string) bool { return p.May(a.Name, right, taskType) }
	}
	return a, nil
}
