package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops/verbs"
	"github.com/dutyrota/rota/processor"
)

// drawing draws a history. It first draws which kinds of options and faults the history has (a swarm), so that a few of
// them meet often, and then the steps.
type drawing struct {
	*rand.Rand
	h      *history
	length time.Duration
	kinds  map[string]bool
	verbs  []*verbs.Verb
	edit   string // a setting
	graph  bool   // most tasks work in runs, and some after others
}

// draw returns the history of a seed.
func draw(seed uint64) *history {
	d := &drawing{
		Rand: rand.New(rand.NewPCG(seed, 3)), h: &history{seed: seed}, kinds: map[string]bool{},
	}
	d.length = time.Duration(40+d.IntN(100)) * time.Second
	d.h.processes, d.h.data = 2+d.IntN(3), d.IntN(3)
	if d.maybe(20) {
		d.h.returns = d.seconds(5, 30)
	}
	if d.maybe(30) {
		d.h.retention = d.seconds(5, 60)
	}
	d.h.hints = d.maybe(30)
	if d.maybe(20) {
		d.h.others = 1 + d.IntN(2)
		if d.maybe(50) {
			d.h.forgets = d.seconds(5, 60)
		}
	}
	for _, kind := range stepKinds {
		d.kinds[kind.name] = d.maybe(40)
	}
	d.kinds["edits"] = d.maybe(20) // it makes the first task a certain one
	d.drawVerbs()
	d.drawTasks()
	for _, t := range d.h.tasks {
		d.step(0, "items", t.name, fmt.Sprint(10+d.IntN(60)), d.fate(t))
	}
	for _, kind := range stepKinds {
		if d.kinds[kind.name] {
			for range 1 + d.IntN(kind.most) {
				kind.draw(d, time.Duration(d.Int64N(int64(d.length))))
			}
		}
	}
	slices.SortStableFunc(d.h.steps, func(a, b step) int { return int(a.at - b.at) })
	return d.h
}

// drawVerbs draws which verbs the history has: some of all, or all of one noun, such as run.
func (d *drawing) drawVerbs() {
	part := []int{6, 20, 33}[d.IntN(3)] // of the verbs, in percent
	all := slices.DeleteFunc(slices.Clone(verbs.All()), func(v *verbs.Verb) bool { return unplayed[v.Name] != "" })
	noun := ""
	if d.maybe(40) {
		noun = nounOf(all[d.IntN(len(all))])
	}
	for _, v := range all {
		if noun == "" && d.maybe(part) || noun == nounOf(v) {
			d.verbs = append(d.verbs, v)
		}
	}
}

// nounOf returns the first word of a verb.
func nounOf(v *verbs.Verb) string {
	noun, _, _ := strings.Cut(v.Name, " ")
	return noun
}

// drawTasks draws the tasks. Those of a graph are more, and most of them work in runs: the first two by themselves, and
// the others after some of those before.
func (d *drawing) drawTasks() {
	runs := []int{0, 25, 85}[d.IntN(3)] // of the tasks, in percent
	n := 1 + d.IntN(3)
	if d.graph = d.kinds["submissions"] && d.maybe(75); d.graph {
		runs, n = 90, 3+d.IntN(2)
	}
	if d.kinds["edits"] {
		d.drawEdit(runs)
	}
	for i := len(d.h.tasks); i < n; i++ {
		d.h.tasks = append(d.h.tasks, d.task(fmt.Sprintf("t%d", i), runs))
	}
	if d.h.others > 0 {
		t := d.task("t9", 0)
		t.words = append(t.words, "other")
		d.h.tasks = append(d.h.tasks, t)
	}
}

func (d *drawing) step(at time.Duration, words ...string) {
	d.h.steps = append(d.h.steps, step{at.Round(100 * time.Millisecond), words})
}

// one returns one of some words.
func (d *drawing) one(words ...string) string { return words[d.IntN(len(words))] }

// maybe reports true for a part of all calls, in percent.
func (d *drawing) maybe(percent int) bool { return d.IntN(100) < percent }

