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
)

// view is a page for one request. The templates read its exported fields and methods.
type view struct {
	*console
	request  *http.Request
	template string

	Path  string
	Actor Actor
	Title string
	Data  any // of the template of the content

	// Records are what the page has as JSON and CSV: a slice of records, or nil.
	Records any

	AsOf    time.Time // when the oldest part of the page was read
	Failing time.Time // since when the database does not answer; zero if it does
	Nav     nav

	readAt map[string]time.Time // when the results of queries were read, by their keys
}

// nav is what the top of each page shows.
type nav struct {
	Signs                       []string // the environments
	Servers, OpenRuns, Triggers int
	DeadItems                   int64
}

// note keeps the age of a part of the page, that of the oldest part, and since when the database does not answer.
func (v *view) note(key string, p part) {
	if v.readAt == nil {
		v.readAt = map[string]time.Time{}
	}
	v.readAt[key] = p.at
	if p.value != nil && (v.AsOf.IsZero() || p.at.Before(v.AsOf)) {
		v.AsOf = p.at
	}
	if p.err != nil && (v.Failing.IsZero() || p.failing.Before(v.Failing)) {
		v.Failing = p.failing
	}
}

// tasks returns all task types.
func (v *view) tasks(ctx context.Context) ([]center.TaskRecord, error) {
	list, err := load(ctx, v, "tasks", func(ctx context.Context) ([]center.TaskRecord, error) {
		return v.center.Tasks().List(ctx, "")
	})
	return visible(v, list, func(t center.TaskRecord) string { return t.TaskType }), err
}

// allServers returns the servers of all task types. The samples of their rates follow from them.
func (v *view) allServers(ctx context.Context) ([]center.ServerRecord, error) {
	list, err := load(ctx, v, "servers", func(ctx context.Context) ([]center.ServerRecord, error) {
		servers, err := v.center.Servers().List(ctx, center.ServerFilter{})
		if err == nil {
			v.samples.add(servers)
		}
		return servers, err
	})
	return visible(v, list, func(s center.ServerRecord) string { return s.TaskType }), err
}

