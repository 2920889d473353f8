package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/records"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

const runHelp = `RUN is the id of a run, or a task type, which stands for its newest run, or the
name of graphs: the newest run with that name.`

// graphHelp is the help of a verb that can do its thing to all runs of a graph.
const graphHelp = `With --graph it is done to all runs that dependencies connect with RUN, in one
transaction: to all of them or to none. --dry-run lists them. A run that gets
into the graph later is not changed.

` + runHelp

// Reach says to which runs a verb does its thing.
type Reach struct {
	Graph bool `flag:"graph" json:"-" help:"all runs that dependencies connect with it, in one transaction"`
}

func runExample(verb string) string {
	return fmt.Sprintf("  rota run %[1]s reindex\n  rota run %[1]s 019aa3c5-7f8e-7c31-b9a0-5d0e6a1f2b3c", verb)
}

// SubmitRun makes a run of a task type.
type SubmitRun struct {
	TaskType  string   `arg:"TASK" of:"run task" json:"-"`
	Key       string   `flag:"key" of:"choice" ask:"yes" json:"-" help:"there is one run per key; without a key each call makes a run"`
	Params    string   `flag:"params" json:"-" long:"yes" help:"parameters for the dealer: any text, such as JSON"`
	Name      string   `flag:"name" json:"-" help:"name of the graph: the dependants have it, too; left out: that of the runs in --after"`
	After     []string `flag:"after" of:"run" form:"-" json:"-" help:"run to wait for, by its id or its task type; repeatable"`
	Priority  int      `flag:"priority" json:"-" help:"the highest priority is opened first"`
	NotBefore string   `flag:"not-before" json:"-" help:"time before which the run does not start, or a duration from now"`
	Deadline  string   `flag:"deadline" json:"-" help:"time at which the run fails if it has not ended, or a duration from now"`
	Attempts  int      `flag:"attempts" json:"-" help:"attempts of each queue; 0 is the setting queue_max_attempts"`

	TraceParent string `flag:"trace-parent" form:"-" json:"-" help:"traceparent of the caller, to which the spans of the run lead"`
}

var submitRun = verb[SubmitRun](Verb{
	Name: "run submit", Right: RightOperate,
	Short: "Submit a run of a task type and print its id",
	Help: `Submit a run of a task type of mode RUN, and of everything that runs after it,
and print its id. There is one run per key: submitting the key again prints the
id of the first run, and starts it if it was SKIPPED. A run starts when no other
run of its task type is RUNNING and, with --after, when the named runs have
succeeded. A submitted run is never skipped. A task type that runs after several
ones has its run when a run of the same key is submitted for each of them.

A time is in RFC 3339.

With --wait the exit code is 0 if the run succeeds, as with "rota run wait".`,
	Example: `  rota run submit reindex
  rota run submit reindex --key 2026-11-21 --params '{"full": true}' --wait
  rota run submit report --after $(rota run submit reindex --name rebuild)
  rota run submit import --priority 5 --not-before 2h --deadline 8h --attempts 1`,
})

// Prepare implements Operation.
func (a SubmitRun) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	t, err := readTask(ctx, c, a.TaskType)
	if err == nil && t.Mode != center.ModeRun {
		err = fmt.Errorf("submit %s: %w", t.TaskType, runs.ErrNoRuns)
	}
	if err != nil {
		return nil, err
	}
	change := &Change{Title: "Submit a run of " + t.TaskType, TaskTypes: []string{t.TaskType}}
	ask, err := a.submission()
	if err == nil {
		err = ask.Validate()
	}
	if err != nil {
		return change, err
	}
	for _, name := range a.After {
		r, err := c.Runs().Find(ctx, name)
		if err != nil {
			return nil, err
		}
		ask.After = append(ask.After, r.ID)
	}
	change.Says = []string{"The runs that depend on it are made with it. It begins when no other run of " + t.TaskType +
		" is running."}
	if ask.Key != "" {
		change.Says = append(change.Says, "The key is "+ask.Key+".")
	}
	if !ask.NotBefore.IsZero() {
		change.Says = append(change.Says, "It does not start before "+ask.NotBefore.UTC().Format(time.RFC3339)+".")
	}
	if !ask.EndBefore.IsZero() {
		change.Says = append(change.Says, "It fails if it has not ended by "+ask.EndBefore.UTC().Format(time.RFC3339)+".")
	}
	if t.Paused {
		change.Warnings = []string{t.TaskType + " is paused: the run waits until somebody resumes it."}
	}
	change.Exact = a.exact(ask)
	change.Objects = []Object{{
		Name: "a run of " + inEnvironment(c, t.TaskType), Past: "submitted",
		do: func(ctx context.Context, actor string) (Done, error) {
			ask.Actor = actor
			id, existed, err := c.Runs().Submit(ctx, t.TaskType, ask)
			done := Done{ID: id, Record: records.Object{records.M("run_id", id), records.M("existed", existed)}}
			if existed {
				done.Note = "a run of key " + a.Key + " exists already"
			}
			return done, err
		},
	}}
	return change, a.existing(ctx, c, change)
}