func (d *drawing) seconds(least, most int) time.Duration {
	return time.Duration(least*1000+d.IntN((most-least)*1000)) * time.Millisecond
}

func (d *drawing) process() string {
	if d.h.others > 0 && d.maybe(20) {
		return string(rune('m' + d.IntN(d.h.others)))
	}
	return string(rune('a' + d.IntN(d.h.processes)))
}

func (d *drawing) taskSpec() taskSpec { return d.h.tasks[d.IntN(len(d.h.tasks))] }

// drawEdit draws what edits write, and the first task, whose dealer contradicts it.
func (d *drawing) drawEdit(runs int) {
	all := refused()
	d.edit, d.h.data = all[d.IntN(len(all))], max(1, d.h.data)
	t := d.task("t0", runs)
	for t.accepts(d.edit) {
		t = d.task("t0", runs)
	}
	d.h.tasks = append(d.h.tasks, t)
}

// dealers are what the dealers of tasks offer.
var dealers = []string{
	"", "Keyed", "Keyed", "Keyed Paged", "Keyed Ordered", "Keyed Ordered Paged", "Keyed Discarder", "Keyed Ordered Discarder",
	"Cursored", "Keyed Cursored", "SetSelector", "Keyed SetSelector",
}

// optional are settings that a task may have, besides the ones of each task, which make failures short.
var optional = []string{
	"thread_number=1", "thread_number=3", "fetch_number=1", "fetch_number=5", "fetch_number=20", "execute_number=3", "execute_number=10",
	"processor_type=NOTSLEEP", "max_in_flight=4", "max_queues_per_server=3", "max_servers=2", "queue_max_in_flight=1",
	"queue_rate_per_second=5", "rate_per_second=20", "count_in_outage=true", "on_dead=PASS", "batch_timeout=5s",
	"splittable=true", "max_recoveries=2", "failing_after=3", "sleep_time_interval=1s", "drain_timeout=10s",
	"takes=3s", "stall_after=20s", "peeks", "hinted=true", "hinted=true", "counts", "counts", "balance=LOAD", "require=zone=x",
	"prefer=zone=y", "spread=zone", "permit_run_start_time=0/20~*~*~*~*~?", "permit_run_start_time=startrun:0/20~*~*~*~*~?",
	"permit_run_end_time=10/20~*~*~*~*~?", "Slotless", "coalesce=true", "queue_max_attempts=1", "sweep_max_repeats=1",
	"run_timeout=30s", "run_start_timeout=20s", "max_servers_per_host=1", "load_moves_per_hour=1", "item_retry_factor=1",
	"item_retry_jitter=0.9", "task_parameter=p",
}

// task draws a task that a worker accepts, and that works in runs with a chance in percent.
func (d *drawing) task(name string, runs int) taskSpec {
	for {
		words := []string{
			d.one("intx", "exec", "fence", "plain"), d.queues(), "sleep_time_nodata=2s",
			"item_retry=1s", "item_retry_max=5s", "item_max_attempts=3", "queue_retry=1s",
		}
		words = append(strings.Fields(dealers[d.IntN(len(dealers))]), words...)
		if d.maybe(50) {
			words = append(words, "heartbeat_interval=1s", "judge_dead_interval=5s")
		}
		if d.maybe(runs) {
			words = append(words, "mode=RUN")
			chance := 60
			switch {
			case d.graph && len(d.h.tasks) < 2:
				chance = 0
			case d.graph:
				chance = 90
			}
			switch upstreams := d.upstreams(); {
			case len(upstreams) > 0 && d.maybe(chance):
				words = append(words, "after="+strings.Join(upstreams, ","))
			case d.maybe(60):
				words = append(words, fmt.Sprintf("every=%ds", 10+d.IntN(50)))
			}
		}
		switch named := strings.Contains(strings.Join(words, " "), "queues=["); {
		case named && d.h.data > 1 && d.maybe(40):
			words = append(words, "database="+inTwoDatabases)
		case d.h.data > 0 && d.maybe(25):
			words = append(words, "database="+dataName(d.IntN(d.h.data)))
		}
		seen := map[string]bool{}
		if d.kinds["poison"] && d.maybe(40) {
			words, seen["count_in_outage"] = append(words, "count_in_outage=true"), true
		}
		if d.kinds["queues"] && d.maybe(60) {
			words, seen["splittable"] = append(words, "splittable=true"), true
		}
		if d.kinds["queues"] && d.maybe(40) { // so that items are in flight when the queues change
			words, seen["takes"] = append(words, d.one("takes=1s", "takes=3s")), true
		}
		for range d.IntN(6) {
			word := optional[d.IntN(len(optional))]
			if name, _, _ := strings.Cut(word, "="); !seen[name] {
				words, seen[name] = append(words, word), true
			}
		}
		spec := taskSpec{name, words}
		if t, err := spec.task(); err == nil && accepted(t) {
			return spec
		}
	}
}

