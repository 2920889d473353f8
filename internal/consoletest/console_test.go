package consoletest

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// A person follows an incident from the first worker on, without loading a page again, and ends it with clicks.
func TestIncident(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		r := newRoster(t, url)
		b := openBrowser(t, r.console(url, "--allow-changes"))
		b.open("")
		b.awaitText("h1", "No task type has been registered")
		first := r.worker()
		b.awaitText("#task-settle", "8")
		b.click("#task-settle", "settle")
		b.await("the strip has one owner", `document.querySelectorAll("#strip a.o1").length === 8`)
		second := joins(r, b)
		crashes(r, b, second)
		itemFails(r, b)
		runEnds(b)
		drains(b, first)
	})
}

// joins starts a second worker: the strip shows the move, and both own their share.
func joins(r *roster, b *browser) *exec.Cmd {
	r.Helper()
	worker := r.worker()
	b.await("half of the queues have moved", `document.querySelectorAll("#strip a.o2").length === 4 && document.querySelectorAll("#strip a.o1").length === 4`)
	b.awaitText(".owners", name(worker))
	return worker
}

// crashes kills the second worker: the page tells, until the first one has taken over.
func crashes(r *roster, b *browser, worker *exec.Cmd) {
	r.Helper()
	kill(worker)
	b.await("the strip marks the queues", `document.querySelectorAll("#strip a.overdue, #strip a.orphan").length > 0 || document.querySelectorAll("#strip a.o1").length === 8`)
	b.await("the first worker owns all queues", `document.querySelectorAll("#strip a.o1").length === 8`)
	b.open("queue?task=settle&queue=7")
	b.awaitText("table", "taken over")
}

// itemFails breaks an order: it is dead, and after the repair a click executes it.
func itemFails(r *roster, b *browser) {
	r.Helper()
	b.open("items?task=settle")
	b.awaitText(".empty", "No item has failed")
	r.exec("INSERT INTO orders (id, broken) VALUES (1000, 1)")
	b.awaitText("tbody tr", "dead")
	b.awaitText("tbody tr .id", "1000")
	r.exec("UPDATE orders SET broken = 0 WHERE id = 1000")
	b.click("[id^=item-]", "Retry")
	b.awaitText("#notice", "1 failed item retried")
	b.awaitText(".empty", "No item has failed")
}

// runEnds submits a run with a form, and watches it to its end. The run that depends on it follows.
func runEnds(b *browser) {
	b.Helper()
	b.open("task?task=report")
	b.click("main", "Submit a run")
	b.await("there is a form", `document.querySelector("input[name=key]")`)
	eval[string](b, `document.querySelector("input[name=key]").value = "k1"`)
	b.click("form.ask", "Show what it would do")
	b.awaitText("main p", "The key is k1")
	b.click("form.ask", "Submit")
	b.awaitText("#notice", "submitted")
	b.await("the run is on its way", `parseInt(document.querySelector(".keys-row dd").innerText) < 100`)
	b.awaitText(".badge", "success")
	b.awaitText(".keys-row", "100 %")
	b.await("the runs are a picture", `document.querySelectorAll("svg.graph a").length === 2`)
	b.click("svg.graph", "summary")
	b.awaitText("h1", "summary, run k1")
}

// drains drains the last worker: the page says first that no other can take its queues.
func drains(b *browser, worker *exec.Cmd) {
	b.Helper()
	b.open("workers")
	b.awaitText("main", name(worker))
	b.click("main tbody", "Drain all")
	b.awaitText("h1", "Drain "+name(worker))
	b.awaitText("main", "no other worker can take its 8 queues now")
	b.click("form.ask", "Drain")
	b.awaitText("#notice", "(settle): drained")
	b.awaitText("tbody", "draining")
	b.click("main tbody", "Resume all")
	b.click("form.ask", "Resume")
	b.awaitText("#notice", "(settle): resumed")
	b.open("events")
	b.awaitText("tbody", "console@")
}

// While the database is away the page says so and stays as it was. Then it goes on by itself.
func TestOutage(t *testing.T) {
	for _, kind := range testdb.Kinds(t) {
		if kind == testdb.SQLite {
			continue // a file is never away
		}
		t.Run(kind, func(t *testing.T) {
			url := testdb.URL(t, kind)
			r := newRoster(t, url)
			r.worker()
			through, proxy := testdb.Through(t, url)
			b := openBrowser(t, r.console(through))
			b.open("task?task=settle")
			b.await("the strip is full", `document.querySelectorAll("#strip a.o1").length === 8`)
			end := b.fails()
			proxy.Refuse(true)
			proxy.Cut()
			b.awaitText(".banner", "The database does not answer in time")
			if n := eval[int](b, `document.querySelectorAll("#strip a.o1").length`); n != 8 {
				t.Errorf("the strip has %d queues during the outage, want those that were read last", n)
			}
			b.click("nav", "Overview")
			b.awaitText("#task-settle", "settle")
			proxy.Refuse(false)
			b.await("the banner goes", `!document.querySelector(".banner")`)
			end()
		})
	}
}

