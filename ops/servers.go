package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// Servers lists and finds servers.
type Servers struct{ c *Client }

// Servers returns the bundle of servers.
func (c *Client) Servers() *Servers { return &Servers{c} }

// The states of a server. Only SERVING and STANDBY servers may own queues.
const (
	StateServing = roster.StateServing // owns queues
	// StateStandby servers own none: there are more servers than queues, or than max_servers or max_in_flight allow.
	// They get the next free queue.
	StateStandby  = roster.StateStandby
	StatePaused   = roster.StatePaused   // an operator paused it
	StateDraining = roster.StateDraining // about to leave
	StateLeaving  = roster.StateLeaving  // about to leave; a later server of its name gets its queues back
)

// ServerName returns the short name of a server: host:pid, its uuid without the random end. The servers of one process,
// one for each task type, share the name.
func ServerName(uuid string) string { return roster.ServerName(uuid) }

// ServerRecord is a row of schedule_server, with counts of the server's queues.
type ServerRecord struct {
	UUID          string    `json:"uuid"`
	TaskType      string    `json:"task_type"`
	OwnSign       string    `json:"own_sign"`
	IP            string    `json:"ip"`
	HostName      string    `json:"host_name"`
	PID           int64     `json:"pid"`
	ThreadNumber  int64     `json:"thread_number"`
	State         string    `json:"state"`
	RegisterTime  time.Time `json:"register_time"`
	HeartbeatTime time.Time `json:"heartbeat_time"`
	HeartbeatAge  float64   `json:"heartbeat_age_s" db:"-"`
	Overdue       bool      `json:"overdue" db:"-"` // silent for longer than judge_dead_interval
	JudgeDead     int64     `json:"judge_dead_interval_ms"`
	Queues        int64     `json:"queues"`    // owned
	Requested     int64     `json:"requested"` // owned, and requested by other servers
	Requesting    int64     `json:"awaited"`   // requested by this server
	// its part of the queues, in proportion to those of the others; 0: none
	Weight            int64      `json:"weight"`
	MaxInFlight       *int64     `json:"max_in_flight"`        // calls of Execute that it may make; nil: no limit
	MaxInFlightTarget *int64     `json:"max_in_flight_target"` // what MaxInFlight is to become
	LastFetchTime     *time.Time `json:"last_fetch_time"`
	NextRunStartTime  *time.Time `json:"next_run_start_time"`
	NextRunEndTime    *time.Time `json:"next_run_end_time"`
	FetchCount        int64      `json:"fetch_count"`
	FetchItemCount    int64      `json:"fetch_item_count"`
	SuccessCount      int64      `json:"success_count"`
	FailureCount      int64      `json:"failure_count"`
	SkipCount         int64      `json:"skip_count"`
	ExecuteMS         int64      `json:"execute_ms"`
	InFlight          int64      `json:"in_hand"`
	OldestInFlight    *time.Time `json:"oldest_in_hand_since"`
	OldestInFlightAge *float64   `json:"oldest_in_hand_s" db:"-"` // nil if nothing is in flight, as in a select
	LastError         string     `json:"last_error"`
	LastErrorAt       *time.Time `json:"last_error_at"`
	LastErrorAge      *float64   `json:"last_error_s" db:"-"`
	FailingSince      *time.Time `json:"failing_since"` // the server's calls do nothing but fail
	FailedCalls       int64      `json:"failed_calls"`  // since an item was last done
	LibraryVersion    string     `json:"library_version"`
	Labels            string     `json:"labels"`
	PlannerVersion    int64      `json:"planner_version"` // the rules of the planner that its program knows (P11)
	// the id that the servers of one process share, one for each task type
	Process string `json:"process"`
	Name    string `json:"name"` // of its process, which a later process has again; empty: none
	// the lock file that its process holds until it ends (S15); empty: none
	Witness string `json:"witness"`
	// HungQueues are queues that it does not get, because calls of its process's former session are in flight for them
	// (P9).
	HungQueues []string `json:"hung_queues"`
	// Capabilities lists what its dealer offers that settings and queues can contradict, such as Keyed,Cursored.
	Capabilities string `json:"capabilities"`

	// GivenSettings are the settings that the program gives explicitly, as text, by their names in rota.yaml. The row in
	// schedule_task_type is in force. Nil if the program does not report them.
	GivenSettings map[string]string `json:"given_settings"`

	Now time.Time `json:"-" db:"database_time"` // the database's time of the read
}

// computeAges fills in the ages and Overdue from the times.
func (s *ServerRecord) computeAges() {
	s.HeartbeatAge = seconds(s.Now, s.HeartbeatTime)
	s.Overdue = roster.Dead(s.Now.Sub(s.HeartbeatTime), time.Duration(s.JudgeDead)*time.Millisecond)
	s.LastErrorAge = ageOf(s.Now, s.LastErrorAt)
	if s.InFlight > 0 {
		s.OldestInFlightAge = ageOf(s.Now, s.OldestInFlight)
	}
}