// queues draws the queues of a task: numbers, or some of the names. With many of them a process has more queues than
// executors, and they wait for their turns.
func (d *drawing) queues() string {
	if d.maybe(10) {
		return d.one("queues=12", "queues=16", "queues=24")
	}
	if d.maybe(75) {
		return fmt.Sprintf("queues=%d", 1+d.IntN(6))
	}
	return d.someNames()
}

// someNames draws some of the names of queues, at least one.
func (d *drawing) someNames() string {
	some := slices.Clone(queueNames)
	d.Shuffle(len(some), func(i, k int) { some[i], some[k] = some[k], some[i] })
	return "queues=[" + strings.Join(some[:1+d.IntN(len(some))], ",") + "]"
}

// upstreams draws some of the tasks that work in runs.
func (d *drawing) upstreams() (names []string) {
	for _, t := range d.h.tasks {
		if slices.Contains(t.words, "mode=RUN") && d.maybe(80) {
			names = append(names, t.name+d.one("", "", "~FINISHED"))
		}
	}
	return names
}

// accepted reports whether the options of a task do not contradict each other.
func accepted(t *task) bool {
	s, databases := t.settings, len(t.databases())
	if s.Database == "" {
		databases = 0
	}
	return s.Validate() == nil && t.offers.Check(processor.Needs{
		Runs: s.Mode == center.ModeRun, NotSleep: s.ProcessorType == center.ProcessorNotSleep, Splittable: s.Splittable,
		Databases: databases,
	}) == nil
}

// mayApply reports whether a process that starts may write its settings again, whatever an operator has done: no settings
// would be refused, because another number of queues would lose cursors or because a trigger has the name of a task. The
// oracle does not know of named queues that a process adds.
func (d *drawing) mayApply() bool {
	return !slices.ContainsFunc(d.verbs, func(v *verbs.Verb) bool { return v.Name == "trigger apply" }) &&
		!slices.ContainsFunc(d.h.tasks, func(t taskSpec) bool {
			_, numbered := t.queues()
			return !numbered || t.keepsCursors()
		})
}

// attend draws what an operator does to the newest run of a task, step by step.
func (d *drawing) attend(at time.Duration, task string) {
	for range d.IntN(5) {
		at += d.seconds(0, 8)
		d.step(at, "verb", "run_"+d.one("cancel", "cancel", "ack", "ack", "pause", "resume", "rerun"), "run="+task)
	}
}

// cycle draws runs that would wait for each other. An operator lets each run wait for another one, or submits a run of
// an upstream that is to wait for a run of its dependant. The roster refuses the edge that closes the circle.
func (d *drawing) cycle(at time.Duration) {
	var names []string
	for _, t := range d.h.tasks {
		if slices.Contains(t.words, "mode=RUN") && !slices.Contains(t.words, "other") {
			names = append(names, t.name)
		}
	}
	if len(names) < 2 || d.kinds["clock"] { // set back by months, it would put off a run that begins in 40 s
		return
	}
	d.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] })
	key := d.one(values["key"]...)
	if d.maybe(40) {
		slices.Sort(names) // the first ones have no upstreams
		d.step(at, "verb", "run_submit", "task="+names[1], "key="+key, "not-before=40s")
		d.step(at+d.seconds(0, 8), "verb", "run_submit", "task="+names[0], "key="+key, "after="+names[1])
		return
	}
	for _, name := range names {
		d.step(at, "verb", "run_submit", "task="+name, "key="+key+"c", "not-before=40s")
	}
	at += time.Second
	for i, name := range names {
		d.step(at, "verb", "run_depend", "run="+name, "upstream="+names[(i+1)%len(names)])
		at += d.seconds(0, 4)
	}
}

