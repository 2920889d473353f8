package roster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/processor"
)

// ServerInfo is one registration of one process for one task type.
type ServerInfo struct {
	UUID     string // host:pid:8hex, never used twice
	TaskType string
	Host     string
	IP       string
	PID      int

	ThreadNumber      int
	JudgeDeadInterval time.Duration
	HeartbeatToken    string // each heartbeat proves with it that the row still belongs to this process
	LibraryVersion    string
	Weight            *int              // nil: 1
	GivenSettings     map[string]string // the settings of the program, for the diagnosis; the row's are in force
	Labels            plan.Labels       // what it has (P14)
	Process           string            // id of its process, which has a server for each of its task types (P15)
	Witness           string            // the lock that the process holds until it ends (S15); empty: none

	// Database is the setting data_database that the process goes by (F11).
	Database string
	// Offers is what the dealer can do.
	Offers processor.Capabilities

	// HungQueues are queues with calls of a former session in flight. The server gets none of them before
	// ClearHungQueues (P9).
	HungQueues []string
	// Name is the name by which a later server gets the queues back that this one reserves (P13); empty: none.
	Name string
}

func (s ServerInfo) weight() int {
	if s.Weight == nil {
		return 1
	}
	return *s.Weight
}

// Registration is the result of Register. Times are by the database's clock.
type Registration struct {
	At time.Time
	// WatchingSince is the time since which this server or earlier ones have observed the roster without a gap. So a
	// server that is restarted again and again still finds dead servers (S7).
	WatchingSince time.Time
	// ItemVersion is the version of the failed items, as in HeartbeatReply. Failed items that are read later are not
	// older.
	ItemVersion      int64
	PartitionVersion int64 // as ItemVersion
	EpochFloor       int64 // as in HeartbeatReply
}

// Register inserts the server's row. From now on other servers assign it queues, and expire it if its heartbeats
// stop. The uuid must never have been registered before. After ErrUnknownCommit the caller registers under another
// uuid; if there is a row of the first one, it expires.
func (r *Roster) Register(ctx context.Context, s ServerInfo) (reg Registration, err error) {
	err = r.UnderLock(ctx, s.TaskType, func(ctx context.Context, l *LockTx) error {
		since, err := watchedSince(ctx, l)
		if err != nil {
			return err
		}
		if err := s.suits(ctx, l); err != nil {
			return err
		}
		reg = Registration{
			At: l.Now, WatchingSince: since, ItemVersion: l.versions.item, PartitionVersion: l.versions.partition,
			EpochFloor: l.epochFloor,
		}
		_, err = l.Exec(ctx, `INSERT INTO schedule_server (uuid, task_type, own_sign, ip, host_name, pid, thread_number,
				state, register_time, heartbeat_time, beat_token, beat_count, judge_dead_interval_ms, watching_since,
				library_version, hung_queues, given_settings, weight, planner_version, witness, name, process, labels,
				capabilities, last_error, max_in_flight, max_in_flight_target)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, {now}, {now}, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '',
				`+firstShare+`, `+firstShare+`)`,
			s.UUID, l.TaskType, l.OwnSign, s.IP, s.Host, s.PID, s.ThreadNumber, StateStandby,
			s.HeartbeatToken, s.JudgeDeadInterval.Milliseconds(), l.Dialect.Time(since),
			s.LibraryVersion, sqldb.List(s.HungQueues), sqldb.Texts(s.GivenSettings), s.weight(), l.plannerVersion,
			sqldb.Null(s.Witness), s.Name, s.Process, s.Labels.String(), s.Offers.String(), l.TaskType, l.TaskType)
		if err != nil {
			return err
		}
		if err := insertQueueVersion(ctx, l, s.UUID); err != nil {
			return err
		}
		if err := l.membershipChanged(ctx); err != nil {
			return err
		}
		return l.Record(ctx, Event{Kind: EventJoined, to: s.UUID, Actor: s.UUID})
	})
	if err != nil {
		return Registration{}, fmt.Errorf("register %s for %w", s.UUID, err)
	}
	return reg, nil
}

// ErrRestart means that a setting has changed that takes effect when a process starts. With different databases two
// servers would fence a queue in different databases.
var ErrRestart = errors.New("a setting has changed since this process started: start it again")

