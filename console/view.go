package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/verbs"
	"github.com/dutyrota/rota/runs"
)

// content is what a page says: its title, what its template shows, and the same as JSON and CSV: a slice of records,
// or nil.
type content struct {
	Title   string
	Data    any
	Records any
}

// view is the response to one request. The templates read its exported fields and methods.
type view struct {
	viewer   *viewer
	request  *http.Request
	template string // of the content
	Path     string
	content
	Nav nav
}

// newView returns the response to a request, and the error of one that the actor may not make.
func (s *console) newView(r *http.Request, template string) (*view, error) {
	actor, err := s.options.Access(r)
	v := &viewer{console: s, Actor: actor, until: time.Now().Add(patience)}
	return &view{viewer: v, request: r, template: template, Path: r.URL.Path}, err
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// write sends the page, or says that the client has it already.
func (v *view) write(ctx context.Context, w http.ResponseWriter) {
	format := formatOf(v.request)
	if format == formatHTML {
		v.Nav = v.viewer.nav(ctx)
	}
	err := v.viewer.Err
	switch {
	case err != nil:
	case format != formatHTML:
		v.writeRecords(ctx, w, format)
	case v.Data == nil:
		v.template = "checking"
		fallthrough
	default:
		v.tell(ctx)
		err = v.show(ctx, w, http.StatusOK)
	}
	if err != nil {
		v.fail(ctx, w, err, http.StatusServiceUnavailable)
	}
}

// tell logs why the page lacks parts.
func (v *view) tell(ctx context.Context) {
	if s := v.Lacking(); s != nil && s.err != nil {
		v.viewer.options.Logger.LogAttrs(ctx, slog.LevelWarn, "show a page of the console", slog.String("path", v.Path),
			slog.Any("error", s.err))
	}
}

// show sends the page, unless a template fails. It needs nothing from the database.
func (v *view) show(ctx context.Context, w http.ResponseWriter, status int) error {
	var top, content bytes.Buffer
	err := errors.Join(templates().ExecuteTemplate(&content, v.template, v), templates().ExecuteTemplate(&top, "top", v))
	if err == nil {
		v.respond(ctx, w, status, top.Bytes(), content.Bytes())
	}
	return err
}

// respond sends a page. Its ETag covers all but the time of the read, which is in a header of its own: a page on which
// nothing has changed is not sent again.
func (v *view) respond(ctx context.Context, w http.ResponseWriter, status int, top, content []byte) {
	sum := sha256.Sum256(slices.Concat(top, content, []byte(v.Notice()+"\x00"+v.Who()+"\x00"+v.Rights())))
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("ETag", tag)
	if !v.AsOf().IsZero() {
		h.Set("Rota-As-Of", strconv.FormatInt(v.AsOf().UnixMilli(), 10))
	}
	if status == http.StatusOK && v.request.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.WriteHeader(status)
	var page bytes.Buffer
	err := templates().ExecuteTemplate(&page, "page",
		map[string]any{"View": v, "Top": safeHTML(top), "Content": safeHTML(content)})
	if err == nil {
		_, err = w.Write(plain(page.Bytes()))
	}
	if err != nil {
		v.viewer.options.Logger.LogAttrs(ctx, slog.LevelDebug, "send a page of the console", slog.String("path", v.Path),
			slog.Any("error", err))
	}
}

// errUnknown is the error of a page about something that is not there.
var errUnknown = errors.New("unknown")

// fail sends a page that names the error. Its status is other if nothing is known about the error, which is then
// logged.
func (v *view) fail(ctx context.Context, w http.ResponseWriter, err error, other int) {
	if v.request.Context().Err() != nil {
		return // the client has gone
	}
	err = v.viewer.hide(err)
	if statusOf(err, http.StatusServiceUnavailable) == http.StatusServiceUnavailable {
		v.viewer.options.Logger.LogAttrs(ctx, slog.LevelWarn, "show a page of the console", slog.String("path", v.Path),
			slog.Any("error", err))
	}
	v.refuse(ctx, w, statusOf(err, other), err)
}

// statusOf returns the status of a page that shows an error; other if nothing is known about it.
func statusOf(err error, other int) int {
	for _, s := range []struct {
		status int
		errs   []error
	}{
		{http.StatusForbidden, []error{errNotAllowed}},
		{http.StatusNotFound, []error{
			errUnknown, center.ErrUnknownTask, runs.ErrUnknownRun, runs.ErrNoRunOrTask, runs.ErrNoRunYet, runs.ErrNoRuns,
			ops.ErrUnknownServer, runs.ErrUnknownTrigger, runs.ErrUnknownBackfill, verbs.ErrUnknownQueue, verbs.ErrUnknownItem,
		}},
		{http.StatusConflict, []error{ops.ErrChanged, errChanged, center.ErrGone, runs.ErrRunState, runs.ErrNoProblem}},
		{http.StatusUnprocessableEntity, []error{verbs.ErrMissing, verbs.ErrChoice, center.ErrNumbered}},
		{http.StatusServiceUnavailable, []error{context.DeadlineExceeded}},
	} {
		if slices.ContainsFunc(s.errs, func(e error) bool { return errors.Is(err, e) }) {
			return s.status
		}
	}
	return other
}

// refuse sends a page that names the error, without anything from the database.
func (v *view) refuse(ctx context.Context, w http.ResponseWriter, status int, err error) {
	if status == http.StatusForbidden {
		v.viewer.denied(v.request, v.viewer.Actor.Name, err)
	}
	if format := formatOf(v.request); format != formatHTML {
		http.Error(w, err.Error(), status)
		return
	}
	v.template, v.content = "error", content{Title: http.StatusText(status), Data: err}
	if err := v.show(ctx, w, status); err != nil {
		http.Error(w, err.Error(), status)
	}
}

// OwnSign returns the environment that the page shows.
func (v *view) OwnSign() string { return v.viewer.client.OwnSign() }

// AsOf returns when the oldest part of the page was read.
func (v *view) AsOf() time.Time { return v.viewer.asOf() }

// Failing returns since when the database does not answer; the zero time if it does.
func (v *view) Failing() time.Time { return v.viewer.failing() }

// Who returns the name of the actor.
func (v *view) Who() string { return v.viewer.Actor.Name }

// Dialect returns the kind of the database.
func (v *view) Dialect() string { return string(v.viewer.client.Dialect()) }

// Rights returns what the actor may do.
func (v *view) Rights() string { return v.viewer.Actor.rights() }

// May reports whether the actor has a right to a task type.
func (v *view) May(right, taskType string) bool { return v.viewer.Actor.may(Right(right), taskType) }

// MayAny reports whether the actor has a right to any task type: then lists have a column for it.
func (v *view) MayAny(right string) bool {
	if v.viewer.Actor.may(Right(right), "") {
		return true
	}
	return slices.ContainsFunc(v.viewer.knownTasks(), func(t ops.TaskRecord) bool { return v.May(right, t.TaskType) })
}

// Notice returns what the change has done that led to this page.
func (v *view) Notice() string {
	number := v.request.URL.Query().Get("notice")
	if number == "" {
		return ""
	}
	return v.viewer.notices.of(v.Who(), number)
}

// Sent reports whether the page answers a form. It is not there at its address alone.
func (v *view) Sent() bool { return v.request.Method == http.MethodPost }

// HasRecords reports whether the page is there as JSON and CSV.
func (v *view) HasRecords() bool { return v.Records != nil }

// Format returns the address of the page in another format.
func (v *view) Format(format string) template.URL {
	return withParameter(v.request.URL.Query(), "format", format)
}
