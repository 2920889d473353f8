package main

import (
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

// Each verb is a command, with the texts and the arguments of the verb, and a command that changes the roster is a verb.
func TestCommandsAreTheVerbs(t *testing.T) {
	t.Parallel()
	verbs := map[string]*cobra.Command{}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Flags().Lookup("dry-run") != nil {
			verbs[strings.TrimPrefix(cmd.CommandPath(), "rota ")] = cmd
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRootCommand())
	for _, v := range ops.Verbs() {
		cmd := verbs[v.Name]
		if cmd == nil {
			t.Errorf("%s is no command with --dry-run", v.Name)
			continue
		}
		delete(verbs, v.Name)
		if cmd.Short != v.Short || !strings.HasSuffix(cmd.Long, v.Help) || !says(cmd.Long, v.Effect) || cmd.Example != v.Example {
			t.Errorf("%s has other texts than its verb", v.Name)
		}
		for _, a := range v.Args {
			if known := cmd.Flags().Lookup(a.Name) != nil || strings.Contains(cmd.Use, a.Place) && a.Place != ""; known == a.FormOnly {
				t.Errorf("%s: argument %s in %q: %t", v.Name, a.Name, cmd.Use, known)
			}
		}
		if asks := cmd.Flags().Lookup("yes") != nil; asks != v.Asks {
			t.Errorf("%s has --yes: %t", v.Name, asks)
		}
	}
	for name := range verbs {
		t.Errorf("%s has --dry-run and is no verb", name)
	}
}

// says reports whether a text that is broken into lines has these sentences.
func says(text, sentences string) bool {
	return strings.Contains(strings.Join(strings.Fields(text), " "), sentences)
}

// A dry run and the page of the console say the same about a change.
func TestPreviewsAreTheSame(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	s.runs()
	s.must(failures.Of(s.c.Roster()).Save(t.Context(), "settle", []failures.Item{{Key: "a", QueueID: "0", State: ops.ItemDead}}))
	handler, err := console.Handler(s.c, console.Options{Access: func(*http.Request) (console.Actor, error) {
		return console.Actor{Name: "ann", May: func(console.Right, string) bool { return true }}, nil
	}})
	s.must(err)
	for _, test := range []struct{ args, form string }{
		{"task pause settle", "task=settle"},
		{"task set settle execute_number=12 queues=3", "task=settle&execute_number=12&queues=3"},
		{"queue add regions west", "task=regions&queue=west"},
		{"queue pin settle 3 zone=b", "task=settle&queue=3&labels=zone=b"},
		{"worker drain web1:1", "worker=web1:1"},
		{"worker weight web1:1 3", "worker=web1:1&weight=3"},
		{"item drop settle a", "task=settle&key=a"},
		{"item retry settle --all --state DEAD", "task=settle&all=true&state=DEAD"},
		{"run submit idle --key k", "task=idle&key=k"},
		{"run cancel extract", "run=extract"},
		{"run backfill extract --from 2025-03-28 --to 2025-04-01", "task=extract&from=2025-03-28&to=2025-04-01"},
		{"trigger apply nightly --task extract --cron @daily", "trigger=nightly&task=extract&cron=@daily"},
		{"trigger delete nightly", "trigger=nightly"},
	} {
		words := strings.Fields(test.args)
		verb := ops.Find(strings.Join(words[:2], " "))
		form, err := url.ParseQuery(test.form)
		s.must(err)
		call := verb.Call()
		for _, a := range verb.Args {
			if values := form[a.Name]; len(values) > 0 {
				s.must(call.Set(a, values...))
			}
		}
		change, err := call.Prepare(t.Context(), ops.New(s.c))
		s.must(err)
		r := httptest.NewRequest(http.MethodGet, "/"+strings.ReplaceAll(verb.Name, " ", "-")+"?step=show&"+test.form, nil)
		r.Host, r.RemoteAddr = "localhost:8330", "127.0.0.1:50000"
		r.Header.Set("Accept", "text/html")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		surfaces := map[string]string{"the page": html.UnescapeString(w.Body.String()), "the command": s.run(test.args + " --dry-run")}
		for name, text := range surfaces {
			for _, want := range saidBy(change) {
				if !strings.Contains(text, want) {
					t.Errorf("%s: %s lacks %q:\n%s", test.args, name, want, text)
				}
			}
		}
		if !strings.Contains(surfaces["the page"], change.Title) {
			t.Errorf("%s: the page lacks %q", test.args, change.Title)
		}
	}
}

// saidBy returns the sentences of a change that its previews have. Those of servers have the sentences of each server.
func saidBy(c *ops.Change) (list []string) {
	list = append(list, c.Warnings...)
	if len(c.Scenarios) == 0 {
		list = append(list, c.Says...)
	}
	for _, o := range c.Objects {
		list = append(list, o.Says...)
		if len(c.Scenarios) > 0 {
			list = append(list, o.Would())
		}
		for _, d := range o.Differences {
			list = append(list, d.Name, d.Given)
		}
	}
	return list
}
