package verbs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

const serverHelp = `WORKER is a uuid; host:pid, which stands for all workers of that process; or a
host, which stands for all workers of that host. The command prints what
happens to each of them.`

// ServerChange is a server that a verb changes, as programs read it.
type ServerChange struct {
	UUID         string `json:"uuid"`
	TaskType     string `json:"task_type"`
	OwnSign      string `json:"own_sign"`
	Queues       int64  `json:"queues"`        // that it owned
	OtherServers int    `json:"other_servers"` // that get some of them
}

// PauseServers stops servers: they hand their queues over.
type PauseServers struct {
	Servers []string `arg:"WORKER" of:"worker"`
}

var pauseServers = verb[PauseServers](Verb{
	Name: "worker pause", Right: RightOperate,
	Short: "Pause a worker: it hands its queues over to other workers",
	Effect: "It finishes what it has in flight first, and owns no queue until somebody resumes it. While there is no " +
		"other worker, its queues wait.",
	Help:    serverHelp,
	Example: "  rota worker pause web1:4711\n  rota worker pause web1 --dry-run         all workers of a host",
})

// Prepare implements Operation.
func (a PauseServers) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	return serverVerb{
		Verb: pauseServers, past: "paused", scenario: draining,
		effect: func(f future) string { return f.handOver("they wait for one") },
		do: func(ctx context.Context, uuid, actor string) error {
			return c.Roster().Operator(actor).PauseServer(ctx, uuid, true)
		},
	}.prepare(ctx, c, a.Servers)
}

// ResumeServers lets paused or drained servers own queues again.
type ResumeServers struct {
	Servers []string `arg:"WORKER" of:"worker"`
}

var resumeServers = verb[ResumeServers](Verb{
	Name: "worker resume", Right: RightOperate,
	Short:   "Resume a paused or drained worker: it may own queues again",
	Effect:  "It gets its share of the queues as the others hand over.",
	Help:    serverHelp,
	Example: "  rota worker resume web1:4711",
})

// Prepare implements Operation.
func (a ResumeServers) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	return serverVerb{
		Verb: resumeServers, past: "resumed",
		scenario: func(uuids []string) ops.Scenario { return ops.Scenario{Resume: uuids} },
		effect:   func(future) string { return "it may own queues again" },
		do: func(ctx context.Context, uuid, actor string) error {
			return c.Roster().Operator(actor).PauseServer(ctx, uuid, false)
		},
	}.prepare(ctx, c, a.Servers)
}

// DrainServers moves all queues away from servers until they are resumed.
type DrainServers struct {
	Servers []string      `arg:"WORKER" of:"worker"`
	Force   bool          `flag:"force" form:"-" help:"do not wait for what is in flight, except for fenced transactions"`
	Wait    time.Duration `flag:"wait" form:"-" default:"30s" help:"with --force: how long to wait for the fenced transactions of each worker"`
}

var drainServers = verb[DrainServers](Verb{
	Name: "worker drain", Right: RightOperate,
	Short: "Move all queues away from a worker until it is resumed",
	Effect: "It hands over each queue as soon as nothing of it is in flight. The process goes on running and owns no " +
		"queue until somebody resumes it. While there is no other worker, it continues to work.",
	Help: `With --force the queues move at once. When the worker notices, it cancels what
it has in flight. The fence rejects its late writes in fenced transactions;
other effects, such as e-mails, cannot be undone. A queue in a fenced
transaction moves when that transaction ends. The command waits for it as long
as --wait says, and then fails and names the queues that are left. It does not
see transactions in data databases: there the next owner waits for them.

` + serverHelp,
	Example: `  rota worker drain web1:4711 && rota task wait settle
  rota worker drain web1:4711 --force
  rota worker drain web1 --dry-run         all workers of a host`,
})

// Prepare implements Operation.
func (a DrainServers) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	v := serverVerb{
		Verb: drainServers, past: "drained", scenario: draining,
		effect: func(f future) string { return f.handOver("it works on until one can") },
		do: func(ctx context.Context, uuid, actor string) error {
			_, err := c.Roster().Operator(actor).DrainServer(ctx, uuid, false)
			return err
		},
	}
	if a.Force {
		v.effect = future.loseAll
		v.scenario = func(uuids []string) ops.Scenario { return ops.Scenario{Remove: uuids} }
		v.do = func(ctx context.Context, uuid, actor string) error { return a.force(ctx, c, uuid, actor) }
	}
	change, err := v.prepare(ctx, c, a.Servers)
	if err != nil || !a.Force {
		return change, err
	}
	change.Says = []string{"Its queues move at once. It cancels what it has in flight when it notices."}
	for _, taskType := range change.TaskTypes {
		databases, err := databasesOf(ctx, c, taskType)
		if err != nil {
			return nil, err
		}
		if len(databases) > 0 {
			change.Warnings = append(change.Warnings, fmt.Sprintf("The items of %s are in %s. There the fence rejects its late "+
				"writes only when the next owner of a queue begins.", taskType, listDatabases(databases)))
		}
	}
	return change, nil
}

