package main

import (
	"html"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/verbs"
)

// Each verb is a command, with the texts and the arguments of the verb, and a command that changes the roster is a verb.
func TestCommandsAreTheVerbs(t *testing.T) {
	t.Parallel()
	commands := map[string]*cobra.Command{}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Flags().Lookup("dry-run") != nil || cmd.Flags().Lookup("yes") != nil {
			commands[strings.TrimPrefix(cmd.CommandPath(), "rota ")] = cmd
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRootCommand())
	for _, v := range verbs.All() {
		cmd := commands[v.Name]
		if cmd == nil {
			t.Errorf("%s is no command with --dry-run and --yes", v.Name)
			continue
		}
		delete(commands, v.Name)
		if cmd.Short != v.Short || !strings.HasSuffix(cmd.Long, v.Help) || !says(cmd.Long, v.Effect) || cmd.Example != v.Example {
			t.Errorf("%s has other texts than its verb", v.Name)
		}
		for _, a := range v.Args {
			if known := cmd.Flags().Lookup(a.Name) != nil || strings.Contains(cmd.Use, a.Place) && a.Place != ""; known == a.FormOnly {
				t.Errorf("%s: argument %s in %q: %t", v.Name, a.Name, cmd.Use, known)
			}
		}
		if cmd.Flags().Lookup("dry-run") == nil || cmd.Flags().Lookup("yes") == nil {
			t.Errorf("%s lacks --dry-run or --yes", v.Name)
		}
	}
	for name := range commands {
		t.Errorf("%s has --dry-run or --yes and is no verb", name)
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
		verb := verbs.Find(strings.Join(words[:2], " "))
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
func saidBy(c *verbs.Change) (list []string) {
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

// changes has a change of each verb, in an order in which each has something to change.
var changes = []string{
	"task pause settle", "task resume settle", "task wake settle", "task set regions queues=[north,west]", "task apply",
	"queue add regions east", "queue pin settle 3 zone=b", "queue unpin settle 3", "queue set settle 3 --weight 2",
	"queue split splits 3", "queue merge splits 3 --total 4", "queue remove regions north",
	"worker pause web2:2", "worker resume web2:2", "worker drain web2:2", "worker weight web1:1 3",
	"item retry settle a", "item drop settle a",
	"run submit idle --key k", "run depend idle extract", "run pause idle", "run resume idle", "run cancel extract", "run ack report", "run rerun extract",
	"run backfill extract --from 2025-03-28 --to 2025-03-29", "run backfill pause extract", "run backfill resume extract",
	"run backfill cancel extract", "trigger apply hourly --task idle --every 1h --start 2035-01-01T00:00:00Z", "trigger fire nightly",
	"trigger pause nightly", "trigger resume nightly", "trigger delete nightly", "task delete unserved", "doctor ack",
}

// Each verb has a dry run, which --yes does not change. A verb asks if its change loses something; in a pipe it refuses
// that, and does nothing, unless --yes is given. Then it does what the dry run has said.
func TestYesAnswersTheQuestionAlone(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	s.runs()
	s.define("unserved", center.Settings{Queues: 1})
	s.define("splits", center.Settings{Queues: 4, Splittable: true})
	s.file("  settle: {queues: 3}\n")
	s.exec("INSERT INTO schedule_environment (own_sign, lost_at, lost_task, lost_report) VALUES ('BASE', '2025-03-28 12:00:00.000000', 'settle', 'an epoch')")
	s.must(failures.Of(s.c.Roster()).Save(t.Context(), "settle", []failures.Item{{Key: "a", QueueID: "0", State: ops.ItemDead}}))
	asked := map[string]bool{}
	for _, args := range changes {
		verb := verbOf(args)
		if verb == nil {
			t.Fatalf("%s is no verb", args)
		}
		preview, why, code := s.try(args + " --dry-run")
		if code != 0 {
			t.Errorf("%s --dry-run: exit code %d: %s", args, code, why)
			continue
		}
		if again := s.run(args + " --dry-run --yes"); again != preview {
			t.Errorf("%s: --yes changes the dry run:\n%s\nand without it\n%s", args, again, preview)
		}
		asks := strings.Contains(preview, "This would ")
		asked[verb.Name] = asks
		if asks {
			if _, why, code := s.try(args); code != 2 || !strings.Contains(why, "not confirmed: add --yes, as there is no terminal to ask on\n") {
				t.Errorf("%s: exit code %d, stderr %q, want 2 and a refusal", args, code, why)
			}
			if again := s.run(args + " --dry-run"); again != preview {
				t.Errorf("%s has changed something without --yes:\n%s\nand before\n%s", args, again, preview)
			}
			args += " --yes"
		}
		if _, why, code := s.try(args); code != 0 || why != "" && verb.Name != "item drop" { // which has a note
			t.Errorf("%s: exit code %d: %s", args, code, why)
		}
	}
	for _, v := range verbs.All() {
		if _, ok := asked[v.Name]; !ok {
			t.Errorf("no change of the verb %s was tried", v.Name)
		}
	}
	want := []string{"item drop", "queue remove", "task apply", "task delete", "task set", "trigger delete"}
	if got := slices.Sorted(maps.Keys(asked)); !slices.Equal(slices.DeleteFunc(got, func(name string) bool { return !asked[name] }), want) {
		t.Errorf("%v ask, want %v", got, want)
	}
}

// verbOf returns the verb of a command line: the one of the longest name.
func verbOf(args string) (found *verbs.Verb) {
	for _, v := range verbs.All() {
		if strings.HasPrefix(args+" ", v.Name+" ") && (found == nil || len(v.Name) > len(found.Name)) {
			found = v
		}
	}
	return found
}
