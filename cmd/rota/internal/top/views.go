package top

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/cmd/rota/internal/rostercmd"
	"github.com/dutyrota/rota/cmd/rota/internal/runcmd"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
	"github.com/dutyrota/rota/runs"
)

// scope is what a list is about; everything if it is empty.
type scope struct{ task, server, run string }

func (s scope) String() string {
	switch {
	case s.run != "":
		return "run " + s.run
	case s.server != "":
		return s.server
	}
	return s.task
}

// object is what a row is about. The same object has the same id in each reading of a list.
type object struct {
	id string
	scope
}

// content is what one reading shows: a table, or a text.
type content struct {
	table   *cli.Table
	objects []object // of the rows
	text    func(cli.Screen) string

	note string // what people should know about the list; may be empty
	more bool   // the next reading, which has more, should follow at once
}

// view is a list, or a text about one thing.
type view struct {
	name string
	read func(ctx context.Context, r *reader, s scope) (content, error)

	// into is what the enter key shows of a row. Nil: all columns of the row.
	into *view
}

// The lists. A reading of one of them reads nothing else.
var (
	queues   = &view{name: "queues", read: readQueues}
	aRun     = &view{name: "run", read: readRun}
	tabViews = []*view{
		{name: "tasks", read: readTasks, into: queues},
		{name: "workers", read: readServers, into: queues},
		queues,
		{name: "items", read: readItems},
		{name: "events", read: readEvents},
		{name: "runs", read: readRuns, into: aRun},
		{name: "findings", read: readFindings},
	}
)

// latest is how many items, events and runs a list has at most.
const latest = 1000

// reader reads for a screen. Its methods are called by one goroutine at a time.
type reader struct {
	c *ops.Client

	rates     ops.ItemRates
	rated     time.Time          // the last update of the rates
	perServer map[string]float64 // the rates

	judged doctor.Judgement
	begun  bool // the first list of task types was read, which does not wait for the findings
}

// ratesOf returns the items per second of each server, by uuid. A reading that follows at once says nothing new.
func (r *reader) ratesOf(servers []ops.ServerRecord) map[string]float64 {
	if time.Since(r.rated) >= time.Second {
		r.rated, r.perServer = time.Now(), r.rates.Update(servers)
	}
	return r.perServer
}

// contentOf returns the content that has a row for each record.
func contentOf[T any](records []T, row func(T) cli.Row, about func(T) object) content {
	c := content{table: cli.NewTable(records, row), objects: make([]object, len(records))}
	for i, record := range records {
		c.objects[i] = about(record)
	}
	return c
}

// latestOf returns the content of a list that was read up to a limit, its last record first if it has to be reversed.
func latestOf[T any](records []T, reverse bool, row func(T) cli.Row, about func(T) object) content {
	if reverse {
		slices.Reverse(records)
	}
	c := contentOf(records, row, about)
	if len(records) == latest {
		c.note = "the latest " + human.Number(latest)
	}
	return c
}

// taskLine is a task type with its items per second.
type taskLine struct {
	doctor.JudgedTask
	rate *float64 // of the servers whose rate is known; nil if it is of none
}

func readTasks(ctx context.Context, r *reader, s scope) (content, error) {
	if r.begun {
		r.judged = doctor.Judge(ctx, r.c, s.task, r.judged, doctor.JudgeEvery)
	}
	tasks, err := r.c.Tasks().List(ctx, s.task)
	if err != nil {
		return content{}, err
	}
	servers, err := r.c.Servers().List(ctx, ops.ServerFilter{TaskType: s.task})
	if err != nil {
		return content{}, err
	}
	perTask := map[string]*float64{}
	for _, line := range serverLines(servers, r.ratesOf(servers)) {
		if sum := perTask[line.TaskType]; line.rate != nil {
			if sum == nil {
				sum = new(float64)
			}
			*sum += *line.rate
			perTask[line.TaskType] = sum
		}
	}
	now := time.Now()
	lines := make([]taskLine, len(tasks))
	for i, t := range r.judged.Tasks(tasks, now) {
		lines[i] = taskLine{t, perTask[t.TaskType]}
	}
	c := contentOf(lines, taskRow, func(l taskLine) object { return object{l.TaskType, scope{task: l.TaskType}} })
	c.more, r.begun, c.note = !r.begun, true, r.judged.Verdict(now)
	return c, nil
}