// Without a script a person sees the same, and changes the same.
func TestWithoutScript(t *testing.T) {
	url := testdb.URL(t, testdb.Kinds(t)[0])
	r := newRoster(t, url)
	r.worker()
	b := openBrowser(t, r.console(url, "--allow-changes"))
	b.scriptsOff()
	for {
		b.open("task?task=settle")
		if eval[int](b, `document.querySelectorAll("#strip a.o1").length`) == 8 {
			break
		}
	}
	b.click("main", "Pause")
	b.awaitText("h1", "Pause settle?")
	b.click("form.ask", "Pause")
	b.awaitText("#notice", "settle$BASE: paused")
	tasks, err := ops.New(r.center).Tasks().List(t.Context(), "settle")
	if err != nil || !tasks[0].Paused {
		t.Errorf("%+v, %v", tasks, err)
	}
}

// Each page fits narrow and wide windows and a zoomed one, light and dark, has labels, and can be read. The pictures are for
// people.
func TestLayout(t *testing.T) {
	url := testdb.URL(t, testdb.Kinds(t)[0])
	r := newRoster(t, url)
	first := r.worker()
	r.worker()
	r.exec("INSERT INTO orders (id, broken) VALUES (1000, 1), (1001, 1)")
	b := openBrowser(t, r.console(url, "--allow-changes"))
	b.open("items?task=settle")
	b.awaitText("tbody tr", "1001")
	id, _, err := ops.New(r.center).Runs().Submit(t.Context(), "report", runs.Submission{Key: "k1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ops.New(r.center).Tasks().Define(t.Context(), "idle", center.Settings{QueueNames: []string{"north", "a-queue-with-a-rather-long-name-for-a-narrow-window"}}); err != nil {
		t.Fatal(err)
	}
	b.open("run?run=" + id)
	b.awaitText(".badge", "success")
	for page, path := range map[string]string{
		"overview": "", "task": "task?task=settle", "task-named": "task?task=idle", "task-run": "task?task=report", "queue": "queue?task=settle&queue=1", "workers": "workers",
		"items": "items?task=settle", "runs": "runs?task=report", "run": "run?run=" + id, "triggers": "triggers", "trigger": "trigger?trigger=report", "events": "events",
		"ask-drain": "worker-drain?worker=" + name(first), "ask-settings": "task-set?task=settle", "ask-trigger": "trigger-apply?trigger=report", "ask-submit": "run-submit?task=report",
	} {
		for _, w := range []struct {
			width int64
			zoom  float64
			dark  bool
		}{{360, 1, false}, {1280, 1, false}, {1920, 1, false}, {1280, 0.8, true}} {
			b.size(w.width, w.zoom)
			b.dark(w.dark)
			b.open(path)
			b.await("the page is there", `document.querySelector("main h1")`)
			name := fmt.Sprintf("%s-%d", page, w.width)
			if w.dark {
				name += "-dark"
			}
			b.checkLayout(name)
			b.shot(name)
		}
	}
}

// While the database takes a second for each statement, a page is there at once, and fills itself part by part. While
// the database is away, the page says of each part since when and why. Two people see the same.
func TestSlowDatabase(t *testing.T) {
	for _, kind := range testdb.Kinds(t) {
		if kind == testdb.SQLite {
			continue // a file is never slow
		}
		t.Run(kind, func(t *testing.T) {
			url := testdb.URL(t, kind)
			r := newRoster(t, url)
			r.worker()
			through, proxy := testdb.Through(t, url)
			console := r.console(through)
			first, second := openBrowser(t, console), openBrowser(t, console)
			proxy.Delay(500 * time.Millisecond) // in each direction
			first.open("")
			if text := eval[string](first, "document.querySelector('h1').innerText"); text != "Checking" {
				t.Errorf("the first page of a slow database says %q", text)
			}
			first.checkLayout("slow")
			first.shot("slow-first-" + kind)
			second.open("task?task=settle")
			second.shot("slow-second-" + kind)
			first.awaitText("#task-settle", "settle")
			second.await("the strip is full", `document.querySelectorAll("#strip a.o1").length === 8`)
			second.shot("slow-filled-" + kind)
			if eval[bool](second, `!!document.querySelector(".banner")`) {
				t.Error("a slow database is said to be away")
			}
			endFirst, endSecond := first.fails(), second.fails()
			proxy.Refuse(true)
			proxy.Cut()
			second.open("items")
			second.awaitText(".part", "it failed first")
			second.checkLayout("away")
			second.shot("away-items-" + kind)
			first.awaitText(".banner", "The database does not answer in time")
			first.shot("away-first-" + kind)
			proxy.Refuse(false)
			proxy.Delay(0)
			second.awaitText("main", "No item has failed")
			first.awaitText("h1", "wrong")
			first.await("the banner goes", `!document.querySelector(".banner")`)
			first.shot("back-" + kind)
			endFirst()
			endSecond()
		})
	}
}