// otherQueues draws a change of the queues of a task, and often one that takes it back or replaces it, sooner or later
// than it is made.
func (d *drawing) otherQueues(at time.Duration, t taskSpec) {
	var first, second []string
	switch n, numbered := t.queues(); {
	case !numbered:
		first, second = d.otherNames(t)
	case slices.Contains(t.words, "splittable=true") && d.maybe(75):
		first, second = d.otherTotals(t, n)
	default:
		first = []string{"verb", "task_set", "task=" + t.name, "queues=" + d.one(values["total"]...)}
		if d.maybe(15) && !t.keepsCursors() {
			first = []string{"request", t.name, d.one(values["total"]...)}
		}
		second = []string{"verb", "task_set", "task=" + t.name, fmt.Sprintf("queues=%d", n)}
	}
	d.step(at, first...)
	if d.maybe(60) {
		d.step(at+d.seconds(0, 8), second...)
	}
}

// keepsCursors reports whether the cursors of the queues are in a data database: another number is refused then.
func (s taskSpec) keepsCursors() bool {
	t, err := s.task()
	return err == nil && t.offers.Cursored && t.settings.Database != ""
}

// otherNames draws the removal of a named queue, and that somebody adds it again; or the other way round.
func (d *drawing) otherNames(t taskSpec) (first, second []string) {
	queue := "queue=" + d.one(queueNames...)
	first = []string{"verb", "queue_remove", "task=" + t.name, queue}
	second = []string{"verb", "queue_add", "task=" + t.name, queue}
	switch d.IntN(5) {
	case 0:
		return second, first
	case 1:
		return []string{"verb", "task_set", "task=" + t.name, d.someNames()}, second
	}
	return first, second
}

// otherTotals draws a split or a merge of one of n queues, and what takes it back.
func (d *drawing) otherTotals(t taskSpec, n int) (first, second []string) {
	change := func(verb string, total int) []string {
		return []string{"verb", verb, "task=" + t.name, "queue=" + d.one("?0", "?1"), fmt.Sprintf("total=%d", total)}
	}
	first = change("queue_split", n*(2+d.IntN(2)))
	if divisor := 1 + d.IntN(n); n%divisor == 0 && d.maybe(40) {
		first = change("queue_merge", divisor)
	}
	switch d.IntN(3) {
	case 0:
		return first, change("queue_merge", n)
	case 1:
		return first, change("queue_split", n)
	}
	return first, []string{"verb", "task_set", "task=" + t.name, fmt.Sprintf("queues=%d", n)}
}

// queues returns the number of queues of the task, unless they have names.
func (s taskSpec) queues() (n int, numbered bool) {
	for _, word := range s.words {
		if value, found := strings.CutPrefix(word, "queues="); found {
			n, err := strconv.Atoi(value)
			return n, err == nil
		}
	}
	return 0, false
}

// refused are the settings that some dealers contradict: no verb writes them for these, but an edit of the row does.
var refused = sync.OnceValue(func() (list []string) {
	for _, setting := range settings {
		if slices.ContainsFunc(dealers, func(offers string) bool {
			spec := taskSpec{"t0", append(strings.Fields(offers), "queues=1", "database=d0")}
			return spec.accepts("") && !spec.accepts(setting)
		}) {
			list = append(list, setting)
		}
	}
	return list
})