// exact returns the arguments with a key, so that it makes one run also if it is done twice, and with the times that
// were read.
func (a SubmitRun) exact(read runs.Submission) SubmitRun {
	a.Key = cmp.Or(a.Key, uuid.NewString())
	a.NotBefore, a.Deadline = timeText(read.NotBefore), timeText(read.EndBefore)
	return a
}

// existing lets the change say what becomes of the run that the key has already.
func (a SubmitRun) existing(ctx context.Context, c *ops.Client, change *Change) error {
	if a.Key == "" {
		return nil
	}
	list, err := c.Runs().List(ctx, runs.Filter{TaskType: a.TaskType, Key: a.Key}, 1)
	for _, r := range list {
		o := &change.Objects[0]
		change.Says = nil
		o.Name = "run " + r.ID + " of " + inEnvironment(c, a.TaskType) + ", which has the key already"
		o.Past = "left as it is, " + r.State
		if r.State == runs.Skipped {
			o.Past = "started, since it was " + r.State
		}
	}
	return err
}

// submission reads the values. A duration is added to this computer's clock, because its user looks at that clock.
func (a SubmitRun) submission() (s runs.Submission, err error) {
	s = runs.Submission{
		Key: a.Key, Name: a.Name, Params: a.Params, TraceParent: a.TraceParent, Priority: a.Priority, MaxAttempts: a.Attempts,
	}
	var early, late error
	s.NotBefore, early = timeFrom("not-before", a.NotBefore)
	s.EndBefore, late = timeFrom("deadline", a.Deadline)
	return s, errors.Join(early, late)
}

// timeFrom reads a time in RFC 3339, or a duration from now on. An empty text is the zero time.
func timeFrom(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return time.Now().Add(d), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s (%q) must be a time such as 2026-08-01T12:00:00Z, or a duration such as 90m", name,
			text)
	}
	return at, nil
}

// CancelRun ends an open run.
type CancelRun struct {
	Run string `arg:"RUN" of:"open run" json:"-"`
	Reach
}

var cancelRun = verb[CancelRun](Verb{
	Name: "run cancel", Right: RightOperate,
	Short: "Cancel an open run",
	Effect: "It ends at once. Workers at work on it stop within two seconds; what they have started may still take " +
		"effect. Runs that need its success fail. A rerun goes on where it was.",
	Help:    graphHelp,
	Example: runExample("cancel"),
})

// Prepare implements Operation.
func (a CancelRun) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	return a.change(ctx, c, a.Run, runVerb{
		Verb: cancelRun, past: "cancelled", one: (*runs.Runs).Cancel, all: (*runs.Runs).CancelGraph,
	})
}

// RerunRun lets a run go on that failed or was cancelled or skipped.
type RerunRun struct {
	Run string `arg:"RUN" of:"ended run" json:"-"`
	Reach
}

var rerunRun = verb[RerunRun](Verb{
	Name: "run rerun", Right: RightOperate,
	Short: "Rerun what a failed, cancelled or skipped run has not done",
	Effect: "Its failed and cancelled queues run again, each from its current position. Queues that are done stay " +
		"done. A run that was SKIPPED starts when no other run of its task type is RUNNING. The runs that failed or were " +
		"skipped because of it wait for it again.",
	Help:    graphHelp,
	Example: runExample("rerun"),
})

// Prepare implements Operation.
func (a RerunRun) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	change, err := a.change(ctx, c, a.Run, runVerb{
		Verb: rerunRun, past: "reopened", effect: "the queues that were not done run again",
		one: func(rs *runs.Runs, ctx context.Context, id, actor string) error { return rerunOne(ctx, rs, id, actor) },
		all: (*runs.Runs).RerunGraph,
	})
	if err == nil && !a.Graph {
		change.Warnings, err = failedUpstreams(ctx, c, change.Objects[0].ID)
	}
	return change, err
}

