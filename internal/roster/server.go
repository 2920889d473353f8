package roster

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// The states of a server. Only a SERVING or STANDBY server is eligible: see mayOwn.
const (
	StateServing  = "SERVING"  // owns queues
	StateStandby  = "STANDBY"  // owns none: there are more servers than queues; first in line
	StatePaused   = "PAUSED"   // an operator paused it
	StateDraining = "DRAINING" // about to leave
)

// Server is one registration of one process for one task type.
type Server struct {
	UUID     string // host:pid:8hex, never used twice
	TaskType string
	Host     string
	IP       string
	PID      int

	ThreadNumber      int
	JudgeDeadInterval time.Duration
	HeartbeatToken    string // proves in each heartbeat that the row is still this process's
	LibraryVersion    string
	GivenSettings     map[string]string // the program's own, for Examine; the row's are in force
}

// Registration is what a server learns when it registers, by the database's clock.
type Registration struct {
	At time.Time
	// WatchingSince is since when the roster has been watched without a gap, by this server or those
	// before it. A server that is started again and again thus still finds out who is dead (S7).
	WatchingSince time.Time
	// ItemVersion is that of the failed items, as HeartbeatReply tells it. Those that are read later are not older.
	ItemVersion int64
}

// Register inserts the server's row: from now on others deal it queues, and expire it if it
// stops beating. The uuid must never have been registered before. After ErrUnknownCommit the
// caller registers under another uuid; the row that is perhaps there expires.
func (r *Roster) Register(ctx context.Context, s Server) (reg Registration, err error) {
	err = r.UnderLock(ctx, s.TaskType, func(ctx context.Context, l *LockTx) error {
		since, err := l.watchedSince(ctx)
		if err != nil {
			return err
		}
		reg = Registration{At: l.Now, WatchingSince: since, ItemVersion: l.itemVersion}
		_, err = l.Exec(ctx, `INSERT INTO schedule_server (uuid, task_type, own_sign, ip, host_name, pid, thread_number, state,
			register_time, heartbeat_time, beat_token, beat_count, judge_dead_interval_ms, watching_since, library_version, given_settings)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, {now}, {now}, ?, 0, ?, ?, ?, ?)`,
			s.UUID, l.TaskType, l.OwnSign, s.IP, s.Host, s.PID, s.ThreadNumber, StateStandby,
			s.HeartbeatToken, s.JudgeDeadInterval.Milliseconds(), l.Dialect.Time(since), s.LibraryVersion, sqldb.Texts(s.GivenSettings))
		if err != nil {
			return err
		}
		_, err = l.Exec(ctx, `UPDATE schedule_task_running SET membership_version = membership_version + 1, watching_since = ?
			WHERE task_type = ? AND own_sign = ?`, l.Dialect.Time(since), l.TaskType, l.OwnSign)
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

// watchedSince asks the servers whose heartbeat is fresh since when they have watched without a gap: now, if there is
// nobody, or if a heartbeat from the future tells that the clock was set back.
func (l *LockTx) watchedSince(ctx context.Context) (time.Time, error) {
	var since time.Time
	var setBack int
	err := l.QueryRow(ctx, `SELECT MIN(CASE WHEN heartbeat_time > {ago judge_dead_interval_ms / 2} THEN watching_since END),
			COUNT(CASE WHEN heartbeat_time >= {ago -judge_dead_interval_ms / 2} THEN 1 END)
		FROM schedule_server WHERE task_type = ? AND own_sign = ?`, l.TaskType, l.OwnSign).Scan((*sqldb.Instant)(&since), &setBack)
	if err != nil {
		return since, fmt.Errorf("read the watches: %w", err)
	}
	if setBack > 0 || since.IsZero() || since.After(l.Now) {
		since = l.Now
	}
	return since, nil
}

// Drain marks the server as about to leave, and plans: its queues are dealt to others, and requested from it.
func (r *Roster) Drain(ctx context.Context, taskType, uuid string) error {
	err := r.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		var n int
		err := l.QueryRow(ctx, `SELECT COUNT(*) FROM schedule_server WHERE uuid = ?`, uuid).Scan(&n)
		if err == nil && n == 0 {
			err = ErrGone
		}
		if err != nil {
			return err
		}
		return l.setState(ctx, uuid, StateDraining, uuid)
	})
	if err != nil {
		return fmt.Errorf("drain %s of %w", uuid, err)
	}
	return nil
}

// Leave hands everything that the server owns to others, or to nobody, withdraws what was
// requested for it and deletes its row, all in one transaction (H4). It waits for no requester.
// The caller must have nothing in hand any more; forced lists the queues for which that is not
// so. A server that is gone already has left; after ErrUnknownCommit it may be called again.
func (r *Roster) Leave(ctx context.Context, taskType, uuid string, forced []string) error {
	err := r.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		left, err := l.MoveToHistory(ctx, reasonLeft, []ServerRow{{UUID: uuid}})
		if err != nil || len(left) == 0 {
			return err
		}
		if err := l.Record(ctx, Event{Kind: EventLeft, from: uuid, Actor: uuid}); err != nil {
			return err
		}
		if err := l.membershipChanged(ctx); err != nil {
			return err
		}
		_, err = l.rebalance(ctx, rebalancing{RebalanceOptions: RebalanceOptions{Actor: uuid}, leaving: uuid, forced: forced, reason: "drain_timeout"})
		return err
	})
	if err != nil {
		return fmt.Errorf("leave %w", err)
	}
	return nil
}