// accepts reports whether a worker with the task accepts a setting.
func (s taskSpec) accepts(setting string) bool {
	with, err := taskSpec{s.name, append(slices.Clone(s.words), strings.Fields(setting)...)}.task()
	return err == nil && accepted(with)
}

// fate draws the fate of an item.
func (d *drawing) fate(t taskSpec) string {
	// Poison dies, and does not stop its queue for good.
	singled := slices.Contains(t.words, "Keyed")
	if slices.Contains(t.words, "Cursored") { // nothing else succeeds in a process that has only this queue
		singled = slices.Contains(t.words, "count_in_outage=true")
	}
	switch {
	case singled && d.kinds["poison"] && d.maybe(60):
		return fatePoison
	case d.kinds["failures"] && d.maybe(60):
		return fateOnce
	case d.kinds["killers"] && d.maybe(40):
		return fateKiller
	}
	return fateFine
}

// stepKind is a kind of steps. A history has at most so many of it. Kinds without a draw are those of items.
type stepKind struct {
	name string
	most int
	draw func(d *drawing, at time.Duration)
}

var stepKinds = []stepKind{
	{"poison", 1, func(*drawing, time.Duration) {}},
	{"failures", 1, func(*drawing, time.Duration) {}},
	{"killers", 2, func(d *drawing, at time.Duration) { d.step(at, "start", d.process()) }},
	{"items", 5, func(d *drawing, at time.Duration) {
		if t := d.taskSpec(); !slices.Contains(t.words, "mode=RUN") {
			words := []string{"items", t.name, fmt.Sprint(1 + d.IntN(40)), d.fate(t)}
			// More dead items than a page has. Where failures do not count in an outage, so much poison is one; it would hold
			// all order keys; and where selects return dead items, they would fill the largest page.
			has := func(word string) bool { return slices.Contains(t.words, word) }
			fits := has("Paged") || has("Discarder") ||
				!slices.ContainsFunc(t.words, func(w string) bool { return strings.HasPrefix(w, "fetch_number") })
			if words[3] == fatePoison && has("count_in_outage=true") && !has("Ordered") && fits && d.maybe(80) {
				words = append(words, eachItem)
			}
			d.step(at, words...)
		}
	}},
	{"kill", 3, func(d *drawing, at time.Duration) {
		p := d.process()
		d.step(at, "kill", p)
		if d.maybe(70) {
			again := []string{"start", p}
			if d.maybe(30) && d.mayApply() {
				again = append(again, applies)
			}
			d.step(at+d.seconds(0, 20), again...)
		}
	}},
	{"leave", 2, func(d *drawing, at time.Duration) {
		p := d.process()
		d.step(at, "leave", p)
		if d.maybe(70) {
			d.step(at+d.seconds(1, 20), "start", p)
		}
	}},
	{"join", 2, func(d *drawing, at time.Duration) { d.step(at, "start", string(rune('e'+d.IntN(2)))) }},
	{"stop", 3, func(d *drawing, at time.Duration) {
		p := d.process()
		d.step(at, "stop", p)
		long := d.seconds(1, 40)
		if d.maybe(20) {
			long = d.seconds(40, 150)
		}
		d.step(at+long, "go", p)
	}},
	{"slow", 2, func(d *drawing, at time.Duration) {
		p := d.process()
		d.step(at, "link", p, fmt.Sprintf("delay=%s", d.seconds(0, 3)))
		d.step(at+d.seconds(5, 30), "link", p, "ok")
	}},
	{"lossy", 3, func(d *drawing, at time.Duration) {
		p := d.process()
		d.step(at, "link", p, fmt.Sprintf("%s=0.%02d", d.one("lose", "reply", "abort"), 1+d.IntN(30)), "delay=100ms")
		d.step(at+d.seconds(5, 40), "link", p, "ok")
	}},
	{"cut", 2, func(d *drawing, at time.Duration) {
		p := d.process()
		d.step(at, "link", p, "cut")
		d.step(at+d.seconds(1, 40), "link", p, "ok")
	}},
	{"clock", 2, func(d *drawing, at time.Duration) {
		by := time.Duration(d.IntN(60)-30) * time.Second
		if d.maybe(40) {
			by = time.Duration(d.IntN(400)-200) * 24 * time.Hour
		}
		d.step(at, "clock", by.String())
		if d.maybe(50) { // it was a mistake
			d.step(at+d.seconds(1, 60), "clock", (-by).String())
		}
	}},
	{"loss", 1, func(d *drawing, at time.Duration) {
		d.step(at, "backup")
		d.step(at+d.seconds(1, 20), "restore")
	}},
	{"data lost", 2, func(d *drawing, at time.Duration) {
		if d.h.data > 0 {
			f := dataName(d.IntN(d.h.data))
			d.step(at, "down", f)
			d.step(at+d.seconds(2, 60), "up", f)
		}
	}},
	{"outage", 2, func(d *drawing, at time.Duration) {
		t := d.taskSpec().name
		d.step(at, "out", t)
		d.step(at+d.seconds(3, 60), "back", t)
	}},
	{"queues", 4, func(d *drawing, at time.Duration) { d.otherQueues(at, d.taskSpec()) }},
	{"submissions", 4, func(d *drawing, at time.Duration) {
		key := d.one(values["key"]...)
		for _, i := range d.Perm(len(d.h.tasks)) { // what runs after several tasks has a run when all of them have it
			t := d.h.tasks[i]
			if !slices.Contains(t.words, "mode=RUN") || len(t.upstreams()) > 0 && d.maybe(85) || d.maybe(10) {
				continue
			}
			words := []string{"verb", "run_submit", "task=" + t.name, "key=" + key}
			if d.maybe(50) {
				words = append(words, "attempts=1")
			}
			if d.maybe(25) {
				words = []string{"submit", t.name, key}
			}
			d.step(at, words...)
			d.attend(at, t.name)
			at += d.seconds(0, 40)
		}
	}},
	{"cycles", 3, func(d *drawing, at time.Duration) { d.cycle(at) }},
	{"edits", 2, func(d *drawing, at time.Duration) {
		t := d.h.tasks[0]
		d.step(at, "edit", t.name, d.edit)
		if d.maybe(60) {
			d.otherQueues(at+d.seconds(1, 30), t)
		}
	}},
	{"verbs", 20, func(d *drawing, at time.Duration) {
		if len(d.verbs) > 0 {
			if words := d.verb(d.verbs[d.IntN(len(d.verbs))]); words != nil {
				d.step(at, words...)
			}
		}
	}},
}