// ErrUnsuited means that the dealer of a process cannot work the queues as they are divided.
var ErrUnsuited = errors.New("the dealer does not suit the queues")

// suits returns ErrRestart if the server goes by another data_database than the row, and ErrUnsuited if its dealer
// cannot work queues with totals of their own, where queues may have these or have them (N3). No transaction makes
// either true while the server is registered.
func (s ServerInfo) suits(ctx context.Context, l *LockTx) error {
	row, found, err := readDivision(ctx, l)
	if err != nil || !found {
		return err
	}
	if row.Database != s.Database {
		return fmt.Errorf("%w: database was %q and is %q", ErrRestart, s.Database, row.Database)
	}
	if row.Totals <= 1 && !row.Splittable {
		return nil
	}
	if err := row.suits(s.Offers); err != nil {
		return fmt.Errorf("%w: %w", ErrUnsuited, err)
	}
	return nil
}

// firstShare is the share of a new server: nothing while the task type has a limit, until a plan grants something
// (P10).
const firstShare = `(SELECT CASE WHEN t.max_in_flight > 0 THEN 0 END FROM schedule_task_type t WHERE t.task_type = ?)`

// watchedSince returns the time since which the servers with a fresh heartbeat have observed the roster without a gap.
// It is now if there are none, if a heartbeat from the future shows that the clock was set back, or if the time makes
// no sense.
func watchedSince(ctx context.Context, l *LockTx) (time.Time, error) {
	type watch struct {
		Since   time.Time
		SetBack int
	}
	w, err := sqldb.Value[watch](ctx, l, `SELECT
			MIN(CASE WHEN heartbeat_time > {ago judge_dead_interval_ms / 2} THEN watching_since END),
			COUNT(CASE WHEN heartbeat_time >= {ago -judge_dead_interval_ms / 2} THEN 1 END)
		FROM schedule_server WHERE `+ofTask, l.TaskType, l.OwnSign)
	if w.SetBack > 0 || w.Since.IsZero() || w.Since.After(l.Now) || l.Now.Sub(w.Since) > sqldb.MaxDuration {
		w.Since = l.Now
	}
	return w.Since, sqldb.Wrap(err, "read watching_since of the workers")
}

// Drain announces that a server is about to leave, and rebalances: no plan gives it a queue any more. Without a
// reservation the server is DRAINING, and other servers request its queues. With one it is LEAVING, and keeps them
// until Leave reserves them (P13). A server that an operator has paused or drained reserves nothing.
func (s Server) Drain(ctx context.Context, r Reservation) error {
	err := s.roster.UnderLock(ctx, s.taskType, func(ctx context.Context, l *LockTx) error {
		now, err := stateOf(ctx, l, s.uuid)
		if err != nil {
			return err
		}
		next := StateDraining
		if r.Within > 0 && MayOwn(now) {
			next = StateLeaving
		}
		_, err = setState(ctx, l, newState{s.uuid, next}, rebalancing{actor: s.uuid})
		return err
	})
	return sqldb.Prefix(err, "drain %s of", s.uuid)
}

// stateOf returns the state of a server, or ErrGone if it has no row. Only transactions under the lock row delete one.
func stateOf(ctx context.Context, l *LockTx, uuid string) (string, error) {
	return sqldb.One[string](ctx, l, ErrGone, `SELECT state FROM schedule_server WHERE uuid = ?`, uuid)
}

// Leave hands all queues of the server to other servers, or to none, withdraws the requests for it and deletes its
// row, in one transaction (H4). It does not wait for a requester. The caller must have nothing in flight, except of
// the queues in forced. A server whose row is gone already has left. After ErrUnknownCommit the caller may call Leave
// again.
//
// With a reservation it keeps the queues for a later server of the name, if Drain has announced that: otherwise plans
// may have given it queues meanwhile that it never worked.
func (s Server) Leave(ctx context.Context, forced []string, r Reservation) error {
	err := s.roster.UnderLock(ctx, s.taskType, func(ctx context.Context, l *LockTx) error {
		state, err := stateOf(ctx, l, s.uuid)
		if errors.Is(err, ErrGone) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := l.Record(ctx, Event{Kind: EventLeft, from: s.uuid, Actor: s.uuid}); err != nil {
			return err
		}
		if err := l.membershipChanged(ctx); err != nil {
			return err
		}
		if state == StateLeaving {
			if err := r.keep(ctx, l, s.uuid, forced); err != nil {
				return err
			}
		}
		_, err = rebalance(ctx, l, rebalancing{actor: s.uuid, leaving: s.uuid, forced: forced, reason: "drain_timeout"})
		if err != nil {
			return err
		}
		// Last: from here on the heartbeats of the process wait (S1).
		_, err = MoveToHistory(ctx, l, reasonLeft, []ServerRow{{UUID: s.uuid}})
		return err
	})
	return sqldb.Prefix(err, "leave")
}