// rerunOne reruns a run. It returns an error if the run has ended again at once, because an upstream has not succeeded.
func rerunOne(ctx context.Context, rs *runs.Runs, id, actor string) error {
	if err := rs.Rerun(ctx, id, actor); err != nil {
		return err
	}
	r, err := rs.Get(ctx, id)
	if err != nil || r.State != runs.DependentFailed && r.State != runs.Skipped {
		return nil // the rerun is committed, although it may not be known what became of it
	}
	return fmt.Errorf("rerun run %s: it is %s again: %s; rerun that one first, or the graph (--graph)", id, r.State,
		r.Message)
}

// failedUpstreams returns a warning for each upstream that has failed: the rerun of the run fails at once, too.
func failedUpstreams(ctx context.Context, c *ops.Client, id string) (warnings []string, err error) {
	g, err := ops.ReadRunGraph(ctx, c, id)
	if err != nil && !errors.Is(err, runs.ErrGraphTooLarge) { // it has the upstreams all the same
		return nil, err
	}
	upstreams := g.Upstreams()[id]
	for _, r := range g.Runs {
		if upstreams[r.ID] == runs.RuleSuccess && r.Ended() && r.State != runs.Success {
			warnings = append(warnings, nameOfRun(r)+" is "+r.State+": the run fails again at once.")
		}
	}
	return warnings, nil
}

// PauseRun stops the sweeps of an open run.
type PauseRun struct {
	Run string `arg:"RUN" of:"open run" json:"-"`
	Reach
}

var pauseRun = verb[PauseRun](Verb{
	Name: "run pause", Right: RightOperate,
	Short: "Pause an open run",
	Effect: "It is not opened, no worker takes its queues, and those at work stop in between two batches, until " +
		"somebody resumes it. Its deadline does not change.",
	Help:    graphHelp,
	Example: runExample("pause"),
})

// Prepare implements Operation.
func (a PauseRun) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	return a.change(ctx, c, a.Run, runVerb{
		Verb: pauseRun, past: "paused", effect: "its sweeps stop", one: pausing[*runs.Runs](true), all: pausingGraph(true),
	})
}

// ResumeRun ends the pause of a run.
type ResumeRun struct {
	Run string `arg:"RUN" of:"paused run" json:"-"`
	Reach
}

var resumeRun = verb[ResumeRun](Verb{
	Name: "run resume", Right: RightOperate,
	Short:   "Resume a paused run",
	Effect:  "Each of its queues goes on from its current position.",
	Help:    graphHelp,
	Example: runExample("resume"),
})

// Prepare implements Operation.
func (a ResumeRun) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	return a.change(ctx, c, a.Run, runVerb{
		Verb: resumeRun, past: "resumed", one: pausing[*runs.Runs](false), all: pausingGraph(false),
	})
}

// DependRun makes a run that waits also wait for another one.
type DependRun struct {
	Run      string `arg:"RUN" of:"open run" json:"-"`
	Upstream string `arg:"UPSTREAM" of:"run" ask:"yes" json:"-" help:"its id, or a task type, which stands for its newest run"`
}

var dependRun = verb[DependRun](Verb{
	Name: "run depend", Right: RightOperate,
	Short: "Make a run that has not begun wait for another one",
	Effect: "It begins when the other run has succeeded, too. If the other run does not succeed, it fails. If the other " +
		"run has ended already, this holds at once.",
	Help: `The run must be WAITING or READY. A run that would then wait for itself,
directly or through others, is refused, and the error names the way.

RUN and UPSTREAM are ids of runs, or task types, which stand for their newest
runs.`,
	Example: `  rota run depend report 019aa3c5-7f8e-7c31-b9a0-5d0e6a1f2b3c`,
})