// unplayed are the verbs that no history has, with the reason.
var unplayed = map[string]string{
	"task delete": "the oracle then has no items to expect",
	"task apply":  "it writes what task set writes, from a file",
}

// unplayedFlags are the arguments of verbs that no history has, with the reason.
var unplayedFlags = map[string]string{
	"cron": atTimes, "time-zone": atTimes, "exclude": atTimes, "at": atTimes,
	"error":        "it chooses items as match does",
	"trace-parent": "workers pass it on",
	"examined":     ofEarlier, "changed": ofEarlier, "item retry after": ofEarlier, "item drop after": ofEarlier,
}

const (
	atTimes   = "a history lasts for some minutes"
	ofEarlier = "it says how far an earlier call has come"
)

// values are values of arguments that name nothing.
var values = map[string][]string{
	"total": {"2", "3", "4", "6", "8"}, "weight": {"0", "1", "2", "3"}, "rate-per-second": {"2", "20"},
	"max-in-flight": {"1", "3"}, "key": {"k1", "k2", "k3", "k4"}, "priority": {"0", "5"}, "every": {"7s", "20s"},
	"overlap": {"SKIP", "WAIT"}, "misfire": {"ONE", "SKIP", "ALL"}, "from": {"2000-01-01T00:00:00Z"},
	"to": {"2000-01-01T00:01:00Z"}, "same-work": {"true"}, "parallel": {"1", "2"}, "all": {"true"}, "attempts": {"1", "2"},
	"reverse": {"true", "false"}, "labels": {"zone=x", "zone=y"},
	"graph": {"true"}, "name": {"g1", "g2"}, "queue": queueNames, "parameter": {"p"},
	"force": {"true"}, "wait": {"2s", "10s"}, "rerun-failed": {"true"}, "no-dependants": {"true"}, "params": {"p"},
	"not-before": {"5s", "40s"}, "deadline": {"10s", "60s"}, "start": {"15s"}, "end": {"60s"}, "max-fires": {"1", "3"},
	"misfire-after": {"5s"}, "catchup-max": {"2"}, "jitter": {"2s"}, "state": {"RETRY", "STARTED", "DEAD"},
	"match": {"1"}, "order-key": {"3"},
}

