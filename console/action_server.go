package console

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/dutyrota/rota/center"
)

// planned is what a change of servers would move in a task type.
type planned struct {
	TaskType  string
	Moved     int // queues that go to another server
	Minimum   int // the fewest possible
	Ownerless int // queues that no other server can take
	Moves     []plannedMove
	Shares    []plannedShare
}

// plannedMove is the queues that go from one server to another.
type plannedMove struct {
	From, To string // uuids; empty: nobody
	Queues   []string
	Reason   string
}

// Shown returns the first of the queues.
func (m plannedMove) Shown() string {
	const most = 20
	if len(m.Queues) <= most {
		return strings.Join(m.Queues, ", ")
	}
	return strings.Join(m.Queues[:most], ", ") + fmt.Sprintf(" and %d more", len(m.Queues)-most)
}

// plannedShare is how many queues a server owns before and after.
type plannedShare struct {
	center.Share
	most int
}

// Before and After are the shares in percent of the greatest one.
func (s plannedShare) Before() float64 { return 100 * float64(s.Queues) / float64(max(1, s.most)) }

// After is as Before.
func (s plannedShare) After() float64 { return 100 * float64(s.Next) / float64(max(1, s.most)) }

// Moved and Minimum count over all task types.
func (c *change) Moved() (n int) {
	for _, p := range c.Plans {
		n += p.Moved
	}
	return n
}

// Minimum is as Moved.
func (c *change) Minimum() (n int) {
	for _, p := range c.Plans {
		n += p.Minimum
	}
	return n
}

// serverVerb is something that people do to servers.
type serverVerb struct {
	title, done, says string
	alone             string // what happens to queues that no other server can take
	scenario          func(uuids []string) center.Scenario
	do                func(ctx context.Context, v *view, uuid, actor string) error
}

func removing(uuids []string) center.Scenario { return center.Scenario{Remove: uuids} }

var (
	drainServer = serverVerb{
		title: "Drain", done: "drains", scenario: removing, alone: "it works on until one can",
		says: "It finishes what it has in flight, then hands over, queue by queue. The process goes on running and owns nothing until somebody resumes it.",
		do: func(ctx context.Context, v *view, uuid, actor string) error {
			_, err := v.center.Servers().Drain(ctx, uuid, false, actor)
			return err
		},
	}
	pauseServer = serverVerb{
		title: "Pause", done: "is paused", scenario: removing, alone: "they wait until one can",
		says: "It finishes what it has in flight, then hands its queues over, until somebody resumes it.",
		do: func(ctx context.Context, v *view, uuid, actor string) error {
			return v.center.Servers().Pause(ctx, uuid, actor)
		},
	}
	resumeServer = serverVerb{
		title: "Resume", done: "is resumed", scenario: func(uuids []string) center.Scenario { return center.Scenario{Resume: uuids} },
		says: "It may own queues again, and gets its share as the others hand over.",
		do: func(ctx context.Context, v *view, uuid, actor string) error {
			return v.center.Servers().Resume(ctx, uuid, actor)
		},
	}
)

func prepareServerDrain(ctx context.Context, v *view, form url.Values) (*change, error) {
	return prepareServers(ctx, v, form, drainServer)
}

func prepareServerPause(ctx context.Context, v *view, form url.Values) (*change, error) {
	return prepareServers(ctx, v, form, pauseServer)
}

func prepareServerResume(ctx context.Context, v *view, form url.Values) (*change, error) {
	return prepareServers(ctx, v, form, resumeServer)
}

// prepareServers shows what a change of servers would move. A name is a uuid, a process or a host. The form hands on the
// uuids: what is done is done to the servers that were shown.
func prepareServers(ctx context.Context, v *view, form url.Values, verb serverVerb) (*change, error) {
	servers, err := v.serversNamed(ctx, form["server"])
	if err != nil {
		return nil, err
	}
	c := &change{Title: verb.title + " " + nameOfServers(servers), Button: verb.title, Says: []string{verb.says}, Back: "servers"}
	byTask := map[string][]string{}
	for _, s := range servers {
		if byTask[s.TaskType] == nil {
			c.TaskTypes = append(c.TaskTypes, s.TaskType)
		}
		byTask[s.TaskType] = append(byTask[s.TaskType], s.UUID)
		c.hide("server", s.UUID)
	}
	for _, taskType := range c.TaskTypes {
		preview, err := v.center.Queues().Plan(ctx, taskType, verb.scenario(byTask[taskType]))
		if err != nil {
			return nil, err
		}
		p := plannedOf(taskType, preview)
		c.Plans = append(c.Plans, p)
		if p.Ownerless > 0 && verb.alone != "" {
			c.Warnings = append(c.Warnings, fmt.Sprintf("No other server can take %s of %s: %s.", plural(p.Ownerless, "queue", "queues"), taskType, verb.alone))
		}
		if waiting := waitingQueues(preview); waiting > 0 {
			c.Warnings = append(c.Warnings, fmt.Sprintf("Not a good moment: %s of %s without a live owner. Once they have owners, fewer move twice.", plural(waiting, "queue is", "queues are"), taskType))
		}
	}
	c.do = func(ctx context.Context, actor string) (string, error) {
		return doToServers(ctx, v, servers, verb, actor)
	}
	return c, nil
}