// taskRow is a task type. In contrast to rota task list, a narrow screen has the backlog rather than the states of the
// queues: what is wrong with these is among the problems.
func taskRow(l taskLine) cli.Row {
	row := rostercmd.TaskRow(l.JudgedTask)
	for i, c := range row {
		switch c.Title {
		case "BACKLOG":
			row[i] = c.Drop(1)
		case "OVERDUE", "NO OWNER":
			row[i] = c.Drop(5)
		}
	}
	return append(row, rateCell(l.rate), cli.Figure("FAILED", l.FailureCount).Drop(2))
}

// readServers reads the servers, those of a host one below the other.
func readServers(ctx context.Context, r *reader, s scope) (content, error) {
	servers, err := r.c.Servers().List(ctx, ops.ServerFilter{TaskType: s.task})
	if err != nil {
		return content{}, err
	}
	lines := serverLines(servers, r.ratesOf(servers))
	slices.SortStableFunc(lines, func(a, b serverLine) int {
		return cmp.Or(plan.CompareIDs(a.HostName, b.HostName), plan.CompareIDs(a.UUID, b.UUID))
	})
	return contentOf(lines,
		func(l serverLine) cli.Row {
			row := append(cli.Row{cli.Text("HOST", l.HostName).Once()}, serverRow(l)...)
			for i, c := range row {
				if c.Title == "HEARTBEAT" || c.Title == "IN FLIGHT" {
					row[i] = c.Drop(1)
				}
			}
			return row
		},
		func(l serverLine) object { return object{l.UUID, scope{task: l.TaskType, server: l.UUID}} }), nil
}

func readQueues(ctx context.Context, r *reader, s scope) (content, error) {
	f := ops.QueueFilter{TaskType: s.task}
	if s.server != "" {
		f.Servers = []string{s.server}
	}
	list, err := r.c.Queues().List(ctx, f)
	return contentOf(list, rostercmd.QueueRow, func(q ops.QueueRecord) object {
		o := object{q.TaskType + "\x00" + q.QueueID, scope{task: q.TaskType}}
		if q.CurServer != nil {
			o.server = *q.CurServer
		}
		return o
	}), err
}

func readItems(ctx context.Context, r *reader, s scope) (content, error) {
	list, err := r.c.Items().List(ctx, ops.ItemFilter{TaskType: s.task}, latest)
	return latestOf(list, true, rostercmd.ItemRow, func(i ops.ItemRecord) object {
		return object{i.TaskType + "\x00" + i.ItemKey, scope{task: i.TaskType}}
	}), err
}

func readEvents(ctx context.Context, r *reader, s scope) (content, error) {
	list, err := r.c.Events().List(ctx, ops.EventFilter{TaskType: s.task}, latest)
	return latestOf(list, true, rostercmd.EventRow, func(e ops.EventRecord) object {
		return object{fmt.Sprint(e.EventID), scope{task: e.TaskType}}
	}), err
}

func readRuns(ctx context.Context, r *reader, s scope) (content, error) {
	list, err := r.c.Runs().List(ctx, runs.Filter{TaskType: s.task}, latest)
	return latestOf(list, false, runcmd.RunRow, func(r runs.Record) object {
		return object{r.ID, scope{task: r.TaskType, run: r.ID}}
	}), err
}

// readRun reads what is wrong with a run: its queues, the failed ones first, and the items that failed.
func readRun(ctx context.Context, r *reader, s scope) (content, error) {
	details, err := ops.ReadRunDetails(ctx, r.c, s.run)
	return content{text: func(sc cli.Screen) string { return runcmd.DetailsText(sc, details) }}, err
}

func readFindings(ctx context.Context, r *reader, s scope) (content, error) {
	if r.judged = doctor.Judge(ctx, r.c, s.task, r.judged, 0); r.judged.Err != nil {
		return content{}, r.judged.Err
	}
	list := slices.Clone(r.judged.Findings)
	slices.SortStableFunc(list, func(a, b condition.Condition) int { return cmp.Compare(rank(a), rank(b)) })
	return contentOf(list, findingRow, func(f condition.Condition) object {
		return object{f.Key(), scope{task: f.TaskType, server: f.Server}}
	}), nil
}

// rank orders findings by their status, the problems first.
func rank(f condition.Condition) int {
	return slices.Index([]string{condition.Problem, condition.Note, condition.OK}, f.Status)
}

func findingRow(f condition.Condition) cli.Row {
	return cli.Row{
		cli.State("STATUS", f.Status),
		cli.Text("KIND", f.Kind),
		cli.Text("TASK", cmp.Or(f.TaskType, "-")),
		cli.Long("FINDING", f.Text),
		cli.Long("WHAT TO DO", cmp.Or(f.Hint, "-")).Drop(2),
	}
}
