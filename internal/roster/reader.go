package roster

import (
	"context"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
)

// Reader reads what the planner needs of one roster, in a transaction under the lock row ([LockTx.Reader]) or without
// ([Roster.Reader]).
type Reader struct {
	sqldb.Reading
	taskType string
	ownSign  string

	// locked is the transaction under the lock row; nil without one. It knows the changes of queues that wait, and
	// the time by which reservations end (P13): with the time that it read after the lock, the plan and the note of the
	// next end agree. Without one that time is the clock of the statement.
	locked *LockTx
}

// Reader returns a reader of the roster of a task type, outside a transaction.
func (r *Roster) Reader(taskType string) Reader { return r.ReaderOn(r.DB.Store, taskType) }

// ReaderOn returns a reader that reads on a pool, or in a transaction that does not hold the lock row.
func (r *Roster) ReaderOn(db sqldb.Queryer, taskType string) Reader {
	return Reader{Reading: r.DB.On(db), taskType: taskType, ownSign: r.OwnSign}
}

// Reader returns a reader in the transaction.
func (l *LockTx) Reader() Reader {
	return Reader{
		Reading: sqldb.Reading{Queryer: l.Raw, Dialect: l.Dialect}, taskType: l.TaskType, ownSign: l.OwnSign, locked: l,
	}
}

// ServerRow is what planning and expiring need of a row of schedule_server. [Reader.Servers] reads the fields in this
// order.
type ServerRow struct {
	UUID              string
	Host              string
	State             string
	Registered        time.Time
	Heartbeat         time.Time
	JudgeDeadInterval time.Duration
	Weight            int
	PlannerVersion    int // the rules that its program knows (P11)
	Labels            plan.Labels
	Name              string   // of its process (P13); empty: none
	Process           string   // id of its process (P15); empty: unknown
	New               bool     // it registered within newFor
	Witness           string   // the lock that its process holds until it ends (S15); empty: none
	HungQueues        []string // queues that the server must not get (P9)
	Share             InFlightShare
	ReadSum           int64 // what it read, as QueueSum
}

// PlanServer returns the server as the planner takes it.
func (s ServerRow) PlanServer() plan.Server {
	return plan.Server{
		UUID: s.UUID, Host: s.Host, Name: s.Name, Labels: s.Labels, RegisterTime: s.Registered, Eligible: MayOwn(s.State),
		Leaving: s.State == StateLeaving, Weight: s.Weight, New: s.New, HungQueues: s.HungQueues,
	}
}

// Servers returns the servers, the oldest registration first.
func (r Reader) Servers(ctx context.Context) (servers []ServerRow, err error) {
	servers, err = sqldb.Records[ServerRow](ctx, r, `SELECT uuid, host_name, state, register_time, heartbeat_time,
		judge_dead_interval_ms, weight, planner_version, labels, name, process, `+isNew+`, witness, hung_queues,
		`+shareColumns+`, read_sum
		FROM schedule_server WHERE `+ofTask+` ORDER BY register_time, uuid`, r.taskType, r.ownSign)
	return servers, sqldb.Wrap(err, "read the workers")
}

// PlanInput is the input of the planner.
type PlanInput struct {
	Queues  []plan.Queue
	Servers []plan.Server
	Limits  plan.Limits

	processes []string          // of the servers
	waiting   map[string]string // why queues have no owner, as the last plan wrote it
	loadMoves int               // load_moves_per_hour
}

// Plan computes a plan.
func (in PlanInput) Plan() plan.Result { return plan.Plan(in.Queues, in.Servers, in.Limits) }

// PlanInput reads the settings, the queues and what else a plan for these servers needs.
func (r Reader) PlanInput(ctx context.Context, servers []ServerRow) (in PlanInput, err error) {
	if in.Limits, in.loadMoves, err = r.limitsAndLoads(ctx); err != nil {
		return in, err
	}
	if in.Queues, in.waiting, err = r.queues(ctx); err != nil {
		return in, err
	}
	for _, s := range servers {
		in.Servers, in.processes = append(in.Servers, s.PlanServer()), append(in.processes, s.Process)
	}
	return in, in.readElsewhere(ctx, r)
}