// serversNamed returns the servers with the names, each once.
func (v *view) serversNamed(ctx context.Context, names []string) (servers []center.ServerRecord, err error) {
	if len(names) == 0 {
		return nil, errMissing("the server")
	}
	all, err := v.center.Servers().List(ctx, center.ServerFilter{})
	if err != nil {
		return nil, err
	}
	has := func(list []center.ServerRecord, uuid string) bool {
		return slices.ContainsFunc(list, func(s center.ServerRecord) bool { return s.UUID == uuid })
	}
	for _, name := range names {
		var matches []center.ServerRecord
		if has(all, name) { // one read is enough for the uuids of a form
			matches = slices.DeleteFunc(slices.Clone(all), func(s center.ServerRecord) bool { return s.UUID != name })
		} else if matches, err = v.center.Servers().Matching(ctx, name); err != nil {
			return nil, err
		}
		for _, s := range matches {
			if !has(servers, s.UUID) {
				servers = append(servers, s)
			}
		}
	}
	return servers, nil
}

// nameOfServers returns the name of a server, of their process, of their host, or their number.
func nameOfServers(servers []center.ServerRecord) string {
	processes, hosts := map[string]bool{}, map[string]bool{}
	for _, s := range servers {
		processes[shortName(s.UUID)], hosts[s.HostName] = true, true
	}
	first := servers[0]
	switch {
	case len(servers) == 1:
		return shortName(first.UUID) + " of " + first.TaskType
	case len(processes) == 1:
		return shortName(first.UUID)
	case len(hosts) == 1:
		return fmt.Sprintf("%s on %s", plural(len(processes), "process", "processes"), first.HostName)
	}
	return plural(len(servers), "server", "servers")
}

// waitingQueues returns how many queues have no live owner.
func waitingQueues(p center.Preview) (n int) {
	for _, s := range p.Shares {
		if s.State == center.StateOverdue {
			n += s.Queues
		}
	}
	return n
}

// plannedOf groups the moves of a preview by servers.
func plannedOf(taskType string, preview center.Preview) planned {
	p := planned{TaskType: taskType, Moved: preview.Moved(), Minimum: preview.Minimum}
	for _, m := range preview.Moves {
		from, to := valueOf(m.CurServer), valueOf(m.NextServer)
		if to == "" {
			p.Ownerless++
		}
		at := slices.IndexFunc(p.Moves, func(g plannedMove) bool { return g.From == from && g.To == to && g.Reason == m.Reason })
		if at < 0 {
			at = len(p.Moves)
			p.Moves = append(p.Moves, plannedMove{From: from, To: to, Reason: m.Reason})
		}
		p.Moves[at].Queues = append(p.Moves[at].Queues, m.QueueID)
	}
	most := 0
	for _, s := range preview.Shares {
		most = max(most, s.Queues, s.Next)
	}
	for _, s := range preview.Shares {
		if s.Queues != s.Next {
			p.Shares = append(p.Shares, plannedShare{s, most})
		}
	}
	return p
}

func valueOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// doToServers changes each of the servers, also after an error of another: a server may leave meanwhile.
func doToServers(ctx context.Context, v *view, servers []center.ServerRecord, verb serverVerb, actor string) (string, error) {
	var done []string
	var errs []error
	for _, s := range servers {
		if err := verb.do(ctx, v, s.UUID, actor); err != nil {
			errs = append(errs, err)
			continue
		}
		done = append(done, fmt.Sprintf("%s (%s) %s", shortName(s.UUID), s.TaskType, verb.done))
	}
	return strings.Join(done, ", "), errors.Join(errs...)
}