// Eligible reports whether the server may be assigned queues.
func (s ServerRecord) Eligible() bool {
	return !s.Overdue && roster.MayOwn(s.State)
}

// ServerFilter selects servers. Empty fields select all.
type ServerFilter struct {
	TaskType string
	Host     string
}

// List lists the servers of this own_sign by task type, the oldest first, overdue servers included. It is one
// statement.
func (s *Servers) List(ctx context.Context, f ServerFilter) ([]ServerRecord, error) {
	w := sqldb.Where{Args: []any{s.c.ownSign, s.c.ownSign, s.c.ownSign}}
	w.Equal("s.task_type", f.TaskType)
	w.Equal("s.host_name", f.Host)
	list, err := sqldb.Records[ServerRecord](ctx, s.c.db, `SELECT {columns} FROM (
		SELECT s.*, o.queues, o.requested, w.awaited, {now} AS database_time FROM schedule_server s
		LEFT JOIN (SELECT cur_server, COUNT(*) AS queues, COUNT(req_server) AS requested FROM schedule_queue
			WHERE own_sign = ? AND cur_server IS NOT NULL GROUP BY cur_server) o ON o.cur_server = s.uuid
		LEFT JOIN (SELECT req_server, COUNT(*) AS awaited FROM schedule_queue
			WHERE own_sign = ? AND req_server IS NOT NULL GROUP BY req_server) w ON w.req_server = s.uuid
		WHERE s.own_sign = ?`+w.Text+`) x ORDER BY task_type, register_time, uuid`, w.Args...)
	if err != nil {
		return nil, fmt.Errorf("list the workers: %w", err)
	}
	for i := range list {
		list[i].computeAges()
	}
	return list, nil
}

// GoneServerRecord is a row of schedule_server_history.
type GoneServerRecord struct {
	UUID           string     `json:"uuid"`
	TaskType       string     `json:"task_type"`
	OwnSign        string     `json:"own_sign"`
	IP             string     `json:"ip"`
	HostName       string     `json:"host_name"`
	PID            int64      `json:"pid"`
	State          string     `json:"state"` // its last
	RegisterTime   time.Time  `json:"register_time"`
	HeartbeatTime  time.Time  `json:"heartbeat_time"`
	LeftTime       time.Time  `json:"left_time"`
	Reason         string     `json:"reason"` // LEFT or EXPIRED
	SuccessCount   int64      `json:"success_count"`
	FailureCount   int64      `json:"failure_count"`
	LastError      string     `json:"last_error"`
	LastErrorAt    *time.Time `json:"last_error_at"`
	FailingSince   *time.Time `json:"failing_since"`
	FailedCalls    int64      `json:"failed_calls"`
	LibraryVersion string     `json:"library_version"`

	GivenSettings map[string]string `json:"given_settings"` // as ServerRecord has it
}

// Gone lists the latest servers of this own_sign that left or expired, at most limit, the latest last.
func (s *Servers) Gone(ctx context.Context, f ServerFilter, limit int) ([]GoneServerRecord, error) {
	w := sqldb.Where{Args: []any{s.c.ownSign}}
	w.Equal("task_type", f.TaskType)
	w.Equal("host_name", f.Host)
	list, err := sqldb.Records[GoneServerRecord](ctx, s.c.db, latest(`schedule_server_history WHERE own_sign = ?`+w.Text,
		"left_time", "uuid", limit), w.Args...)
	return list, sqldb.Wrap(err, "list the gone workers")
}

// MaxWeight is the greatest weight of a server.
const MaxWeight = roster.MaxWeight

// CheckLabels returns an error if a label of a process breaks its rule. Keys have lower-case letters, digits and
// -._/, values letters, digits and -._, each at most 63. The label host is that of each server's host.
func CheckLabels(labels map[string]string) error { return plan.Labels(labels).Check() }

// MaxReturn is the longest time for which a server that leaves keeps its queues for its return.
const MaxReturn = roster.MaxReturn

// Matching returns the registered servers with the given name, in the order of List. The name is a uuid, a process
// (host:pid), which has a server for each task type, or a host. Matching returns ErrUnknownServer if there are none.
func (s *Servers) Matching(ctx context.Context, name string) ([]ServerRecord, error) {
	servers, err := s.List(ctx, ServerFilter{})
	if err != nil {
		return nil, err
	}
	matches := matchServers(servers, name)
	if len(matches) == 0 {
		return nil, fmt.Errorf("find worker %s in own_sign %s: %w", name, s.c.ownSign, ErrUnknownServer)
	}
	return matches, nil
}

// matchServers returns the server with the uuid. If there is none, it returns the servers whose uuid starts with the
// name and a colon, or whose host has the name.
func matchServers(servers []ServerRecord, name string) []ServerRecord {
	if i := slices.IndexFunc(servers, func(s ServerRecord) bool { return s.UUID == name }); i >= 0 {
		return servers[i : i+1]
	}
	var matches []ServerRecord
	for _, s := range servers {
		if name != "" && (strings.HasPrefix(s.UUID, name+":") || s.HostName == name) {
			matches = append(matches, s)
		}
	}
	return matches
}
