package roster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// MoveToHistory moves the rows of servers to the history if their heartbeats are still the ones that were read. It
// returns the uuids of the rows that it moved. It looks up each row by its key: InnoDB locks each row that a
// statement reads, and would delay the heartbeats of other servers.
func MoveToHistory(ctx context.Context, l *LockTx, reason string, servers []ServerRow) (moved map[string]bool, err error) {
	moved = map[string]bool{}
	for part := range slices.Chunk(servers, changesPerStatement) {
		list, err := lockServerRows(ctx, l, part)
		if err != nil || len(list) == 0 {
			return moved, err
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
	doc, err := sqldb.JSON(list)
	if err != nil {
		return nil, err
	}
	type beat struct {
		UUID string
		At   time.Time
	}
	beats, err := sqldb.Records[beat](ctx, l, `SELECT s.uuid, s.heartbeat_time`+l.Dialect.ServersIn+` ORDER BY s.uuid`+l.Dialect.LockServers, doc)
	if err != nil {
		return nil, fmt.Errorf("lock the servers: %w", err)
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
const serverColumns = `uuid, task_type, own_sign, ip, host_name, pid, thread_number, state, register_time, heartbeat_time,
	beat_token, beat_count, judge_dead_interval_ms, watching_since, drained_partition, last_fetch_time, next_run_start_time, next_run_end_time, fetch_count,
	fetch_item_count, success_count, failure_count, skip_count, execute_ms, in_hand, oldest_in_hand_since,
	last_error, last_error_at, failing_since, failed_calls, library_version, labels, hung_queues, given_settings, weight, planner_version, witness, name, process, rounded_up, ` + shareColumns

// The reasons of schedule_server_history, as SQL literals: PostgreSQL cannot infer the type of a parameter in a SELECT
// list.
const (
	reasonLeft    = "'" + EventLeft + "'"
	ReasonExpired = "'" + EventExpired + "'"
)