// readNav fills what the top of the page shows, of the task types that the actor may look at.
func (v *view) readNav(ctx context.Context) error {
	tasks, err := v.tasks(ctx)
	if err != nil {
		return err
	}
	servers, err := v.allServers(ctx)
	if err != nil {
		return err
	}
	triggers, err := v.allTriggers(ctx)
	if err != nil {
		return err
	}
	if v.Nav.Signs, err = v.ownSigns(ctx); err != nil {
		return err
	}
	if !slices.Contains(v.Nav.Signs, v.main.center.OwnSign()) { // no worker has come yet
		v.Nav.Signs = append([]string{v.main.center.OwnSign()}, v.Nav.Signs...)
	}
	for _, t := range tasks {
		v.Nav.DeadItems += t.DeadItems
		v.Nav.OpenRuns += count(t.RunID != nil)
	}
	v.Nav.Servers, v.Nav.Triggers = len(servers), len(triggers)
	return nil
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// write sends the page, or says that the client has it already.
func (v *view) write(ctx context.Context, w http.ResponseWriter) {
	if format := formatOf(v.request); format != formatHTML {
		v.writeRecords(ctx, w, format)
		return
	}
	if err := v.readNav(ctx); err != nil {
		v.fail(ctx, w, err)
		return
	}
	var content bytes.Buffer
	if err := templates.ExecuteTemplate(&content, v.template, v); err != nil {
		v.fail(ctx, w, err)
		return
	}
	var top bytes.Buffer
	if err := templates.ExecuteTemplate(&top, "top", v); err != nil {
		v.fail(ctx, w, err)
		return
	}
	v.respond(ctx, w, http.StatusOK, top.Bytes(), content.Bytes())
}

// respond sends a page. Its ETag covers all but the time of the read, which is in a header of its own: a page on which
// nothing has changed is not sent again.
func (v *view) respond(ctx context.Context, w http.ResponseWriter, status int, top, content []byte) {
	sum := sha256.Sum256(slices.Concat(top, content, []byte(v.Said()+"\x00"+v.Actor.Name+"\x00"+v.Rights())))
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("ETag", tag)
	if !v.AsOf.IsZero() {
		h.Set("Rota-As-Of", strconv.FormatInt(v.AsOf.UnixMilli(), 10))
	}
	if status == http.StatusOK && v.request.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.WriteHeader(status)
	var page bytes.Buffer
	err := templates.ExecuteTemplate(&page, "page", map[string]any{"View": v, "Top": safeHTML(top), "Content": safeHTML(content)})
	if err == nil {
		_, err = w.Write(plain(page.Bytes()))
	}
	if err != nil {
		v.options.Logger.LogAttrs(ctx, slog.LevelDebug, "send a page of the console", slog.String("path", v.Path), slog.Any("error", err))
	}
}

// errUnknown is the error of a page about something that is not there.
var errUnknown = errors.New("unknown")

// fail sends a page that names the error.
func (v *view) fail(ctx context.Context, w http.ResponseWriter, err error) {
	if ctx.Err() != nil {
		return // the client has gone
	}
	err = v.hide(err)
	status := statusOf(err, http.StatusServiceUnavailable)
	if status == http.StatusServiceUnavailable {
		v.options.Logger.LogAttrs(ctx, slog.LevelWarn, "show a page of the console", slog.String("path", v.Path), slog.Any("error", err))
	}
	v.refuse(ctx, w, status, err)
}

// statusOf returns the status of a page that shows an error; other if nothing is known about it.
func statusOf(err error, other int) int {
	for _, s := range []struct {
		status int
		errs   []error
	}{
		{http.StatusForbidden, []error{errNotAllowed}},
		{http.StatusNotFound, []error{
			errUnknown, center.ErrUnknownTask, center.ErrUnknownRun, center.ErrNoRunOrTask, center.ErrUnknownServer, center.ErrUnknownTrigger,
			center.ErrUnknownBackfill, ops.ErrUnknownQueue, ops.ErrUnknownItem,
		}},
		{http.StatusConflict, []error{center.ErrChanged, errChanged, center.ErrGone, center.ErrRunState, center.ErrNoProblem}},
		{http.StatusUnprocessableEntity, []error{errMissingValue, ops.ErrMissing, ops.ErrChoice}},
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
	if format := formatOf(v.request); format != formatHTML {
		http.Error(w, err.Error(), status)
		return
	}
	v.Title, v.Data, v.template = http.StatusText(status), err, "error"
	v.show(ctx, w, status)
}

// show sends a page that needs nothing from the database.
func (v *view) show(ctx context.Context, w http.ResponseWriter, status int) {
	var top, content bytes.Buffer
	if err := errors.Join(templates.ExecuteTemplate(&top, "top", v), templates.ExecuteTemplate(&content, v.template, v)); err != nil {
		http.Error(w, err.Error(), status)
		return
	}
	v.respond(ctx, w, status, top.Bytes(), content.Bytes())
}

// param returns a parameter of the address.
func (v *view) param(name string) string { return v.request.URL.Query().Get(name) }

// OwnSign returns the environment that the page shows.
func (v *view) OwnSign() string { return v.center.OwnSign() }

// Dialect returns the kind of the database.
func (v *view) Dialect() string { return string(v.center.Dialect()) }

// Rights returns what the actor may do.
func (v *view) Rights() string { return v.Actor.rights() }

// May reports whether the actor has a right to a task type.
func (v *view) May(right, taskType string) bool { return v.Actor.may(Right(right), taskType) }

// MayAny reports whether the actor has a right to any task type: then lists have a column for it.
func (v *view) MayAny(right string) bool {
	if v.Actor.may(Right(right), "") {
		return true
	}
	return slices.ContainsFunc(v.knownTasks(), func(t center.TaskRecord) bool { return v.May(right, t.TaskType) })
}

// Said returns what the change has done that led to this page.
func (v *view) Said() string {
	number := v.param("said")
	if number == "" {
		return ""
	}
	return v.said.of(v.Actor.Name, number)
}

// HasRecords reports whether the page is there as JSON and CSV.
func (v *view) HasRecords() bool { return v.Records != nil }

// Format returns the address of the page in another format.
func (v *view) Format(format string) template.URL {
	query := v.request.URL.Query()
	query.Del("said")
	query.Set("format", format)
	return template.URL("?" + query.Encode()) //nolint:gosec // Encode has escaped it
}