// expire removes the servers that have been silent for their judge_dead_interval, by the clock that was read after
// the lock, if the actor may expire servers. It also removes the servers whose processes have ended (S15). It returns
// the others, and how long the removed ones had been silent. A server with a new heartbeat survives: its heartbeat is
// no longer the one that was read.
func expire(ctx context.Context, l *LockTx, servers []ServerRow,
	p rebalancing,
) (alive []ServerRow, silences []time.Duration, err error) {
	current := p.Watched > 0 && p.actorIsCurrent(servers, l.Now)
	dead := slices.DeleteFunc(slices.Clone(servers), func(s ServerRow) bool {
		return !p.ended(s) && (!current || !p.expired(s, l.Now))
	})
	if len(dead) == 0 {
		return servers, nil, nil
	}
	moved, err := MoveToHistory(ctx, l, ReasonExpired, dead)
	if err != nil || len(moved) == 0 {
		return servers, nil, err
	}
	var events []Event
	for _, s := range servers {
		if !moved[s.UUID] {
			alive = append(alive, s)
			continue
		}
		silent := l.Now.Sub(s.Heartbeat).Round(time.Millisecond)
		reason := fmt.Sprintf("silent for %s, judge_dead_interval %s", silent, s.JudgeDeadInterval)
		if silent < 0 { // the clock was set back: the true time is unknown
			silent = s.JudgeDeadInterval
			reason = fmt.Sprintf("silent since the clock was set back, from %s or later; judge_dead_interval %s",
				s.Heartbeat.UTC().Format(time.RFC3339), s.JudgeDeadInterval)
		}
		if p.ended(s) {
			reason = "its process has ended: nobody holds its lock " + s.Witness
		}
		silences = append(silences, silent)
		events = append(events, Event{Kind: EventExpired, from: s.UUID, Actor: p.actor, Reason: reason})
	}
	if err := l.Record(ctx, events...); err != nil {
		return nil, nil, err
	}
	return alive, silences, l.membershipChanged(ctx)
}

// actorIsCurrent reports whether the actor may expire servers: whether its own heartbeat is fresh by the clock that
// was read after the lock, and close to the time of the heartbeat reply. If they are apart, the clock was set
// meanwhile, or the call was delayed.
func (p rebalancing) actorIsCurrent(servers []ServerRow, now time.Time) bool {
	own := slices.IndexFunc(servers, func(s ServerRow) bool { return s.UUID == p.actor })
	if own < 0 {
		return false
	}
	heartbeat := servers[own].Heartbeat
	near := func(t time.Time) bool { return heartbeat.Sub(t).Abs() <= p.MaxHeartbeatAge }
	return near(now) && (p.RepliedAt.IsZero() || near(p.RepliedAt))
}

// expired reports whether the actor may expire a server. It may if the server has been silent for long enough, both
// now and at the heartbeat reply. It also may if the server's last heartbeat lies in a future from which the clock
// was set back.
func (o RebalanceOptions) expired(s ServerRow, now time.Time) bool {
	if o.Watched < s.JudgeDeadInterval {
		return false
	}
	first, last := now, now
	switch {
	case o.RepliedAt.After(now):
		last = o.RepliedAt
	case !o.RepliedAt.IsZero():
		first = o.RepliedAt
	}
	limit := s.JudgeDeadInterval
	if o.Inherited {
		limit += s.JudgeDeadInterval / 2
	}
	return first.Sub(s.Heartbeat) > limit || s.Heartbeat.Sub(last) > s.JudgeDeadInterval
}

