package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"golang.org/x/time/rate"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
)

// site serves the environments of a database.
type site struct {
	options Options
	cache   *cache   // of all environments, which share the limit of queries at a time
	main    *console // of the center that the handler was made with
	denials *rate.Limiter

	mu     sync.Mutex
	others map[string]http.Handler // by own_sign
}

// maxEnvironments is how many environments are kept besides the first. Further ones are made anew for each request.
const maxEnvironments = 100

func newSite(c *center.Center, o Options) *site {
	s := &site{cache: newCache(), others: map[string]http.Handler{}, denials: newDenials()}
	s.options = o.withDefaults()
	if o.OwnSignOnly {
		s.options.Access = withinOwnSign(c.OwnSign(), s.options.Access)
	}
	s.main = s.newConsole(ops.New(c), "")
	return s
}

// newConsole returns the console of an environment.
func (s *site) newConsole(c *ops.Client, root string) *console {
	return &console{site: s, client: c, root: root, samples: newSamples(), seen: newFirstSeen(), notices: newNotices()}
}

// serveEnvironment serves the pages of another environment.
func (s *site) serveEnvironment(w http.ResponseWriter, r *http.Request) {
	sign := r.PathValue("sign")
	handler, err := s.environment(r.Context(), sign)
	if err != nil {
		s.refuseEnvironment(w, r, err)
		return
	}
	inside := new(http.Request)
	*inside = *r
	inside.URL = &url.URL{Path: "/" + r.PathValue("page"), RawQuery: r.URL.RawQuery}
	inEnvironment(sign, handler).ServeHTTP(w, inside)
}

// refuseEnvironment answers that there is no such environment, if the client may know it.
func (s *site) refuseEnvironment(w http.ResponseWriter, r *http.Request, err error) {
	actor, denied := s.options.Access(r)
	if denied == nil && !actor.may(Look, "") {
		denied = errNotAllowed
	}
	if denied != nil {
		s.forbid(w, r, actor, denied)
		return
	}
	http.Error(w, err.Error(), statusOf(err, http.StatusServiceUnavailable))
}

// forbid answers a request to an address that is no page, without access to it.
func (s *site) forbid(w http.ResponseWriter, r *http.Request, actor Actor, err error) {
	status := deny(w, err)
	if status == http.StatusForbidden {
		s.denied(r, actor.Name, err)
	}
	http.Error(w, err.Error(), status)
}

// environment returns the handler of an environment that exists.
func (s *site) environment(ctx context.Context, sign string) (http.Handler, error) {
	s.mu.Lock()
	handler := s.others[sign]
	s.mu.Unlock()
	if handler != nil {
		return handler, nil
	}
	v := (&viewer{console: s.main}).patient()
	signs := v.ownSigns(ctx)
	if v.Err != nil {
		return nil, v.Err
	}
	if !slices.Contains(signs, sign) {
		return nil, fmt.Errorf("%w environment %q", errUnknown, sign)
	}
	c, err := s.main.client.In(sign)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.others[sign] == nil {
		if len(s.others) >= maxEnvironments {
			clear(s.others)
		}
		s.others[sign] = s.newConsole(c, "../../").mux()
	}
	return s.others[sign], nil
}

type environmentKey struct{}

// inEnvironment makes OwnSign return the environment of a request.
func inEnvironment(sign string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), environmentKey{}, sign)))
	})
}

// OwnSign returns the environment that a request is about, for an Options.Access that gives rights by environment.
func OwnSign(r *http.Request) string {
	sign, _ := r.Context().Value(environmentKey{}).(string)
	return sign
}

// environment is a link to an environment.
type environment struct {
	Name, Address string
	Here          bool
}

// Environments returns links to the environments if there are several.
func (v *view) Environments() (list []environment) {
	if len(v.Nav.Signs) < 2 {
		return nil
	}
	for _, sign := range v.Nav.Signs {
		address := v.viewer.root + "in/" + url.PathEscape(sign) + "/"
		if sign == v.viewer.main.client.OwnSign() {
			address = v.viewer.root + "./"
		}
		list = append(list, environment{sign, address, sign == v.OwnSign()})
	}
	return list
}

// Root returns the relative address of the site.
func (v *view) Root() string { return v.viewer.root }