// limitsAndLoads returns the settings that the planner needs, with the loads if it is to even them, and how many moves
// per hour may even the load.
func (r Reader) limitsAndLoads(ctx context.Context) (limits plan.Limits, perHour int, err error) {
	limits, perHour, err = r.limits(ctx)
	if err == nil && perHour > 0 {
		limits.Loads, err = r.loads(ctx, perHour)
	}
	return limits, perHour, err
}

// limits returns the settings without the loads, and how many moves per hour may even the load: none if it is not to be
// even.
func (r Reader) limits(ctx context.Context) (limits plan.Limits, perHour int, err error) {
	type settings struct {
		plan.Limits
		Balance string `db:"balance"`
		PerHour int    `db:"load_moves_per_hour"`
	}
	// If the row was deleted by hand, the roster goes on without settings.
	s, err := sqldb.Value[settings](ctx, r, `SELECT {columns} FROM schedule_task_type WHERE task_type = ?`,
		r.taskType)
	s.InFlight, s.Servers, s.ServersPerHost = max(0, s.InFlight), max(0, s.Servers), max(0, s.ServersPerHost)
	if s.Balance == BalanceLoad {
		perHour = max(1, s.PerHour)
	}
	return s.Limits, perHour, sqldb.Wrap(err, "read the limits")
}

// validEpoch is a condition on a row of schedule_queue: the epoch can still rise. Neither the planner nor the owner
// knows of a queue with another epoch, so that it stops no other queue (S13).
var validEpoch = fmt.Sprintf(`epoch BETWEEN 0 AND %d`, sqldb.MaxEpoch)

// queues returns the queues, and marks those that get no owner before they are removed or merged. It also returns why
// queues have no owner.
func (r Reader) queues(ctx context.Context) (queues []plan.Queue, waiting map[string]string, err error) {
	changes, err := r.changes(ctx)
	if err != nil {
		return nil, nil, err
	}
	waiting = map[string]string{}
	now, args := "{now}", []any{r.taskType, r.ownSign}
	if r.locked != nil {
		now, args = "?", append([]any{r.Dialect.Time(r.locked.Now)}, args...)
	}
	type row struct {
		ID               string
		Total            int
		Owner, Requester string
		Epoch            int64
		ReservedFor      string
		Pin              plan.Selector
		WaitsFor         string
	}
	list, err := sqldb.Records[row](ctx, r, `SELECT queue_id, COALESCE(queue_total, 0), cur_server, req_server, epoch,
			CASE WHEN reserved_until > `+now+` AND `+soonReserved+` THEN reserved_for END, labels, waits_for
		FROM schedule_queue LEFT JOIN schedule_queue_setting USING (task_type, own_sign, queue_id)
		WHERE `+ofTask+` AND `+validEpoch+` ORDER BY queue_id`, args...)
	if err != nil {
		return nil, nil, fmt.Errorf("read the queues: %w", err)
	}
	for _, q := range list {
		queues = append(queues, plan.Queue{
			ID: q.ID, Owner: q.Owner, Requester: q.Requester, Epoch: q.Epoch, ReservedFor: q.ReservedFor, Pin: q.Pin,
			Removing: changes.keepsFree(q.ID, q.Owner, q.Total),
		})
		if q.WaitsFor != "" {
			waiting[q.ID] = q.WaitsFor
		}
	}
	return queues, waiting, nil
}

// newFor is how long a server counts as new: longer than a plan takes to be repeated because it skipped rows (L5).
const newFor = 10 * time.Second

// isNew is a column of schedule_server, 1 if the server counts as new. A time in the future was written before the
// clock was set back, when the server was there already. A server whose name another server had within the longest
// return is a restart and not new: it has got its queues back, or other servers have had them for long enough.
var isNew = fmt.Sprintf(`CASE WHEN register_time > {ago %d} AND register_time <= {now} THEN
	CASE WHEN name <> '' AND EXISTS (SELECT 1 FROM schedule_server_history h WHERE h.task_type = schedule_server.task_type
		AND h.own_sign = schedule_server.own_sign AND h.name = schedule_server.name AND h.left_time > {ago %d})
		THEN 0 ELSE 1 END
	ELSE 0 END`, newFor.Milliseconds(), MaxReturn.Milliseconds())