// MoveToHistory moves the rows of servers to the history if their heartbeats are still the ones that were read. It
// returns the uuids of the rows that it moved. It looks up each row by its key: InnoDB locks each row that a
// statement reads, and would delay the heartbeats of other servers.
func MoveToHistory(ctx context.Context, l *LockTx, reason string,
	servers []ServerRow,
) (moved map[string]bool, err error) {
	moved = map[string]bool{}
	for part := range slices.Chunk(servers, changesPerStatement) {
		list, err := lockServerRows(ctx, l, part)
		if err != nil || len(list) == 0 {
			return moved, err
		}
		from, args, err := l.Dialect.In(l.Dialect.ServersIn, list)
		if err != nil {
			return nil, err
		}
		_, err = l.Exec(ctx, `INSERT INTO schedule_server_history (`+serverColumns+`, left_time, reason)
			SELECT `+serverColumns+`, {now}, `+reason+from, args...)
		if err != nil {
			return nil, fmt.Errorf("write the history: %w", err)
		}
		remove, args, err := l.Dialect.In(l.Dialect.DeleteServers, list)
		if err == nil {
			_, err = l.Exec(ctx, remove, args...)
		}
		if err == nil {
			err = deleteQueueVersions(ctx, l, list)
		}
		if err != nil {
			return nil, fmt.Errorf("delete the workers: %w", err)
		}
		for _, uuid := range list {
			moved[uuid] = true
		}
	}
	return moved, nil
}

// lockServerRows locks the rows of servers. It returns the uuids of the servers that have sent no heartbeat since they
// were read.
func lockServerRows(ctx context.Context, l *LockTx, servers []ServerRow) (list []string, err error) {
	read := make(map[string]time.Time, len(servers))
	for _, s := range servers {
		list = append(list, s.UUID)
		read[s.UUID] = s.Heartbeat
	}
	from, args, err := l.Dialect.In(l.Dialect.ServersIn, list)
	if err != nil {
		return nil, err
	}
	type beat struct {
		UUID string
		At   time.Time
	}
	beats, err := sqldb.Records[beat](ctx, l, `SELECT s.uuid, s.heartbeat_time`+from+`
		ORDER BY s.uuid`+l.Dialect.LockServers, args...)
	if err != nil {
		return nil, fmt.Errorf("lock the workers: %w", err)
	}
	list = list[:0]
	for _, b := range beats {
		if seen := read[b.UUID]; seen.IsZero() || seen.Equal(b.At) {
			list = append(list, b.UUID)
		}
	}
	return list, nil
}

// serverColumns are the columns that schedule_server and its history share.
const serverColumns = `uuid, task_type, own_sign, ip, host_name, pid, thread_number, state, register_time,
	heartbeat_time, beat_token, beat_count, judge_dead_interval_ms, watching_since, read_plan_version,
	read_sum, last_fetch_time, next_run_start_time, next_run_end_time, fetch_count, fetch_item_count, success_count,
	failure_count, skip_count, execute_ms, in_hand, oldest_in_hand_since, last_error, last_error_at, failing_since,
	failed_calls, library_version, labels, hung_queues, given_settings, weight, planner_version, witness, name,
	process, capabilities,
	` + shareColumns

// The reasons of schedule_server_history, as SQL literals: PostgreSQL cannot infer the type of a parameter in a SELECT
// list.
const (
	reasonLeft    = "'" + EventLeft + "'"
	ReasonExpired = "'" + EventExpired + "'"
)

// ClearHungQueues takes queues off the server's list of hung queues, because nothing of a former session is in flight
// for them any more, and rebalances: from now on the server may get them (P9). It returns ErrGone if the server's row
// is gone.
func (s Server) ClearHungQueues(ctx context.Context, queues []string) error {
	err := s.roster.UnderLock(ctx, s.taskType, func(ctx context.Context, l *LockTx) error {
		hung, err := sqldb.One[sqldb.List](ctx, l, ErrGone, `SELECT hung_queues FROM schedule_server
			WHERE uuid = ?`, s.uuid)
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(slices.Clone(hung), func(id string) bool { return slices.Contains(queues, id) })
		if len(left) == len(hung) {
			return nil
		}
		if err := l.membershipChanged(ctx); err != nil {
			return err
		}
		_, err = l.Exec(ctx, `UPDATE schedule_server SET hung_queues = ? WHERE uuid = ?`, left, s.uuid)
		return err
	})
	return sqldb.Prefix(err, "clear the hung queues of %s of", s.uuid)
}
