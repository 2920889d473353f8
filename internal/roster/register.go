package roster

import (
	"context"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
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
	HungQueues        []string          // the server gets none of them before ClearHungQueues, because calls of a former session are in flight for them (P9)
	GivenSettings     map[string]string // the settings of the program, for the diagnosis; the row's are in force
	Labels            plan.Labels       // what it has (P14)
	Process           string            // id of its process, which has a server for each of its task types (P15)
	Name              string            // a later server of the same name gets the queues back that this one reserves (P13); empty: none
	Witness           string            // the lock that the process holds until it ends (S15); empty: none
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
		reg = Registration{At: l.Now, WatchingSince: since, ItemVersion: l.versions.item, PartitionVersion: l.versions.partition}
		_, err = l.Exec(ctx, `INSERT INTO schedule_server (uuid, task_type, own_sign, ip, host_name, pid, thread_number, state,
			register_time, heartbeat_time, beat_token, beat_count, judge_dead_interval_ms, watching_since, library_version, hung_queues, given_settings, weight, planner_version, witness, name, process, labels, max_in_flight, max_in_flight_target)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, {now}, {now}, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, `+firstShare+`, `+firstShare+`)`,
			s.UUID, l.TaskType, l.OwnSign, s.IP, s.Host, s.PID, s.ThreadNumber, StateStandby,
			s.HeartbeatToken, s.JudgeDeadInterval.Milliseconds(), l.Dialect.Time(since), s.LibraryVersion, sqldb.List(s.HungQueues), sqldb.Texts(s.GivenSettings), s.weight(), l.plannerVersion, sqldb.Null(s.Witness), s.Name, s.Process, s.Labels.String(), l.TaskType, l.TaskType)
		if err != nil {
			return err
		}
		_, err = l.Exec(ctx, `UPDATE schedule_task_running SET membership_version = membership_version + 1
			WHERE task_type = ? AND own_sign = ?`, l.TaskType, l.OwnSign)
		if err != nil {
			return err
		}
		return l.Record(ctx, Event{Kind: EventJoined, to: s.UUID, Actor: s.UUID})
	})
	if err != nil {
		return Registration{}, fmt.Errorf("register %s for %w", s.UUID, err)
	}
	return reg, nil
}

// firstShare is the share of a new server: nothing while the task type has a limit, until a plan grants something
// (P10).
const firstShare = `(SELECT CASE WHEN t.max_in_flight > 0 THEN 0 END FROM schedule_task_type t WHERE t.task_type = ?)`

// watchedSince returns the time since which the servers with a fresh heartbeat have observed the roster without a gap.
// It is now if there are none, if a heartbeat from the future shows that the clock was set back, or if the time makes
// no sense.
func watchedSince(ctx context.Context, l *LockTx) (time.Time, error) {
	var since time.Time
	var setBack int
	err := l.QueryRow(ctx, `SELECT MIN(CASE WHEN heartbeat_time > {ago judge_dead_interval_ms / 2} THEN watching_since END),
			COUNT(CASE WHEN heartbeat_time >= {ago -judge_dead_interval_ms / 2} THEN 1 END)
		FROM schedule_server WHERE task_type = ? AND own_sign = ?`, l.TaskType, l.OwnSign).Scan((*sqldb.Instant)(&since), &setBack)
	if err != nil {
		return since, fmt.Errorf("read watching_since of the servers: %w", err)
	}
	if setBack > 0 || since.IsZero() || since.After(l.Now) || l.Now.Sub(since) > sqldb.MaxDuration {
		since = l.Now
	}
	return since, nil
}