// Prepare implements Operation.
func (a DependRun) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	if a.Run == "" {
		return nil, missing("the run")
	}
	r, err := c.Runs().Find(ctx, a.Run)
	if err != nil {
		return nil, err
	}
	var up runs.Record
	change := runVerb{
		Verb: dependRun, past: "made to wait for another",
		one: func(rs *runs.Runs, ctx context.Context, id, actor string) error {
			return rs.Depend(ctx, id, up.ID, actor)
		},
	}.change(c, r, "")
	change.Title = fmt.Sprintf("Let run %s of %s wait for another run", r.Key, r.TaskType)
	if a.Upstream == "" {
		return change, missing("the run to wait for")
	}
	if up, err = c.Runs().Find(ctx, a.Upstream); err != nil {
		change.Reads = []string{""} // the error tells what there is
		return change, err
	}
	change.Title = fmt.Sprintf("Let run %s of %s wait for run %s of %s", r.Key, r.TaskType, up.Key, up.TaskType)
	change.Objects[0].Past, change.Reads = "made to wait for "+nameOfRun(up.Run), []string{up.TaskType}
	change.Exact = DependRun{Run: r.ID, Upstream: up.ID}
	if err := c.Runs().CheckDepend(ctx, r.ID, up.ID); err != nil {
		return nil, err
	}
	state := nameOfRun(up.Run) + " is " + up.DisplayState()
	if up.Ended() && up.State != runs.Success {
		change.Warnings = []string{state + ": the run fails at once."}
	} else {
		change.Says = append(change.Says, "The other "+state+".")
	}
	return change, nil
}

// AckRun acknowledges a failed run, or all failed runs and missed slots of a task type.
type AckRun struct {
	Run string `arg:"RUN" of:"failed run" json:"-"`
}

var ackRun = verb[AckRun](Verb{
	Name: "run ack", Right: RightOperate,
	Short: "Acknowledge failed runs, missed and skipped slots",
	Effect: "The failure, the earlier failures of the same trigger or backfill, and the runs that failed because of " +
		"this run are no problems any more: doctor does not count them, and their alerts are not repeated. The next run " +
		"that fails is a problem again.",
	Help: `RUN is the id of a failed run, or a task type, which stands for all its failed
and cancelled runs and the missed and skipped slots of its triggers.`,
	Example: `  rota run ack reindex
  rota run ack 019aa3c5-7f8e-7c31-b9a0-5d0e6a1f2b3c`,
})

// Prepare implements Operation.
func (a AckRun) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	if a.Run == "" {
		return nil, missing("the run")
	}
	r, err := c.Runs().Find(ctx, a.Run)
	if err == nil && r.TaskType != a.Run {
		v := runVerb{Verb: ackRun, past: "acknowledged", one: (*runs.Runs).Ack}
		if err := v.check(r.Run); err != nil {
			return nil, err
		}
		return v.change(c, r, "Acknowledge the failure of"), nil
	}
	if err != nil && !errors.Is(err, runs.ErrNoRunYet) { // a slot may be missed before the first run
		return nil, err
	}
	taskType := a.Run
	if _, err := c.Runs().Acknowledgeable(ctx, taskType); err != nil {
		return nil, err
	}
	return &Change{
		Title: "Acknowledge the problems of " + taskType, TaskTypes: []string{taskType},
		Says: []string{"Its failed runs, and the missed and skipped slots of its triggers, are no problem any more. The " +
			"next run that fails is a problem again."},
		Objects: []Object{{
			Name: inEnvironment(c, taskType), Past: "acknowledged",
			do: func(ctx context.Context, actor string) (Done, error) {
				problems, err := c.Runs().AckTask(ctx, taskType, actor)
				return Done{Text: acknowledged(problems)}, err
			},
		}},
	}, nil
}

func acknowledged(problems []runs.Problem) string {
	var failed int64
	triggers := map[string]bool{} // one may have missed slots, and skipped others
	for _, p := range problems {
		if p.RunID != "" {
			failed += p.Count
		} else {
			triggers[p.Trigger] = true
		}
	}
	return fmt.Sprintf("acknowledged %s, and missed or skipped slots of %s", human.Count(failed, "run", "runs"),
		human.Count(len(triggers), "trigger", "triggers"))
}

// pausingGraph returns the method that begins or ends the pause of a graph.
func pausingGraph(paused bool) func(*runs.Runs, context.Context, string, string) ([]string, error) {
	return func(rs *runs.Runs, ctx context.Context, id, actor string) ([]string, error) {
		return rs.SetGraphPaused(ctx, id, paused, actor)
	}
}

// pausing returns the method of runs or backfills that begins or ends a pause.
func pausing[T interface {
	SetPaused(ctx context.Context, id string, paused bool, actor string) error
}](paused bool) func(of T, ctx context.Context, id, actor string) error {
	return func(of T, ctx context.Context, id, actor string) error { return of.SetPaused(ctx, id, paused, actor) }
}

