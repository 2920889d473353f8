package roster

import (
	"context"
	"fmt"
	"time"
)

// Heartbeat is one heartbeat of a process, for all its servers at once.
type Heartbeat struct {
	// Token replaces the tokens in the servers' rows. The caller makes it at random and uses it for one successful
	// heartbeat only. A heartbeat that failed is repeated with the same Token, because it may have been written
	// although its reply was lost.
	Token string
	// OldTokens are the last confirmed token of each server. A row with a token that is neither among them nor Token
	// belongs to another process.
	OldTokens []string

	Servers []ServerReport
}

// ServerReport is what one server reports with the heartbeat. It has many fields because most are columns of the
// server's row. Times are by the database's clock, as the caller estimates it; a zero time means never.
type ServerReport struct {
	UUID     string
	TaskType string // as the server was registered
	State    string // SERVING or STANDBY; the heartbeat changes no other state

	FetchCount     int64
	FetchItemCount int64
	SuccessCount   int64
	FailureCount   int64
	SkipCount      int64
	ExecuteTime    time.Duration
	InFlight       int64
	LastFetch      time.Time
	OldestInFlight time.Time // zero if nothing is in flight
	LastError      string
	LastErrorAt    time.Time
	FailingSince   time.Time // zero unless the calls of the dealer do nothing but fail
	FailedCalls    int64     // since an item last succeeded
	NextRunStart   time.Time // of the permit window
	NextRunEnd     time.Time

	// JudgeDeadInterval is the silence after which others may expire the server. Zero leaves what the row says.
	JudgeDeadInterval time.Duration

	// WatchingSince is the time since which the server has observed every heartbeat interval of the roster (S7). If
	// the server's previous heartbeat is too old, the database writes its own time instead.
	WatchingSince time.Time
	// WatchRange is the range of the last reply. The zero value watches all servers.
	WatchRange WatchRange
	// InRuns says that the server works in runs. The reply then has OpenRuns, NextFire and NextBegin.
	InRuns bool
	// DrainedPartition is the partition version for which the server has nothing in flight and starts nothing (N1).
	// It is 0 if there is none.
	DrainedPartition int64
	// Lowering lowers the server's share of max_in_flight (P10).
	Lowering InFlightLowering
}

// SendHeartbeat renews the servers' leases and reads what has changed. It returns the replies by the servers' uuids.
// A server without a reply is gone. SendHeartbeat must not be called concurrently.
//
// On a Galera cluster it returns an error if the node that it reached has not applied the registration of a server
// (F7). It runs one UPDATE and one SELECT, whatever the number of servers, queues and task types. They run in
// autocommit on a connection of their own, and lock only the rows of this process, so that nothing delays them (S1).
func (r *Roster) SendHeartbeat(ctx context.Context, b Heartbeat) (map[string]HeartbeatReply, error) {
	if len(b.Servers) == 0 {
		return map[string]HeartbeatReply{}, nil
	}
	query, args := b.update(r.DB.Dialect)
	err := r.DB.Retry(ctx, func() (bool, error) {
		_, err := r.DB.Heartbeat.ExecContext(ctx, r.DB.SQL(query), args...)
		return true, err // a repetition does no harm: it finds the token of the first attempt
	})
	if err != nil {
		return nil, fmt.Errorf("heartbeat: %w", err)
	}
	replies, err := b.readReplies(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("read the heartbeat's reply: %w", err)
	}
	if err := b.confirmGone(ctx, r, replies); err != nil {
		return nil, fmt.Errorf("heartbeat: %w", err)
	}
	return replies, nil
}