func (a DrainServers) force(ctx context.Context, c *ops.Client, uuid, actor string) error {
	held, err := c.Roster().Operator(actor).ForceDrainServer(ctx, uuid, a.Wait)
	if err == nil && len(held) > 0 {
		err = fmt.Errorf("drain worker %s: after %s, a transaction of the worker still locks the rows of queues %s: "+
			"end the process, or its session in the database, then drain again",
			uuid, a.Wait, strings.Join(held, ", "))
	}
	return err
}

// WeighServers gives servers more or fewer queues than others.
type WeighServers struct {
	Servers []string `arg:"WORKER" of:"worker"`
	Weight  string   `arg:"WEIGHT" help:"its part of the queues in proportion to those of the others: 1 unless the worker says otherwise"`
}

var weighServers = verb[WeighServers](Verb{
	Name: "worker weight", Right: RightOperate,
	Short: "Give a worker more or fewer queues than others",
	Effect: "The workers of a task type own queues in proportion to their weights, within one queue. A worker of " +
		"weight 0 owns only queues that no other worker may own, or has room for. If all have weight 0, they count " +
		"alike. The weight holds until the worker leaves.",
	Help: `When its process joins again, it has the weight of its settings, which is 1 if
they say nothing (rota worker --weight). rota plan TASK --weight WORKER=WEIGHT
shows which queues would move.

` + serverHelp,
	Example: "  rota worker weight web1 3                 all workers of a host\n  rota worker weight web1:4711 0",
})

// Prepare implements Operation.
func (a WeighServers) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	weight, invalid := ParseWeight(a.Weight)
	change, err := serverVerb{
		Verb: weighServers, past: fmt.Sprintf("given weight %d", weight),
		scenario: func(uuids []string) ops.Scenario {
			s := ops.Scenario{Weights: map[string]int{}}
			for _, uuid := range uuids {
				s.Weights[uuid] = weight
			}
			return s
		},
		effect: func(f future) string { return f.weigh(weight) },
		do: func(ctx context.Context, uuid, actor string) error {
			return c.Roster().Operator(actor).SetWeight(ctx, uuid, weight)
		},
	}.prepare(ctx, c, a.Servers)
	if err == nil && invalid != nil {
		change.Scenarios, change.Objects, err = nil, nil, invalid
	}
	return change, err
}

// ParseWeight parses the weight of a server.
func ParseWeight(text string) (int, error) {
	if text == "" {
		return 0, missing("the weight")
	}
	weight, err := strconv.Atoi(text)
	if err != nil || roster.CheckWeight(weight) != nil {
		return 0, fmt.Errorf("weight (%s) must be a whole number from 0 to %d", text, ops.MaxWeight)
	}
	return weight, nil
}

func draining(uuids []string) ops.Scenario { return ops.Scenario{Drain: uuids} }

// serverVerb is what the verbs about servers do not share.
type serverVerb struct {
	*Verb
	past     string
	scenario func(uuids []string) ops.Scenario
	effect   func(future) string
	do       func(ctx context.Context, uuid, actor string) error
}

// prepare returns the change of the servers with the names, each once.
func (v serverVerb) prepare(ctx context.Context, c *ops.Client, names []string) (*Change, error) {
	servers, err := readServers(ctx, c, names)
	if err != nil {
		return nil, err
	}
	change := &Change{
		Title: v.Button() + " " + nameServers(servers), Says: []string{v.Effect}, Scenarios: map[string]ops.Scenario{},
	}
	uuids := map[string][]string{}
	for _, s := range servers {
		if uuids[s.TaskType] == nil {
			change.TaskTypes = append(change.TaskTypes, s.TaskType)
		}
		uuids[s.TaskType] = append(uuids[s.TaskType], s.UUID)
	}
	moves := map[string][]ops.Move{}
	for taskType, list := range uuids {
		change.Scenarios[taskType] = v.scenario(list)
		preview, err := c.Queues().Plan(ctx, taskType, change.Scenarios[taskType])
		if err != nil {
			return nil, err
		}
		moves[taskType] = preview.Moves
	}
	for _, s := range servers {
		f := newFuture(s, moves[s.TaskType])
		change.Objects = append(change.Objects, Object{
			ID: s.UUID, Name: fmt.Sprintf("%s (%s)", s.UUID, s.TaskType), Past: v.past, Effect: v.effect(f),
			Record: ServerChange{s.UUID, s.TaskType, s.OwnSign, s.Queues, f.others},
			do:     done(func(ctx context.Context, actor string) error { return v.do(ctx, s.UUID, actor) }),
		})
	}
	return change, nil
}