// settings are assignments of the verb task set.
var settings = []string{
	"queues=1", "queues=2", "queues=3", "queues=5", "queues=8", "thread_number=1", "thread_number=4", "fetch_number=5",
	"execute_number=1", "execute_number=5", "max_queues_per_server=2", "max_servers=1", "max_in_flight=2", "splittable=true",
	"splittable=false", "sleep_time_nodata=1s", "judge_dead_interval=20s", "judge_dead_interval=10s", "item_max_attempts=2",
	"require=zone=x", "require=zone=y", "prefer=zone=x", "spread=zone", "balance=LOAD", "balance=QUEUES",
	"on_dead=PASS", "on_dead=HOLD", "processor_type=NOTSLEEP", "processor_type=SLEEP",
}

// setting draws an assignment of the verb task set. words name the task.
func (d *drawing) setting(words []string) string {
	for _, t := range d.h.tasks {
		if _, numbered := t.queues(); !numbered && slices.Contains(words, "task="+t.name) && d.maybe(20) {
			return d.someNames()
		}
	}
	return d.one(settings...)
}

// taskFor draws a task for a verb: one whose queues the verb can change, if there is one.
func (d *drawing) taskFor(v *verbs.Verb) taskSpec {
	suited := slices.DeleteFunc(slices.Clone(d.h.tasks), func(t taskSpec) bool { return !t.suits(v) })
	if len(suited) == 0 {
		return d.taskSpec()
	}
	return suited[d.IntN(len(suited))]
}

// suits reports whether the task has the kind of queues that a verb changes.
func (s taskSpec) suits(v *verbs.Verb) bool {
	_, numbered := s.queues()
	switch v.Name {
	case "queue add", "queue remove":
		return !numbered
	case "queue split", "queue merge":
		return numbered && slices.Contains(s.words, "splittable=true")
	}
	return true
}

// verb draws a call of a verb. Nil: it needs what the drawing does not know.
func (d *drawing) verb(v *verbs.Verb) []string {
	words := []string{"verb", strings.ReplaceAll(v.Name, " ", "_")}
	setting := false
	for _, a := range v.Args {
		of := a.Names
		switch {
		case a.Key != "":
			setting = true
			continue
		case of == "task" || of == "run task":
			words = append(words, a.Name+"="+d.taskFor(v).name)
			continue
		case of == "trigger" && v.Name == "trigger apply":
			words = append(words, a.Name+"="+d.one("t0", "extra"))
			continue
		case strings.HasSuffix(of, "run") && d.maybe(25): // it stands for the newest run of the task, or for all
			words = append(words, a.Name+"="+d.taskSpec().name)
			continue
		case a.Name == "all" && strings.Contains(strings.Join(words, " "), " key="):
			continue // the choice is all or some
		case of != "" && of != "choice":
			if a.Required() || d.maybe(40) {
				words = append(words, fmt.Sprintf("%s=?%d", a.Name, d.IntN(8)))
			}
			continue
		}
		list := values[a.Name]
		always := []string{"total", "from", "to", "every", "same-work", "all", "wait"}
		wanted := a.Required() || slices.Contains(always, a.Name)
		switch {
		case list == nil && a.Required():
			return nil
		case list != nil && (wanted || d.maybe(30)):
			words = append(words, a.Name+"="+d.one(list...))
		}
	}
	if setting {
		words = append(words, d.setting(words))
	}
	return words
}
