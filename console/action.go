package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dutyrota/rota/ops/verbs"
	"github.com/dutyrota/rota/runs"
)

// change is what a verb does to the objects that a form names. The template "ask" shows it.
type change struct {
	*verbs.Change
	Button string
	Back   string // the page that shows the result

	Plans  []planned
	Diffs  []runs.Difference
	Slots  []time.Time
	Fields []formField // to fill in; then there is no change yet
	Hidden []formValue

	// do makes the change, and says in the past tense what it has done. With an error the text says what was done
	// before it, if the change is of several things.
	do func(ctx context.Context, actor string) (string, error)

	Action string // its address
	Actor  string
	Err    error
	Done   string // what was done before Err
	Failed bool   // it was tried, and has failed
	Again  bool   // some of it is done: the browser goes on by itself
}

// formValue is a value that a form hands on.
type formValue struct{ Name, Value string }

// exactly returns a value that comes back as it is. A browser sends each end of a line as \r\n. So a value with such an
// end is escaped as in an address, and its name ends with %.
func exactly(name, value string) formValue {
	if strings.ContainsAny(value, "\r\n") {
		return formValue{name + "%", url.QueryEscape(value)}
	}
	return formValue{name, value}
}

// readForm reads the form of a request. The lines of what a person has typed end with \n.
func readForm(r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return err
	}
	sent := url.Values{}
	for name, values := range r.PostForm {
		name, escaped := strings.CutSuffix(name, "%")
		for _, value := range values {
			var err error
			if !escaped {
				value = strings.ReplaceAll(value, "\r\n", "\n")
			} else if value, err = url.QueryUnescape(value); err != nil {
				return err
			}
			sent.Add(name, value)
		}
	}
	r.PostForm, r.Form = sent, r.URL.Query()
	for name, values := range sent {
		r.Form[name] = slices.Concat(values, r.Form[name])
	}
	return nil
}

// formField is a field of a form.
type formField struct {
	Name, Label, Value, Help string
	Placeholder              string
	Choices                  []string // the field is a list of them
	Long                     bool     // the text has several lines
	Required                 bool
	Fixed                    bool // the value cannot be changed
	Tick                     bool // the field is a box to tick
}

// changeLimit is how long a change may take.
const changeLimit = 10 * time.Second

// pathOf returns the address of a verb, which has one unless it has no page: /worker-drain of "worker drain". Like the
// addresses of the pages, it is on the top level.
func pathOf(v *verbs.Verb) string { return "/" + strings.ReplaceAll(v.Name, " ", "-") }

// serveVerb returns the handler of a verb. A GET shows what it would do, and asks. A POST with confirm=yes does it. A
// POST without it shows what the values of the form would do.
func (s *console) serveVerb(verb *verbs.Verb) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := s.newView(r, "ask")
		if err != nil {
			v.refuse(r.Context(), w, deny(w, err), err)
			return
		}
		if err := readForm(r); err != nil {
			v.refuse(r.Context(), w, formStatus(err), fmt.Errorf("read the form: %w", err))
			return
		}
		if err := readable(r.Form); err != nil {
			v.refuse(r.Context(), w, http.StatusBadRequest, err)
			return
		}
		// A change that has begun goes on when the browser goes away.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), changeLimit)
		defer cancel()
		v.serveChange(ctx, w, verb)
	})
}

// readable returns an error for a value that is no text of UTF-8 without NUL. No name or key in the database is like
// that, and PostgreSQL would refuse to look for it.
func readable(form url.Values) error {
	for name, values := range form {
		for _, value := range values {
			if !utf8.ValidString(value) || strings.ContainsRune(value, 0) {
				return fmt.Errorf("%.60q (%.60q) must be text in UTF-8 without NUL", name, value)
			}
		}
	}
	return nil
}

