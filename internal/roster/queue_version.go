package roster

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
)

// A server has a number of its own, queue_version, which says that its queues have changed (S2). Each transaction that
// changes what a server reads of its queues raises the number of that server. Heartbeats and polls read it without a
// lock and never write it. So it is in a table of its own: in schedule_server, a plan would wait for the heartbeats of
// all servers whose queues it changes, and they for the plan.

// noQueueVersion is the number of a server whose row is missing, because it was deleted by hand. The server then reads
// its queues with each heartbeat.
const noQueueVersion = -1

// queueVersionColumn is the number of a server, whose task type, own_sign and uuid are columns or parameters.
func queueVersionColumn(taskType, ownSign, uuid string) string {
	return `COALESCE((SELECT n.queue_version FROM schedule_server_version n WHERE n.task_type = ` + taskType +
		` AND n.own_sign = ` + ownSign + ` AND n.uuid = ` + uuid + `), ` + strconv.Itoa(noQueueVersion) + `)`
}

// QueueVersion reads the number of the server, for a caller that polls. It costs a fraction of View.
func (s Server) QueueVersion(ctx context.Context) (int64, error) {
	n, err := sqldb.Value[int64](ctx, s.roster.DB, `SELECT `+queueVersionColumn("?", "?", "?"),
		s.taskType, s.roster.OwnSign, s.uuid)
	return n, sqldb.Wrap(err, "ask whether the queues of %s have changed", s.uuid)
}

// insertQueueVersion gives a new server its number.
func insertQueueVersion(ctx context.Context, l *LockTx, uuid string) error {
	_, err := l.Exec(ctx, `INSERT INTO schedule_server_version (task_type, own_sign, uuid) VALUES (?, ?, ?)`,
		l.TaskType, l.OwnSign, uuid)
	return sqldb.Wrap(err, "insert the queue_version")
}

// deleteQueueVersions deletes the numbers of servers that have left the roster.
func deleteQueueVersions(ctx context.Context, l *LockTx, uuids []string) error {
	_, err := l.ExecIn(ctx, uuids, `DELETE FROM schedule_server_version WHERE `+ofTask+` AND uuid IN ({ids})`,
		l.TaskType, l.OwnSign)
	return sqldb.Wrap(err, "delete the queue_version")
}

const raiseQueueVersion = `UPDATE schedule_server_version SET queue_version = queue_version + 1 WHERE ` + ofTask

// queuesChangedFor makes servers read their queues. An empty uuid stands for none, and a uuid may occur several times.
func (l *LockTx) queuesChangedFor(ctx context.Context, uuids ...string) error {
	uuids = slices.Compact(slices.Sorted(slices.Values(uuids)))
	uuids = slices.DeleteFunc(uuids, func(uuid string) bool { return uuid == "" })
	_, err := l.ExecIn(ctx, uuids, raiseQueueVersion+` AND uuid IN ({ids})`, l.TaskType, l.OwnSign)
	return sqldb.Wrap(err, "raise the queue_version of workers")
}

// queuesChangedForAll makes all servers of the roster read their queues.
func (l *LockTx) queuesChangedForAll(ctx context.Context) error {
	_, err := l.Exec(ctx, raiseQueueVersion, l.TaskType, l.OwnSign)
	return sqldb.Wrap(err, "raise the queue_version of all workers")
}

// changedFor returns the servers for which changes of queues are news, except one.
func changedFor(changes []plan.Change, except string) (uuids []string) {
	for _, c := range changes {
		uuids = append(uuids, c.OldOwner, c.OldRequester, c.Owner, c.Requester)
	}
	return slices.DeleteFunc(uuids, func(uuid string) bool { return uuid == except })
}

// QueueSum returns a number that differs, in all likelihood, if the server owns or requests other queues or under
// another epoch. A server reports with each heartbeat which sum it has read under which number. With both, the audit
// finds edits by hand, which raise no number.
func (v View) QueueSum(uuid string) int64 {
	queues := make([]plan.Queue, len(v.Queues))
	for i, q := range v.Queues {
		queues[i] = plan.Queue{ID: q.ID, Owner: q.Owner, Requester: q.Requester, Epoch: q.Epoch}
	}
	return queueSum(uuid, queues)
}

func queueSum(uuid string, queues []plan.Queue) int64 {
	var lines []string
	for _, q := range queues {
		if q.Owner == uuid || q.Requester == uuid {
			lines = append(lines, strings.Join([]string{q.ID, q.Owner, q.Requester, strconv.FormatInt(q.Epoch, 10)}, "\x00"))
		}
	}
	slices.Sort(lines)
	h := fnv.New64a()
	for _, line := range lines {
		_, _ = h.Write([]byte(line + "\n")) // it returns no error
	}
	return int64(h.Sum64() % maxQueueSum)
}

// maxQueueSum is above all sums, and within the bounds of the column.
const maxQueueSum = 1_000_000_000_000_000_000

// findEdits raises the numbers of the servers that have reported other queues than they have, because an edit by hand
// raises no number. A server whose queues have changed since its last heartbeat may be among them: it reads them once
// more.
func (p Planner) findEdits(ctx context.Context, servers []ServerRow, queues []plan.Queue) error {
	for _, s := range servers {
		if s.ReadSum == queueSum(s.UUID, queues) {
			continue
		}
		_, err := p.roster.DB.Exec(ctx, raiseQueueVersion+` AND uuid = ?`+p.roster.DB.Limits,
			p.taskType, p.roster.OwnSign, s.UUID)
		if err != nil {
			return fmt.Errorf("raise the queue_version of %s: %w", s.UUID, err)
		}
	}
	return nil
}