// runVerb is what a verb does to a run, or to all runs of its graph.
type runVerb struct {
	*Verb
	past, effect string
	one          func(rs *runs.Runs, ctx context.Context, id, actor string) error
	all          func(rs *runs.Runs, ctx context.Context, id, actor string) ([]string, error)
}

// graphVerbs says, by the name of a verb that can change all runs of a graph, which of them it changes.
var graphVerbs = map[string]func(runs.Run) bool{
	"run pause":  func(r runs.Run) bool { return !r.Ended() && !r.Paused },
	"run resume": func(r runs.Run) bool { return !r.Ended() && r.Paused },
	"run cancel": func(r runs.Run) bool { return !r.Ended() },
	"run rerun":  func(r runs.Run) bool { return r.Ended() && r.State != runs.Success },
}

// ForGraph returns the verbs that change at least one run of a graph.
func ForGraph(g ops.RunGraph) (list []*Verb) {
	for _, v := range all {
		if fits := graphVerbs[v.Name]; fits != nil && slices.ContainsFunc(g.Runs, fits) {
			list = append(list, v)
		}
	}
	return list
}

// change returns the change of the run with an id, or of the newest run of a task type, or of its graph.
func (a Reach) change(ctx context.Context, c *ops.Client, name string, v runVerb) (*Change, error) {
	if name == "" {
		return nil, missing("the run")
	}
	r, err := c.Runs().Find(ctx, name)
	if err != nil {
		return nil, err
	}
	if a.Graph {
		return v.graphChange(ctx, c, r)
	}
	if err := v.check(r.Run); err != nil {
		return nil, err
	}
	return v.change(c, r, v.Button()), nil
}

// check returns runs.ErrRunState if the verb would be refused for a run in its state.
func (v runVerb) check(r runs.Run) error {
	fits := !r.Ended()
	switch v.Verb {
	case rerunRun:
		fits = r.Ended() && r.State != runs.Success
	case ackRun:
		fits = r.Ended() && r.State != runs.Success && r.State != runs.Skipped
	}
	if fits {
		return nil
	}
	return fmt.Errorf("%s %s: %w: it is %s", v.Word(), nameOfRun(r), runs.ErrRunState, r.State)
}

func (v runVerb) change(c *ops.Client, r runs.Record, title string) *Change {
	return &Change{
		Title: fmt.Sprintf("%s run %s of %s", title, r.Key, r.TaskType), TaskTypes: []string{r.TaskType},
		Says: []string{v.Effect}, Objects: []Object{v.object(c, r.Run)},
	}
}

func (v runVerb) object(c *ops.Client, r runs.Run) Object {
	return Object{
		ID: r.ID, Name: nameOfRun(r), Past: v.past, Effect: v.effect,
		do: done(func(ctx context.Context, actor string) error { return v.one(c.Runs(), ctx, r.ID, actor) }),
	}
}

// graphChange returns the change of all runs of a graph.
func (v runVerb) graphChange(ctx context.Context, c *ops.Client, r runs.Record) (*Change, error) {
	g, err := ops.ReadRunGraph(ctx, c, r.ID)
	if err != nil {
		return nil, err
	}
	change := &Change{List: true}
	fit := 0
	for _, of := range g.Sorted() {
		o := v.object(c, of)
		if graphVerbs[v.Name](of) {
			fit++
			change.TaskTypes = append(change.TaskTypes, of.TaskType)
		} else {
			o.do, o.Effect = nil, "it is "+of.DisplayState()
		}
		change.Objects = append(change.Objects, o)
	}
	change.Title = fmt.Sprintf("%s %d of %s in the graph of run %s of %s", v.Button(), fit,
		human.Count(len(g.Runs), "run", "runs"), r.Key, r.TaskType)
	if fit == 0 {
		change.TaskTypes = []string{r.TaskType}
	}
	change.Says = []string{"All of them are changed in one transaction, or none is. Of each run: " + v.Effect}
	change.all = func(ctx context.Context, actor string) ([]string, error) { return v.all(c.Runs(), ctx, r.ID, actor) }
	return change, nil
}

func nameOfRun(r runs.Run) string { return fmt.Sprintf("run %s (%s)", r.ID, r.TaskType) }
