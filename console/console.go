package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/verbs"
)

// Options are the settings of a Handler. The zero value is ready to use.
type Options struct {
	// Access returns who makes a request, and what they may do. An error is shown to the client, with the status 403.
	// Access is called for every request except those for style sheets and scripts, concurrently. Loopback,
	// Passwords.Access and Proxy.Access are three of many ways. Defaults to clients on the same host, which may look.
	Access func(*http.Request) (Actor, error)

	// OwnSignOnly leaves only the right to look in environments other than that of the center. Settings, which hold in all
	// environments, cannot be changed then if there are others. Defaults to false.
	OwnSignOnly bool

	// ReadOnly leaves only the right to look to everybody. Defaults to false.
	ReadOnly bool

	// Logger gets the errors of queries and of templates. Defaults to no output.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Access == nil {
		o.Access = Loopback(Actor{Name: "local"})
	}
	if o.ReadOnly {
		o.Access = lookOnly(o.Access)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// console serves the pages of one environment.
type console struct {
	*site
	client  *ops.Client
	root    string // the relative address of the site, seen from the pages
	samples *samples
	seen    *firstSeen
	notices *notices
}

// Handler returns a handler that serves the pages of the environment of c, and below in/NAME/ those of the other
// environments of its database. c must stay open for as long as the handler is used. A query that is under
// way then fails, and nobody waits for it.
func Handler(c *center.Center, o Options) (http.Handler, error) {
	if c == nil {
		return nil, errors.New("console: no center")
	}
	s := newSite(c, o)
	mux := s.main.mux()
	mux.HandleFunc("/in/{sign}", func(w http.ResponseWriter, r *http.Request) {
		redirect(w, "./"+url.PathEscape(r.PathValue("sign"))+"/") // without ./ "https:host" would lead there
	})
	mux.HandleFunc("/in/{sign}/{page...}", s.serveEnvironment)
	return s.secure(inEnvironment(c.OwnSign(), mux)), nil
}

// mux returns the addresses of an environment.
func (s *console) mux() *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /static/", http.HandlerFunc(serveStatic))
	for pattern, p := range pages {
		mux.Handle("GET "+pattern, s.serve(p))
	}
	for _, v := range verbs.All() {
		if v.NoPage == "" {
			mux.Handle("GET "+pathOf(v), s.serveVerb(v))
			mux.Handle("POST "+pathOf(v), s.serveVerb(v))
		}
	}
	mux.Handle("GET /scale", s.lookers(func(r *http.Request) string { return r.FormValue("task") },
		&scaleHandler{client: s.client}))
	mux.Handle("GET /metrics", s.metrics())
	return mux
}

// lookers serves clients that may look at the task type of the request, or at everything if that is empty.
func (s *console) lookers(taskOf func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		actor, err := s.options.Access(r)
		if err == nil && !actor.may(Look, taskOf(r)) {
			err = errNotAllowed
		}
		if err != nil {
			s.forbid(w, r, actor, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// page is the content of one address.
type page struct {
	template string
	// make returns what the page says of an address with this query, unless it sets the viewer's error. Without Data the
	// page says that it is being read.
	make func(context.Context, *viewer, url.Values) content
}

// pages are the addresses. All are on one level, so that a link needs no prefix.
var pages = map[string]page{
	"/{$}":      {"overview", showOverview},
	"/task":     {"task", showTask},
	"/queue":    {"queue", showQueue},
	"/workers":  {"servers", showServers},
	"/items":    {"items", showItems},
	"/runs":     {"runs", showRuns},
	"/run":      {"run", showRun},
	"/triggers": {"triggers", showTriggers},
	"/trigger":  {"trigger", showTrigger},
	"/events":   {"events", showEvents},
}

// serve returns the handler of a page.
func (s *console) serve(p page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, query := r.Context(), r.URL.Query()
		v, err := s.newView(r, p.template)
		if err != nil {
			v.refuse(ctx, w, deny(w, err), err)
			return
		}
		if err := readable(query); err != nil {
			v.refuse(ctx, w, http.StatusBadRequest, err)
			return
		}
		if formatOf(r) != formatHTML {
			v.viewer = v.viewer.patient()
		}
		enters := v.viewer.mayEnter(ctx, query.Get("task"))
		switch {
		case enters:
			v.content = p.make(ctx, v.viewer, query)
		case v.viewer.knows("tasks"):
			v.refuse(ctx, w, http.StatusForbidden, errNotAllowed)
			return
		default: // it is not known yet whether the actor may see any row
		}
		v.write(ctx, w)
	})
}