// future is a server that is about to change.
type future struct {
	ops.ServerRecord
	going  int64 // number of its queues that other servers get
	others int   // number of these servers
}

func newFuture(s ops.ServerRecord, moves []ops.Move) future {
	f, others := future{ServerRecord: s}, map[string]bool{}
	for _, m := range moves {
		if m.CurServer != nil && *m.CurServer == s.UUID && m.NextServer != nil {
			f.going++
			others[*m.NextServer] = true
		}
	}
	f.others = len(others)
	return f
}

// readServers returns the servers with the names, each once, in the order of the list. A name is a uuid, a process or a
// host.
func readServers(ctx context.Context, c *ops.Client, names []string) (servers []ops.ServerRecord, err error) {
	if len(names) == 0 {
		return nil, missing("the worker")
	}
	chosen := map[string]bool{}
	for _, name := range names {
		matches, err := c.Servers().Matching(ctx, name)
		if err != nil {
			return nil, err
		}
		for _, s := range matches {
			if !chosen[s.UUID] {
				chosen[s.UUID], servers = true, append(servers, s)
			}
		}
	}
	return servers, nil
}

// nameServers names a server, their process, their host, or their number.
func nameServers(servers []ops.ServerRecord) string {
	var processes, hosts []string
	for _, s := range servers {
		processes, hosts = append(processes, ops.ServerName(s.UUID)), append(hosts, s.HostName)
	}
	slices.Sort(processes)
	slices.Sort(hosts)
	processes, hosts = slices.Compact(processes), slices.Compact(hosts)
	switch {
	case len(servers) == 1:
		return processes[0] + " of " + servers[0].TaskType
	case len(processes) == 1:
		return processes[0]
	case len(hosts) == 1:
		return human.Count(len(processes), "process", "processes") + " on " + hosts[0]
	}
	return human.Count(len(servers), "worker", "workers")
}

// handOver says where a server that hands its queues over in order sends them. otherwise says what happens to those
// that no other server can take.
func (f future) handOver(otherwise string) string {
	switch {
	case f.Queues == 0:
		return "it owns no queues, and gets none until it is resumed"
	case f.going == 0:
		return fmt.Sprintf("no other worker can take its %s now: %s", human.Count(f.Queues, "queue", "queues"), otherwise)
	}
	text := f.goes() + " as it finishes what it has in flight"
	if f.going < f.Queues {
		text += "; no other worker can take the rest now: " + otherwise
	}
	return text
}

// goes says that queues go to other servers.
func (f future) goes() string {
	to := "other workers"
	if f.others == 1 {
		to = "1 other worker"
	}
	queues := "its " + human.Count(f.going, "queue goes", "queues go")
	if f.going < f.Queues {
		queues = fmt.Sprintf("%d of %s", f.going, "its "+human.Count(f.Queues, "queue goes", "queues go"))
	}
	return queues + " to " + to
}

// loseAll says where the queues go that are taken from a server by force.
func (f future) loseAll() string {
	const unowned = "no owner until another worker can take over"
	switch {
	case f.Queues == 0:
		return f.handOver("")
	case f.going == 0:
		return fmt.Sprintf("its %s %s", human.Count(f.Queues, "queue has", "queues have"), unowned)
	case f.going < f.Queues:
		return f.goes() + " at once; the rest has " + unowned
	}
	return f.goes() + " at once"
}

func (f future) weigh(weight int) string {
	switch {
	case int64(weight) == f.Weight:
		return "it had that before"
	case weight > 0:
		return fmt.Sprintf("it had weight %d and owns %s", f.Weight, human.Count(f.Queues, "queue", "queues"))
	case f.Queues == 0:
		return "it owns no queues, and gets only those that no other worker may own"
	}
	return f.handOver("it keeps them")
}
