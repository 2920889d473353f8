package roster

import (
	"fmt"
	"strings"
)

// WatchRange is whom a server watches: the next 32 in the order of their uuids, and behind the last comes the first. So
// everybody is watched, and a heartbeat costs the same in a large roster as in a small one. If a server dies together
// with those that watch it, there is one before them that lives, watches the first of them, and then buries all.
//
// It is kept as the ends of the two ranges of uuids, since nobody comes or goes without another membership_version; to
// find the next 32 again with each heartbeat would be a third of what that costs MariaDB. With another version the next
// heartbeat asks for the ends. Until then the old ranges hold, also for who has come into them; only if all 32 have gone
// at once does somebody watch nobody, for one heartbeat.
//
// The zero value is all servers.
type WatchRange struct {
	last, first string // from the server's own uuid to last; or, if that is empty, to the end, and from the beginning to first, or to the end
	membership  int64  // the version for which that is so
	stale       bool   // there is another version by now
}

// watchedServers is how many servers each one watches.
const watchedServers = 32

// asks reports that the next heartbeat asks for the ends.
func (r WatchRange) needsEnds() bool { return r.stale || r == WatchRange{} }

// next is the ring when a pulse has told of the version of the membership, and of the ends if they were asked for.
func (r WatchRange) next(membership int64, asked WatchRange) WatchRange {
	if r.needsEnds() {
		r.last, r.first, r.membership = asked.last, asked.first, membership
	}
	r.stale = r.membership != membership
	return r
}

// isDead is true of a row of schedule_server, d, that is silent, or comes from before the clock was set back.
const isDead = `(d.heartbeat_time < {ago d.judge_dead_interval_ms} OR d.heartbeat_time > {ago -d.judge_dead_interval_ms})`

// watchColumns is the columns for HeartbeatReply.AnyDead and the ends of the ring, with what is bound to them.
func (r *Roster) watchColumns(servers []ServerReport) (columns string, args []any) {
	var dead, last, first strings.Builder
	var deadArgs, lastArgs, firstArgs []any
	for _, s := range servers {
		dead.WriteString(" WHEN s.uuid = ? AND (")
		deadArgs = append(deadArgs, s.UUID)
		exists := func(hint, within string, uuids ...any) {
			dead.WriteString(`EXISTS (SELECT 1 FROM schedule_server d` + hint + ` WHERE d.task_type = ? AND d.own_sign = ?` + within + ` AND ` + isDead + `)`)
			deadArgs = append(append(deadArgs, s.TaskType, r.OwnSign), uuids...)
		}
		switch ring := s.WatchRange; {
		case ring.last != "":
			exists(r.DB.ByKey, ` AND d.uuid > ? AND d.uuid <= ?`, s.UUID, ring.last)
		case ring.first != "":
			exists(r.DB.ByKey, ` AND d.uuid > ?`, s.UUID)
			dead.WriteString(" OR ")
			exists(r.DB.ByKey, ` AND d.uuid <= ?`, ring.first)
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

// cases is a CASE of the branches, of which there may be none.
func cases(branches, otherwise string) string {
	if branches == "" {
		return otherwise
	}
	return "CASE" + branches + " ELSE " + otherwise + " END"
}