// serverColumns are those that schedule_server and its history share.
const serverColumns = `uuid, task_type, own_sign, ip, host_name, pid, thread_number, state, register_time, heartbeat_time,
	beat_token, beat_count, judge_dead_interval_ms, watching_since, drained_partition, last_fetch_time, next_run_start_time, next_run_end_time, fetch_count,
	fetch_item_count, success_count, failure_count, skip_count, execute_ms, in_hand, oldest_in_hand_since,
	last_error, last_error_at, library_version, labels, given_settings`

// bury moves the rows of servers to the history, if they are there and their heartbeats are still those that
// were read, and returns which were. They are looked up by their keys, and only those of them: InnoDB locks
// whatever a statement looks at, and the heartbeats of others must not wait for that.
func (l *LockTx) MoveToHistory(ctx context.Context, reason string, servers []ServerRow) (buried map[string]bool, err error) {
	buried = map[string]bool{}
	for part := range slices.Chunk(servers, changesPerStatement) {
		list, err := l.lockServerRows(ctx, part)
		if err != nil || len(list) == 0 {
			return buried, err
		}
		doc, err := sqldb.JSON(list)
		if err != nil {
			return nil, err
		}
		_, err = l.Exec(ctx, `INSERT INTO schedule_server_history (`+serverColumns+`, left_time, reason)
			SELECT `+serverColumns+`, {now}, `+reason+l.Dialect.ServersIn, doc)
		if err != nil {
			return nil, fmt.Errorf("write the history: %w", err)
		}
		if _, err := l.Exec(ctx, l.Dialect.DeleteServers, doc); err != nil {
			return nil, fmt.Errorf("delete the servers: %w", err)
		}
		for _, uuid := range list {
			buried[uuid] = true
		}
	}
	return buried, nil
}

// lockServerRows locks the rows of servers, and returns those that have not beaten since they were read.
func (l *LockTx) lockServerRows(ctx context.Context, servers []ServerRow) (list []string, err error) {
	read := make(map[string]time.Time, len(servers))
	for _, s := range servers {
		list = append(list, s.UUID)
		read[s.UUID] = s.Heartbeat
	}
	doc, err := sqldb.JSON(list)
	if err != nil {
		return nil, err
	}
	list = list[:0]
	err = l.Each(ctx, func(rows *sql.Rows) error {
		var uuid string
		var heartbeat time.Time
		err := rows.Scan(&uuid, (*sqldb.Instant)(&heartbeat))
		if seen := read[uuid]; seen.IsZero() || seen.Equal(heartbeat) {
			list = append(list, uuid)
		}
		return err
	}, `SELECT s.uuid, s.heartbeat_time`+l.Dialect.ServersIn+` ORDER BY s.uuid`+l.Dialect.LockServers, doc)
	if err != nil {
		return nil, fmt.Errorf("lock the servers: %w", err)
	}
	return list, nil
}

// expire buries the servers that have been silent for their judge_dead_interval by the clock that was
// read after the lock, and returns those that live on. One that has just beaten survives: its
// heartbeat is no longer the one that was read.
func (l *LockTx) Expire(ctx context.Context, servers []ServerRow, a RebalanceOptions) (alive []ServerRow, err error) {
	dead := slices.DeleteFunc(slices.Clone(servers), func(s ServerRow) bool { return !a.expired(s, l.Now) })
	if len(dead) == 0 {
		return servers, nil
	}
	buried, err := l.MoveToHistory(ctx, ReasonExpired, dead)
	if err != nil || len(buried) == 0 {
		return servers, err
	}
	var events []Event
	for _, s := range servers {
		if !buried[s.UUID] {
			alive = append(alive, s)
			continue
		}
		silent := l.Now.Sub(s.Heartbeat).Round(time.Millisecond)
		reason := fmt.Sprintf("silent for %s, judge_dead_interval %s", silent, s.JudgeDeadInterval)
		if silent < 0 { // for how long, no clock can tell
			silent = s.JudgeDeadInterval
			reason = fmt.Sprintf("silent since the clock was set back, from %s or later; judge_dead_interval %s", s.Heartbeat.UTC().Format(time.RFC3339), s.JudgeDeadInterval)
		}
		l.silences = append(l.silences, silent)
		events = append(events, Event{Kind: EventExpired, from: s.UUID, Actor: a.Actor, Reason: reason})
	}
	if err := l.Record(ctx, events...); err != nil {
		return nil, err
	}
	return alive, l.membershipChanged(ctx)
}

// expired says whether the actor may call a server dead: it was silent for long enough, now and at the
// pulse; or it has beaten in a future from which the clock was set back, and not since.
func (a RebalanceOptions) expired(s ServerRow, now time.Time) bool {
	if a.Watched < s.JudgeDeadInterval {
		return false
	}
	first, last := now, now
	if !a.RepliedAt.IsZero() {
		first, last = minTime(now, a.RepliedAt), maxTime(now, a.RepliedAt)
	}
	patience := s.JudgeDeadInterval
	if a.Inherited {
		patience += s.JudgeDeadInterval / 2
	}
	return first.Sub(s.Heartbeat) > patience || s.Heartbeat.Sub(last) > s.JudgeDeadInterval
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func maxTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// Why a server is gone, as literals of SQL: PostgreSQL cannot tell the type of a parameter in a
// list of results.
const (
	reasonLeft    = "'" + EventLeft + "'"
	ReasonExpired = "'" + EventExpired + "'"
)
