package console

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/dutyrota/rota/center"
)

// serversPage is the page of all servers, by host and process.
type serversPage struct {
	Query, State string
	Hosts        []Host
	Processes    int
	Silent       int
	Pages        paging
	Gone         []center.GoneServerRecord
}

// Host is a host with its processes.
type Host struct {
	Name      string
	IP        string
	Processes []Process
}

// Process is a process with its servers, one for each task type.
type Process struct {
	Name    string
	Servers []ServerRow
}

// ServerRow is a server in the list.
type ServerRow struct {
	center.ServerRecord
	Rate float64
	Mark Mark
}

// Stopped reports whether an operator has paused or drained the server.
func (s ServerRow) Stopped() bool {
	return s.State == center.StatePaused || s.State == center.StateDraining
}

// Bad reports whether the server is silent or its calls fail.
func (s ServerRow) Bad() bool { return s.Mark.Kind == "bad" }

// Stopped reports whether an operator has paused or drained some of the servers.
func (p Process) Stopped() bool { return slices.ContainsFunc(p.Servers, ServerRow.Stopped) }

// Stopped is as Process.Stopped.
func (h Host) Stopped() bool { return slices.ContainsFunc(h.Processes, Process.Stopped) }

// Trouble reports whether an operator should look at the process.
func (p Process) Trouble() bool {
	return slices.ContainsFunc(p.Servers, func(s ServerRow) bool { return s.Mark.Kind == "bad" || s.Mark.Kind == "warn" })
}

// showServers returns the page of all servers.
func showServers(ctx context.Context, v *viewer, query url.Values) (content, error) {
	p := serversPage{Query: strings.TrimSpace(query.Get("q")), State: query.Get("state"), Pages: pageOf(query)}
	if p.State == "gone" {
		gone, err := load(ctx, v, "gone", func(ctx context.Context) ([]center.GoneServerRecord, error) {
			gone, err := v.center.Servers().Gone(ctx, center.ServerFilter{}, rowsPerPage)
			slices.Reverse(gone)
			return gone, err
		})
		p.Gone = visible(v, gone, func(s center.GoneServerRecord) string { return s.TaskType })
		return content{"Servers", p, p.Gone}, err
	}
	list, err := v.allServers(ctx)
	if err != nil {
		return content{}, err
	}
	rates := v.samples.ofServers()
	var shown []center.ServerRecord
	processes := map[string]*Process{}
	var order []*Process
	for _, s := range list {
		name := shortName(s.UUID)
		row := ServerRow{s, rates[s.UUID], serverMark(s)}
		if !p.matches(s, name, row) {
			continue
		}
		shown = append(shown, s)
		if processes[name] == nil {
			processes[name] = &Process{Name: name}
			order = append(order, processes[name])
		}
		processes[name].Servers = append(processes[name].Servers, row)
		if s.Overdue {
			p.Silent++
		}
	}
	p.Processes = len(order)
	p.group(order)
	return content{"Servers", p, shown}, nil
}

// matches reports whether the reader asks for the server.
func (p *serversPage) matches(s center.ServerRecord, name string, row ServerRow) bool {
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
func (p *serversPage) group(processes []*Process) {
	slices.SortStableFunc(processes, func(a, b *Process) int {
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
		i := slices.IndexFunc(p.Hosts, func(h Host) bool { return h.Name == first.HostName })
		if i < 0 {
			i = len(p.Hosts)
			p.Hosts = append(p.Hosts, Host{Name: first.HostName, IP: first.IP})
		}
		p.Hosts[i].Processes = append(p.Hosts[i].Processes, *process)
	}
}

// serverMark returns the condition of a server.
func serverMark(s center.ServerRecord) Mark {
	state := s.DisplayState()
	switch state {
	case center.StateOverdue:
		return Mark{"bad", "silent"}
	case center.StateFailing:
		return Mark{"bad", "failing"}
	case center.StatePaused, center.StateDraining, center.StateLeaving:
		return Mark{"off", strings.ToLower(state)}
	case center.StateStandby:
		return Mark{"wait", "standby"}
	}
	if len(s.HungQueues) > 0 {
		return Mark{"warn", "calls hang"}
	}
	return Mark{"ok", strings.ToLower(state)}
}

// States returns the states that the list can be limited to.
func (p serversPage) States() map[string]string {
	return map[string]string{"trouble": "Trouble", "paused": "Paused", "draining": "Draining", "standby": "Standby", "gone": "Gone"}
}
