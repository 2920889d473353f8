package console

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/dutyrota/rota/ops/verbs"
)

// Right is what an Actor may do: the right that a verb needs, or to look.
type Right = verbs.Right

// The rights. Each includes none of the others.
const (
	Look    Right = "look" // see the pages
	Operate       = verbs.RightOperate
	Change        = verbs.RightChange
)

// Actor is the person or program behind a request.
type Actor struct {
	// Name stands in schedule_event for each change.
	Name string

	// May reports whether the actor has a right to a task type. The task type is empty for pages that show all of them.
	// It is called concurrently. Defaults to the right to look at everything.
	May func(right Right, taskType string) bool
}

// may reports whether the actor has the right.
func (a Actor) may(right Right, taskType string) bool {
	if a.May == nil {
		return right == Look
	}
	return a.May(right, taskType)
}

// rights returns the rights that the actor has to all task types, as the foot of a page tells them.
func (a Actor) rights() string {
	var list []string
	for _, r := range allRights {
		if a.may(r, "") {
			list = append(list, string(r))
		}
	}
	return strings.Join(list, ", ")
}

// withinOwnSign leaves only the right to look to requests about other environments.
func withinOwnSign(ownSign string, access func(*http.Request) (Actor, error)) func(*http.Request) (Actor, error) {
	only := lookOnly(access)
	return func(r *http.Request) (Actor, error) {
		if OwnSign(r) == ownSign {
			return access(r)
		}
		return only(r)
	}
}

// errNotAllowed is the error of an actor without the right that a request needs.
var errNotAllowed = errors.New("you have no right to do this")

// forwarded are the headers with which a proxy tells that the client is elsewhere.
var forwarded = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip"}

// deny returns the status of a request without access, and sets the headers that belong to it.
func deny(w http.ResponseWriter, err error) int {
	switch {
	case errors.Is(err, errSignIn):
		w.Header().Set("WWW-Authenticate", `Basic realm="Rota", charset="UTF-8"`)
		return http.StatusUnauthorized
	case errors.Is(err, errTooMany):
		w.Header().Set("Retry-After", "10")
		return http.StatusTooManyRequests
	}
	return http.StatusForbidden
}

// lookOnly leaves only the right to look to everybody.
func lookOnly(access func(*http.Request) (Actor, error)) func(*http.Request) (Actor, error) {
	return func(r *http.Request) (Actor, error) {
		a, err := access(r)
		may := a.may
		a.May = func(right Right, taskType string) bool { return right == Look && may(right, taskType) }
		return a, err
	}
}

// Loopback is an Options.Access for a console that only clients on the same host use. They all are the same actor: the
// console cannot tell them apart. Every program and every person on the host is such a client.
func Loopback(a Actor) func(*http.Request) (Actor, error) {
	return func(r *http.Request) (Actor, error) {
		if err := onThisHost(r); err != nil {
			return Actor{}, err
		}
		return a, nil
	}
}

// onThisHost refuses requests of clients on other hosts, and requests that may come from there.
func onThisHost(r *http.Request) error {
	if !fromThisHost(r) {
		return fmt.Errorf("the console serves only clients on its own host, and not %s", r.RemoteAddr)
	}
	for _, name := range forwarded {
		if r.Header.Get(name) != "" {
			return fmt.Errorf("the console serves only clients on its own host, and a proxy has forwarded this request (%s)",
				name)
		}
	}
	if !localHost(r.Host) {
		return fmt.Errorf("the console serves only requests to localhost, and not to %q", r.Host)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return fromLocalPage(r)
	}
	return nil
}

// fromLocalPage refuses a change that a page of another site has sent. A browser names the page in Origin or Referer; a
// program such as curl names none.
func fromLocalPage(r *http.Request) error {
	for _, name := range []string{"Origin", "Referer"} {
		page := r.Header.Get(name)
		if page == "" {
			continue
		}
		if u, err := url.Parse(page); err != nil || !localHost(u.Host) {
			return fmt.Errorf("the console takes changes only from its own pages at localhost, and the %s of this request is %q",
				name, page)
		}
	}
	return nil
}

// clientOf returns the address of the other end of the connection.
func clientOf(r *http.Request) (netip.Addr, error) {
	end, err := netip.ParseAddrPort(r.RemoteAddr)
	return end.Addr().Unmap().WithZone(""), err
}

// fromThisHost reports whether the other end of the connection is on this host.
func fromThisHost(r *http.Request) bool {
	ip, err := clientOf(r)
	return err == nil && ip.IsLoopback()
}

// localHost reports whether a Host header means this host by its address, or by the one name that no DNS server
// answers.
func localHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	ip := net.ParseIP(name)
	return strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback()
}