// formStatus returns the status of a form that cannot be read.
func formStatus(err error) int {
	if _, tooLong := errors.AsType[*http.MaxBytesError](err); tooLong {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadRequest
}

// serveChange checks the right, and shows the change or makes it.
func (v *view) serveChange(ctx context.Context, w http.ResponseWriter, verb *verbs.Verb) {
	form := v.request.Form
	confirmed := v.request.PostForm.Get("confirm") == "yes" // not in an address, which a link could hold
	c, err := prepareVerb(ctx, v.viewer, form, verb)
	if c == nil || len(c.TaskTypes) == 0 {
		if !v.mayLearn(verb.Right, form) {
			err = errNotAllowed
		}
		other := http.StatusUnprocessableEntity // a rule of the verb
		if v.viewer.client.IsTransient(err) {
			other = http.StatusServiceUnavailable
		}
		v.fail(ctx, w, cmp.Or(err, errors.New("the form names nothing")), other)
		return
	}
	if denied := v.mayChange(ctx, verb.Right, c); denied != nil {
		v.fail(ctx, w, denied, http.StatusServiceUnavailable)
		return
	}
	c.Action, c.Actor, c.Err = pathOf(verb)[1:], v.viewer.Actor.Name, err
	if confirmed && err == nil && c.do != nil {
		v.makeChange(ctx, w, c)
		return
	}
	status := http.StatusOK
	if err != nil {
		status = statusOf(err, http.StatusUnprocessableEntity)
	}
	v.showChange(ctx, w, status, c)
}

// mayLearn reports whether the actor may read why a form names nothing that can be changed. The text tells what there
// is.
func (v *view) mayLearn(right Right, form url.Values) bool {
	if v.viewer.Actor.may(Look, "") {
		return true
	}
	return v.viewer.Actor.may(right, form.Get("task")) && !form.Has("run") && !form.Has("worker") && !form.Has("trigger")
}

// mayChange returns an error if the actor lacks a right that a change needs.
func (v *view) mayChange(ctx context.Context, right Right, c *change) error {
	for _, taskType := range c.TaskTypes {
		if !v.viewer.Actor.may(right, taskType) {
			return errNotAllowed
		}
	}
	for _, taskType := range c.Reads {
		if !v.viewer.Actor.may(Look, taskType) {
			return errNotAllowed
		}
	}
	if !c.Everywhere {
		return nil
	}
	all := v.viewer.patient()
	for _, sign := range all.ownSigns(ctx) {
		actor, err := v.viewer.options.Access(v.request.WithContext(context.WithValue(ctx, environmentKey{}, sign)))
		for _, taskType := range c.TaskTypes {
			if err != nil || !actor.may(right, taskType) {
				return errElsewhere
			}
		}
	}
	return all.Err
}

// makeChange makes the change, and leads to the page that shows the result.
func (v *view) makeChange(ctx context.Context, w http.ResponseWriter, c *change) {
	done, err := c.do(ctx, v.viewer.Actor.Name)
	v.viewer.cache.outdate()
	attrs := []slog.Attr{slog.String("path", v.Path), slog.String("actor", v.viewer.Actor.Name)}
	switch {
	case err != nil:
		v.viewer.options.Logger.LogAttrs(ctx, slog.LevelWarn, "make a change in the console",
			append(attrs, slog.Any("error", err))...)
		c.Err, c.Done, c.Failed = err, done, true
		v.showChange(ctx, w, statusOf(err, http.StatusConflict), c)
	case c.Again:
		c.Done = done
		v.showChange(ctx, w, http.StatusOK, c)
	default:
		v.viewer.options.Logger.LogAttrs(ctx, slog.LevelInfo, "made a change in the console", attrs...)
		redirect(w, withNotice(c.Back, v.viewer.notices.keep(v.viewer.Actor.Name, done)))
	}
}

func (v *view) showChange(ctx context.Context, w http.ResponseWriter, status int, c *change) {
	v.content = content{Title: c.Title, Data: c}
	v.Nav = v.viewer.nav(ctx) // the page shows the change without it, too
	if err := v.show(ctx, w, status); err != nil {
		http.Error(w, err.Error(), status)
	}
}

// Asks reports whether the button makes the change.
func (c *change) Asks() bool { return len(c.Fields) == 0 && !c.Again }

// Untouched reports whether nothing was tried yet.
func (c *change) Untouched() bool { return c.Asks() && !c.Failed }

// CanEdit reports whether the values that the change is about came from a form.
func (c *change) CanEdit() bool { return c.Asks() && c.has("step") }

func (c *change) has(name string) bool {
	for _, h := range c.Hidden {
		if h.Name == name {
			return true
		}
	}
	return false
}

// hide adds values that the form hands on.
func (c *change) hide(name string, values ...string) {
	for _, value := range values {
		c.Hidden = append(c.Hidden, exactly(name, value))
	}
}

// errElsewhere is the error of an actor who has the right to a shared change here, and not in all environments.
var errElsewhere = fmt.Errorf("%w: it holds in all environments of the database, and you lack the right in another",
	errNotAllowed)

// errChanged is the error of a form about something that has changed since the form was made.
var errChanged = errors.New("somebody has changed it meanwhile: begin again")

// redirect leads to another page with a GET. http.Redirect would make the address absolute, without the prefix below
// which the console is mounted.
func redirect(w http.ResponseWriter, address string) {
	w.Header().Set("Location", address)
	w.WriteHeader(http.StatusSeeOther)
}
