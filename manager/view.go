package manager

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/internal/roster"
)

// ownView is the server's part of the roster as it was last read: the queues that it owns or waits for. After
// every call that may have changed the roster the rows must be read again.
type ownView struct {
	*base
	roster.View

	fresh   bool               // nothing has happened since the read that could have changed the rows
	reads   int                // how often the rows were read
	checked time.Time          // when the rows were last read or compared with the roster
	given   []roster.ViewQueue // that the server has given up to be merged, until they have merged (N3)
	owned   atomic.Int64       // number of queues that the server owns; the heartbeater and Status read it too
	seen    atomic.Pointer[seen]

	// The plan_version of the newest request which a heartbeat was made to report at once, and of the newest one which
	// the server has shown its owner to know.
	reported, shown int64
}

// seen is what the heartbeater reports of the view.
type seen struct{ plan, sum int64 }

// invalidate makes the next reconciliation read the rows again.
func (v *ownView) invalidate() { v.fresh = false }

// read reads the rows, unless they are fresh.
func (v *ownView) read(ctx context.Context) error {
	if v.fresh {
		return nil
	}
	ctx, cancel := v.withReadTimeout(ctx)
	defer cancel()
	rows, err := v.own().View(ctx, v.given...)
	if err != nil {
		return err
	}
	v.given = rows.Waiting(v.uuid, v.given)
	if n := rows.Changes.Queues(); n > 0 && n != v.Changes.Queues() {
		v.log.LogAttrs(ctx, slog.LevelInfo, fmt.Sprintf("the number of queues changes to %d: "+
			"the worker finishes what is in flight, and gives its queues up", n))
	}
	v.replace(rows)
	v.fresh, v.checked = true, time.Now()
	v.reads++
	return nil
}

func (v *ownView) replace(rows roster.View) {
	owned := int64(0)
	for _, q := range rows.Queues {
		if q.Owner == v.uuid {
			owned++
		}
	}
	v.View = rows
	v.owned.Store(owned)
	v.seen.Store(&seen{rows.NewestPlan(), rows.QueueSum(v.uuid)})
}

// mustRead reports whether a heartbeat's reply calls for a fresh read.
func (v *ownView) mustRead(p roster.HeartbeatReply) bool {
	return !v.matches(p) || v.requesterUnaware()
}

// matches reports whether the rows are the same as at the heartbeat (S2). Each change of a queue's owner or requester
// raises the number of the servers that read it. A plan that changed only other servers' queues does not count, because
// in a large roster that happens with each heartbeat.
func (v *ownView) matches(p roster.HeartbeatReply) bool {
	return v.isCurrent(p.QueueVersion) && v.QueueTotal == p.QueueTotal && v.PartitionVersion == p.PartitionVersion
}

// isCurrent reports whether the rows were read under that number. A number that is unknown is never current.
func (v *ownView) isCurrent(version int64) bool { return version >= 0 && version == v.Version }

// requesterUnaware reports whether a requester of an own queue did not know of its request at the last read (H4).
func (v *ownView) requesterUnaware() bool {
	return slices.ContainsFunc(v.Queues, func(q roster.ViewQueue) bool {
		return q.Owner == v.uuid && q.Requester != "" && !q.RequesterInformed
	})
}

// hasIncoming reports whether the server waits for a queue of another server.
func (v *ownView) hasIncoming() bool {
	return slices.ContainsFunc(v.Queues, func(q roster.ViewQueue) bool { return q.Owner != v.uuid })
}

// hasNewRequests reports whether the server waits for queues whose owners it has not shown yet that it knows.
func (v *ownView) hasNewRequests() bool { return v.NewestRequest(v.uuid) > v.shown }

// pollAt returns when the server reads early whether a queue has arrived, or the zero time if it has no reason to: no
// other server owns a queue that it requests, and it awaits no requesters. A server that keeps working reads its
// requests with each heartbeat only. When many servers join, every other server has to hand a queue over, and polls
// by all of them would be most of the load of the database.
func (v *ownView) pollAt(awaitsRequesters bool) time.Time {
	if !awaitsRequesters && !v.hasIncoming() {
		return time.Time{}
	}
	return v.checked.Add(pollInterval)
}

// unchanged reports whether the queues of the server are still the same. It sends one statement, which reads no view
// (S8), and returns false if the statement fails.
func (v *ownView) unchanged(ctx context.Context) bool {
	ctx, cancel := v.withReadTimeout(ctx)
	defer cancel()
	version, err := v.own().QueueVersion(ctx)
	return err == nil && v.isCurrent(version)
}
