package roster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// WatchReply is what a heartbeat's reply says about the servers that a server watches (S7).
type WatchReply struct {
	following
	AnyDead bool       // a server in the watch range has been silent for its judge_dead_interval
	Range   WatchRange `db:"-"` // the servers that this one watches, for its next heartbeat
}

// following has the uuids of the servers that come after a server in the order of the uuids, and those of the first
// servers of the roster.
type following struct {
	Next1, Next2, Next3, Next4     sqldb.Text
	First1, First2, First3, First4 sqldb.Text
}

func (f following) list() []string {
	return []string{
		string(f.Next1), string(f.Next2), string(f.Next3), string(f.Next4),
		string(f.First1), string(f.First2), string(f.First3), string(f.First4),
	}
}

// columns implements replyOption. Those of following are constants if no server of the process asks for them.
func (WatchReply) columns(b Heartbeat) string {
	asked := slices.ContainsFunc(b.Servers, func(s ServerReport) bool { return !s.WatchRange.current })
	columns := make([]string, 0, 2*watchedServers+1)
	for _, behind := range []string{` AND w.uuid > s.uuid`, ``} {
		for i := range watchedServers {
			column := `NULL`
			if asked {
				column = fmt.Sprintf(`CASE WHEN v.asks = 1 THEN (SELECT w.uuid FROM schedule_server w
					WHERE w.task_type = s.task_type AND w.own_sign = s.own_sign%s
					ORDER BY w.task_type, w.own_sign, w.uuid LIMIT 1 OFFSET %d) END`, behind, i)
			}
			columns = append(columns, column)
		}
	}
	return strings.Join(append(columns, anyDeadColumn), ", ")
}

// watchRow is what the heartbeat asks, for one server, about the servers that it watches.
type watchRow struct {
	Asks     int64     `db:"asks"` // 1 asks for the servers that follow
	Watched1 sqldb.Key `db:"watched_1"`
	Watched2 sqldb.Key `db:"watched_2"`
	Watched3 sqldb.Key `db:"watched_3"`
	Watched4 sqldb.Key `db:"watched_4"`
}

func (r WatchRange) row() watchRow {
	w := r.servers
	row := watchRow{
		Watched1: sqldb.Key(w[0]), Watched2: sqldb.Key(w[1]), Watched3: sqldb.Key(w[2]), Watched4: sqldb.Key(w[3]),
	}
	if !r.current {
		row.Asks = 1
	}
	return row
}

// WatchRange is the servers that a server watches: the next four in the order of their uuids, where the first follows
// the last. So each server is watched, and a heartbeat costs the same in a large roster as in a small one. If a server
// dies together with the servers that watch it, a live server before them watches the first of them, and then expires
// all.
//
// The heartbeat looks the four up by their keys. No server joins or leaves without a new membership_version. To find
// the next servers again with each heartbeat, or to read a range of uuids that differs by server, would cost MySQL and
// MariaDB a look at each server of the roster. After a new version the next heartbeat reads who follows. Until then a
// server watches the old ones. Only if all four leave at once does it watch none, for one heartbeat. A server that has
// joined is not dead so soon.
//
// The zero value is not known yet: it watches none.
type WatchRange struct {
	servers    [watchedServers]string // empty at the end if the roster has fewer
	membership int64                  // the version that they were read for
	current    bool                   // there was no newer version at the last heartbeat
}

// watchedServers is how many servers each server watches.
const watchedServers = 4

// next returns the range after a reply with the version of the membership. read are the servers that follow, if the
// heartbeat has asked for them, each with the own uuid or empty where there is none.
func (r WatchRange) next(membership int64, own string, read []string) WatchRange {
	if !r.current {
		r = WatchRange{membership: membership}
		n := 0
		for _, uuid := range read {
			if n < watchedServers && uuid != "" && uuid != own && !slices.Contains(r.servers[:n], uuid) {
				r.servers[n] = uuid
				n++
			}
		}
	}
	r.current = r.membership == membership
	return r
}

// IsDead is a condition on a row d of schedule_server: the server has been silent for its judge_dead_interval, or its
// last heartbeat is from before the clock was set back.
const IsDead = `(d.heartbeat_time < {ago d.judge_dead_interval_ms}
	OR d.heartbeat_time > {ago -d.judge_dead_interval_ms})`

// Dead does what IsDead does, for a server whose last heartbeat is so old.
func Dead(age, judgeDead time.Duration) bool { return age.Abs() > judgeDead }

// anyDeadColumn is the column for WatchReply.AnyDead: whether one of the watched servers is dead. Each is looked up
// by its key.
var anyDeadColumn = func() string {
	var column strings.Builder
	for i := range watchedServers {
		fmt.Fprintf(&column, ` WHEN EXISTS (SELECT 1 FROM schedule_server d
			WHERE d.uuid = v.watched_%d AND `+IsDead+`) THEN 1`, i+1)
	}
	return `CASE` + column.String() + ` ELSE 0 END`
}()
