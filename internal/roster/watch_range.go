package roster

import (
	"fmt"
	"strings"
)

// WatchRange is the servers that a server watches: the next 32 in the order of their uuids, where the first follows
// the last. So each server is watched, and a heartbeat costs the same in a large roster as in a small one. If a
// server dies together with the servers that watch it, a live server before them watches the first of them, and then
// expires all.
//
// It is stored as the ends of two ranges of uuids, since no server joins or leaves without a new membership_version.
// To find the next 32 servers again with each heartbeat would cost MariaDB half as much again. After a new version
// the next heartbeat reads the ends. Until then the old ranges hold, also for servers that have joined within them.
// Only if all 32 servers leave at once does a server watch none, for one heartbeat.
//
// The zero value is all servers.
type WatchRange struct {
	// The range is from the server's own uuid to last. If last is empty, it is from the own uuid to the end, and from the
	// beginning to first, or all servers if first is empty, too.
	last, first string
	membership  int64 // the version that the ends were read for
	stale       bool  // there is a newer version
}

// watchedServers is how many servers each server watches.
const watchedServers = 32

// needsEnds reports whether the next heartbeat reads the ends.
func (r WatchRange) needsEnds() bool { return r.stale || r == WatchRange{} }

// next returns the range after a reply with the version of the membership. The ends are in read, if the heartbeat
// read them.
func (r WatchRange) next(membership int64, read WatchRange) WatchRange {
	if r.needsEnds() {
		r.last, r.first, r.membership = read.last, read.first, membership
	}
	r.stale = r.membership != membership
	return r
}

// isDead is a condition on a row d of schedule_server: the server has been silent for its judge_dead_interval, or its
// last heartbeat is from before the clock was set back.
const isDead = `(d.heartbeat_time < {ago d.judge_dead_interval_ms} OR d.heartbeat_time > {ago -d.judge_dead_interval_ms})`

// watchColumns returns the columns for HeartbeatReply.AnyDead and the ends of the watch range, with their parameters.
func (b Heartbeat) watchColumns(r *Roster) (columns string, args []any) {
	var dead, last, first strings.Builder
	var deadArgs, lastArgs, firstArgs []any
	for _, s := range b.Servers {
		dead.WriteString(" WHEN s.uuid = ? AND (")
		deadArgs = append(deadArgs, s.UUID)
		exists := func(hint, within string, uuids ...any) {
			dead.WriteString(`EXISTS (SELECT 1 FROM schedule_server d` + hint + ` WHERE d.task_type = ? AND d.own_sign = ?` + within + ` AND ` + isDead + `)`)
			deadArgs = append(append(deadArgs, s.TaskType, r.OwnSign), uuids...)
		}
		switch watched := s.WatchRange; {
		case watched.last != "":
			exists(r.DB.ByKey, ` AND d.uuid > ? AND d.uuid <= ?`, s.UUID, watched.last)
		case watched.first != "":
			exists(r.DB.ByKey, ` AND d.uuid > ?`, s.UUID)
			dead.WriteString(" OR ")
			exists(r.DB.ByKey, ` AND d.uuid <= ?`, watched.first)
		default:
			exists("", "")
		}
		dead.WriteString(") THEN 1")
		if s.WatchRange.needsEnds() {
			const end = ` WHEN s.uuid = ? THEN (SELECT w.uuid FROM schedule_server w%s WHERE w.task_type = ? AND w.own_sign = ? AND w.uuid > ? ORDER BY w.uuid LIMIT 1 OFFSET %d)`
			fmt.Fprintf(&last, end, r.DB.ByKey, watchedServers-1)
			fmt.Fprintf(&first, end, r.DB.ByKey, watchedServers-1)
			lastArgs = append(lastArgs, s.UUID, s.TaskType, r.OwnSign, s.UUID)
			firstArgs = append(firstArgs, s.UUID, s.TaskType, r.OwnSign, "")
		}
	}
	return cases(dead.String(), "0") + `, ` + cases(last.String(), "NULL") + `, ` + cases(first.String(), "NULL"), append(append(deadArgs, lastArgs...), firstArgs...)
}

// cases returns a CASE of the branches, or otherwise if there are none.
func cases(branches, otherwise string) string {
	if branches == "" {
		return otherwise
	}
	return "CASE" + branches + " ELSE " + otherwise + " END"
}
