package console

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/dutyrota/rota/ops"
)

// serversPage is the page of all servers, by host and process.
type serversPage struct {
	Query, State string
	Hosts        []host
	Processes    int
	Silent       int
	Pages        paging
	Gone         []ops.GoneServerRecord
}

// host is a host with its processes.
type host struct {
	Name      string
	IP        string
	Processes []process
}

// process is a process with its servers, one for each task type.
type process struct {
	Name    string
	Servers []serverRow
}

// serverRow is a server in the list.
type serverRow struct {
	ops.ServerRecord
	Rate float64
	Mark mark
}

// Stopped reports whether an operator has paused or drained the server.
func (s serverRow) Stopped() bool {
	return s.State == ops.StatePaused || s.State == ops.StateDraining
}

// Bad reports whether the server is silent or its calls fail.
func (s serverRow) Bad() bool { return s.Mark.Kind == "bad" }

// Stopped reports whether an operator has paused or drained some of the servers.
func (p process) Stopped() bool { return slices.ContainsFunc(p.Servers, serverRow.Stopped) }

// Stopped is as Process.Stopped.
func (h host) Stopped() bool { return slices.ContainsFunc(h.Processes, process.Stopped) }

// Trouble reports whether an operator should look at the process.
func (p process) Trouble() bool {
	return slices.ContainsFunc(p.Servers, func(s serverRow) bool { return s.Mark.Kind == "bad" || s.Mark.Kind == "warn" })
}

// showServers returns the page of all servers.
func showServers(ctx context.Context, v *viewer, query url.Values) content {
	p := serversPage{Query: strings.TrimSpace(query.Get("q")), State: query.Get("state"), Pages: pageOf(query)}
	if p.State == "gone" {
		p.Gone = loadRows(ctx, v, "gone", func(s ops.GoneServerRecord) string { return s.TaskType },
			func(ctx context.Context) ([]ops.GoneServerRecord, error) {
				gone, err := v.client.Servers().Gone(ctx, ops.ServerFilter{}, rowsPerPage)
				slices.Reverse(gone)
				return gone, err
			})
		if !v.knows("gone") {
			return content{Title: "Workers"}
		}
		return content{"Workers", p, p.Gone}
	}
	list := v.allServers(ctx)
	if !v.knows("servers") {
		return content{Title: "Workers"}
	}
	rates := v.samples.ofServers()
	var shown []ops.ServerRecord
	processes := map[string]*process{}
	var order []*process
	for _, s := range list {
		name := shortName(s.UUID)
		row := serverRow{s, rates[s.UUID], serverMark(s)}
		if !p.matches(s, name, row) {
			continue
		}
		shown = append(shown, s)
		if processes[name] == nil {
			processes[name] = &process{Name: name}
			order = append(order, processes[name])
		}
		processes[name].Servers = append(processes[name].Servers, row)
		if s.Overdue {
			p.Silent++
		}
	}
	p.Processes = len(order)
	p.group(order)
	return content{"Workers", p, shown}
}

// matches reports whether the reader asks for the server.
func (p *serversPage) matches(s ops.ServerRecord, name string, row serverRow) bool {
	if p.State == "trouble" && row.Mark.Kind != "bad" && row.Mark.Kind != "warn" {
		return false
	}
	if p.State != "" && p.State != "trouble" && !strings.EqualFold(p.State, s.DisplayState()) {
		return false
	}
	return p.Query == "" || strings.Contains(name, p.Query) || strings.Contains(s.HostName, p.Query) ||
		strings.Contains(s.UUID, p.Query) || strings.Contains(s.TaskType, p.Query)
}

// group sorts the processes by host, trouble first, and keeps a page of them.
func (p *serversPage) group(processes []*process) {
	slices.SortStableFunc(processes, func(a, b *process) int {
		if a.Trouble() != b.Trouble() {
			if a.Trouble() {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Servers[0].HostName, b.Servers[0].HostName), cmp.Compare(a.Name, b.Name))
	})
	for _, process := range cutPage(&p.Pages, processes, false) {
		first := process.Servers[0]
		i := slices.IndexFunc(p.Hosts, func(h host) bool { return h.Name == first.HostName })
		if i < 0 {
			i = len(p.Hosts)
			p.Hosts = append(p.Hosts, host{Name: first.HostName, IP: first.IP})
		}
		p.Hosts[i].Processes = append(p.Hosts[i].Processes, *process)
	}
}

// serverMark returns the condition of a server.
func serverMark(s ops.ServerRecord) mark {
	state := s.DisplayState()
	switch state {
	case ops.StateOverdue:
		return mark{"bad", "silent"}
	case ops.StateFailing:
		return mark{"bad", "failing"}
	case ops.StatePaused, ops.StateDraining, ops.StateLeaving:
		return mark{"off", strings.ToLower(state)}
	case ops.StateStandby:
		return mark{"wait", "standby"}
	}
	if len(s.HungQueues) > 0 {
		return mark{"warn", "calls hang"}
	}
	return mark{"ok", strings.ToLower(state)}
}

// States returns the states that the list can be limited to.
func (p serversPage) States() map[string]string {
	return map[string]string{
		"trouble": "Trouble", "paused": "Paused", "draining": "Draining", "standby": "Standby",
		"gone": "Gone",
	}
}
