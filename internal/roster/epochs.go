package roster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
)

// leastRaise is by how much the epochs rise at least when history was lost, and at most twice as much (H8).
const leastRaise = 1_000_000

// raisePause is the time after a raise in which the next one waits for an operator (H8).
const raisePause = 10 * time.Minute

// mostReport bounds the report of a loss, and mostProofs how many proofs of one server it has.
const (
	mostReport = 2_000
	mostProofs = 3
)

// HistoryCheck is the result of CheckHistory.
type HistoryCheck struct {
	Lost    bool                 // the database has lost history
	Raised  bool                 // this call has raised the epoch_floor
	Waiting bool                 // the epochs were raised a short time ago, and an operator is to acknowledge that first
	Rows    map[string]Ownership // of the queues in the memory
}

// CheckHistory compares what a process remembers with the rows (H7). If they contradict it, it compares again under the
// lock row, which only a writable primary lets it write, and raises the epoch_floor of the environment above all epochs
// that the lost history may have used (H8). Of several servers that find one loss, the first does so, and the others
// add their names to its report. Plans then raise the epochs of the queues, each task type under its own lock row.
// CheckHistory also deletes the rows of the process's former sessions, which no process renews, as an expiry does.
func (p Planner) CheckHistory(ctx context.Context, m Memory) (c HistoryCheck, err error) {
	proofs, rows, err := p.contradictions(ctx, p.roster.DB, m)
	if err != nil || len(proofs) == 0 {
		return HistoryCheck{Rows: rows}, sqldb.Wrap(err, "check the history of %s$%s", p.taskType, p.roster.OwnSign)
	}
	if err := p.roster.insertEnvironment(ctx); err != nil {
		return c, err
	}
	err = p.roster.UnderLock(ctx, p.taskType, func(ctx context.Context, l *LockTx) error {
		proofs, rows, err := p.contradictions(ctx, l, m)
		c = HistoryCheck{Rows: rows}
		if err != nil || len(proofs) == 0 {
			return err
		}
		c.Lost = true
		if c.Raised, c.Waiting, err = p.reportLoss(ctx, l, proofs, m.High()); err != nil {
			return err
		}
		return withdraw(ctx, l, proofs)
	})
	return c, sqldb.Wrap(err, "check the history of")
}

// withdraw deletes the rows of the sessions with lost heartbeats, as an expiry does: a plan is due, and gives their
// queues to other servers. It does not plan itself: all processes withdraw at once, and few plans serve them all.
func withdraw(ctx context.Context, l *LockTx, proofs []Contradiction) error {
	var sessions []ServerRow
	for _, proof := range proofs {
		if proof.UUID != "" {
			sessions = append(sessions, ServerRow{UUID: proof.UUID})
		}
	}
	moved, err := MoveToHistory(ctx, l, reasonLeft, sessions)
	if err != nil || len(moved) == 0 {
		return err
	}
	var events []Event
	for uuid := range moved {
		events = append(events, Event{Kind: EventLeft, from: uuid, Actor: uuid})
	}
	if err := l.Record(ctx, events...); err != nil {
		return err
	}
	return l.membershipChanged(ctx)
}

// contradictions compares what a process remembers with the rows. It also returns the rows of its queues.
func (p Planner) contradictions(ctx context.Context, q sqldb.Eacher, m Memory,
) ([]Contradiction, map[string]Ownership, error) {
	r, err := p.rows(ctx, q, m)
	if err != nil {
		return nil, nil, err
	}
	return m.Contradictions(r, p.taskType), r.Queues, nil
}

// Loss is a loss of history that no operator has acknowledged.
type Loss struct {
	At       time.Time // when a server found it, by the database's clock
	TaskType string    // of that server
	Report   string    // what is known
	Now      time.Time // by the same clock
}

// environment is what the row of an environment says about losses.
type environment struct {
	Floor int64
	Loss
}

func readEnvironment(ctx context.Context, q sqldb.Eacher, ownSign string) (environment, error) {
	e, _, err := sqldb.Record[environment](ctx, q, `SELECT epoch_floor, lost_at, lost_task, lost_report, {now}
		FROM schedule_environment WHERE own_sign = ?`, ownSign)
	return e, sqldb.Wrap(err, "read the environment %s", ownSign)
}

// Loss returns the loss of history that no operator has acknowledged, and whether there is one.
func (r *Roster) Loss(ctx context.Context) (Loss, bool, error) {
	e, err := readEnvironment(ctx, r.DB, r.OwnSign)
	return e.Loss, !e.At.IsZero(), err
}

// reportLoss raises the epoch_floor of the environment, unless another server has done so since the process last heard
// of the roster, or a short time ago. It writes what is known of the loss.
func (p Planner) reportLoss(ctx context.Context, l *LockTx, proofs []Contradiction, high int64,
) (raised, waiting bool, err error) {
	e, err := readEnvironment(ctx, l, l.OwnSign)
	if err != nil {
		return false, false, err
	}
	var texts []string
	covered := true
	for _, proof := range proofs {
		covered = covered && proof.Epoch <= e.Floor
		if len(texts) < mostProofs {
			texts = append(texts, proof.Text)
		}
	}
	report := strings.Join(texts, "; ")
	if more := len(proofs) - len(texts); more > 0 {
		report += fmt.Sprintf("; and %d more", more)
	}
	switch recent := !e.At.IsZero() && l.Now.Sub(e.At).Abs() < raisePause; {
	case covered && e.At.IsZero(): // an operator has acknowledged it
		return false, false, nil
	case covered:
		return false, false, addToReport(ctx, l, e, "found by "+ServerName(p.actor)+", too")
	case recent:
		text := fmt.Sprintf("lost again, and the epochs are raised when this is acknowledged, found by %s: %s",
			ServerName(p.actor), report)
		return false, true, addToReport(ctx, l, e, text)
	}
	return true, false, p.raiseFloor(ctx, l, e, high, fmt.Sprintf("found by %s: %s", ServerName(p.actor), report))
}

// addToReport adds a text to the report of a loss, unless it is there already, or the report is long.
func addToReport(ctx context.Context, l *LockTx, e environment, text string) error {
	if strings.Contains(e.Report, text) || len(e.Report)+len(text) > mostReport {
		return nil
	}
	_, err := l.Exec(ctx, `UPDATE schedule_environment SET lost_report = ? WHERE own_sign = ?`,
		e.Report+"; "+sqldb.Clean(text), l.OwnSign)
	return sqldb.Wrap(err, "add to the report of the loss")
}

// raiseFloor raises the epoch_floor of the environment by a random number above all epochs that are known. It is a
// compare-and-set: the epoch_floor is the generation of the roster.
func (p Planner) raiseFloor(ctx context.Context, l *LockTx, e environment, high int64, report string) error {
	var queues, deleted int64
	err := l.QueryRow(ctx, `SELECT
		(SELECT COALESCE(MAX(epoch), 0) FROM schedule_queue WHERE own_sign = ? AND `+validEpoch+`),
		(SELECT COALESCE(MAX(epoch_high), 0) FROM schedule_task_running WHERE own_sign = ?)`,
		l.OwnSign, l.OwnSign).Scan(&queues, &deleted)
	if err != nil {
		return fmt.Errorf("read the highest epoch: %w", err)
	}
	floor := floorAbove(max(high, queues, deleted, e.Floor))
	if floor >= sqldb.MaxEpoch {
		return fmt.Errorf("history was lost (%s), and no epoch is left below %d to go on with", report, sqldb.MaxEpoch)
	}
	n, err := l.Exec(ctx, `UPDATE schedule_environment SET epoch_floor = ?, lost_at = {now}, lost_task = ?,
		lost_report = ? WHERE own_sign = ? AND epoch_floor = ?`, floor, l.TaskType, sqldb.Clean(report), l.OwnSign, e.Floor)
	if err == nil && n == 0 {
		err = sqldb.ErrRaced
	}
	if err != nil {
		return fmt.Errorf("raise the epoch_floor: %w", err)
	}
	return l.Record(ctx, Event{
		Kind: EventHistory, Actor: p.actor,
		Reason: fmt.Sprintf("the database has lost history; all epochs rise above %d; %s", floor, report),
	})
}

// floorAbove returns a random floor above an epoch.
func floorAbove(epoch int64) int64 { return epoch + leastRaise + rand.Int64N(leastRaise) }

// insertEnvironment inserts the row of the environment if there is none.
func (r *Roster) insertEnvironment(ctx context.Context) error {
	var n int
	err := r.DB.QueryRow(ctx, `SELECT COUNT(*) FROM schedule_environment WHERE own_sign = ?`, r.OwnSign).Scan(&n)
	if err == nil && n == 0 {
		_, err = r.DB.Exec(ctx, `INSERT INTO schedule_environment (own_sign) VALUES (?)`, r.OwnSign)
		if r.DB.Class(err) == sqldb.Duplicate {
			err = nil
		}
	}
	return sqldb.Wrap(err, "insert the environment %s", r.OwnSign)
}

// environmentFloor is the epoch_floor of the environment of a lock row, whose name or alias is given.
func environmentFloor(lockRow string) string {
	return `COALESCE((SELECT e.epoch_floor FROM schedule_environment e WHERE e.own_sign = ` + lockRow + `.own_sign), 0)`
}

// heldQueues are queues whose epochs could not be raised, because other transactions hold their rows.
type heldQueues map[string]bool

func (h heldQueues) ids() []string {
	list := make([]string, 0, len(h))
	for id := range h {
		list = append(list, id)
	}
	slices.Sort(list)
	return list
}

// among returns the changes of the held queues, and without the others.
func (h heldQueues) among(changes []plan.Change) []plan.Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c plan.Change) bool { return !h[c.QueueID] })
}

func (h heldQueues) without(changes []plan.Change) []plan.Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c plan.Change) bool { return h[c.QueueID] })
}

// epochExtension raises the epochs of queues after history was lost (H8).
func epochExtension() extension {
	return extension{
		due: func(lockRow string) string { return `epoch_floor < ` + environmentFloor(lockRow) },
		release: func(queue string) string { // otherwise a plan raises the epoch first
			return fmt.Sprintf(`%[1]s.epoch > (SELECT r.epoch_floor FROM schedule_task_running r
				WHERE r.task_type = %[1]s.task_type AND r.own_sign = %[1]s.own_sign) AND %[1]s.epoch > %[2]s`,
				queue, environmentFloor(queue))
		},
		before: func(ctx context.Context, p *planning) (err error) {
			p.held, err = raiseEpochs(ctx, p.l, p.in.Queues, p.actor)
			return err
		},
	}
}

// raiseEpochs raises the epochs of the queues that are not above the epoch_floor, and writes them to queues. Their
// owners stay, and notice the change as any other of their rows. It returns the queues whose rows other transactions
// hold: their owners drain them, and a later plan raises them (L5).
func raiseEpochs(ctx context.Context, l *LockTx, queues []plan.Queue, actor string) (held heldQueues, err error) {
	adopted := l.epochFloor < l.floorToReach
	if adopted {
		if err := l.adoptFloor(ctx); err != nil {
			return nil, err
		}
	}
	var low []string
	for _, q := range queues {
		if q.Epoch <= l.epochFloor {
			low = append(low, q.ID)
		}
	}
	if len(low) == 0 {
		return nil, nil
	}
	free, err := lockQueueRows(ctx, l, low)
	if err != nil {
		return nil, err
	}
	held = heldQueues{}
	for i, q := range queues {
		switch {
		case q.Epoch > l.epochFloor:
		case free[q.ID]:
			queues[i].Epoch = l.epochFloor + 1
		default:
			held[q.ID] = true
		}
	}
	if err := writeEpochs(ctx, l, slices.DeleteFunc(low, func(id string) bool { return held[id] })); err != nil {
		return nil, fmt.Errorf("raise the epochs: %w", err)
	}
	if err := l.queuesChangedForAll(ctx); err != nil {
		return nil, err
	}
	if err := l.planChanged(ctx); err != nil || !adopted {
		return held, err
	}
	reason := fmt.Sprintf("history was lost: the epochs of %s are raised above %d",
		human.Count(len(low)-len(held), "queue", "queues"), l.epochFloor)
	return held, l.Record(ctx, Event{Kind: EventHistory, epoch: l.epochFloor + 1, Actor: actor, Reason: reason})
}

// adoptFloor takes the epoch_floor of the environment over to the lock row. The versions rise as far, so that no server
// takes one for a version that it knows from the lost history.
func (l *LockTx) adoptFloor(ctx context.Context) error {
	v, by := &l.versions, l.floorToReach-l.epochFloor
	v.plan, v.membership, v.partition, v.item = v.plan+by, v.membership+by, v.partition+by, v.item+by
	l.epochFloor = l.floorToReach
	l.EpochHigh = max(l.EpochHigh, l.epochFloor)
	err := l.setLockRow(ctx, `epoch_floor = ?, epoch_high = ?, plan_version = ?, membership_version = ?,
		partition_version = ?, item_version = ?`, l.epochFloor, l.EpochHigh, v.plan, v.membership, v.partition, v.item)
	if err == nil {
		_, err = l.Exec(ctx, `UPDATE schedule_server_version SET queue_version = queue_version + ? WHERE `+ofTask, by,
			l.TaskType, l.OwnSign)
	}
	return sqldb.Wrap(err, "adopt the epoch_floor of %s", l.OwnSign)
}

// isLow reports whether a plan is to raise an epoch first. It may not have taken the floor of the environment over yet.
func (l *LockTx) isLow(epoch int64) bool { return epoch <= max(l.epochFloor, l.floorToReach) }

// writeEpochs gives queues, whose rows this transaction has locked, the first epoch above the floor.
func writeEpochs(ctx context.Context, l *LockTx, ids []string) error {
	n, err := l.ExecIn(ctx, ids, `UPDATE schedule_queue SET epoch = ?, plan_version = ?, gmt_modified = {now}
		WHERE `+ofTask+` AND epoch <= ? AND queue_id IN ({ids})`,
		l.epochFloor+1, l.versions.plan+1, l.TaskType, l.OwnSign, l.epochFloor)
	if err == nil && n != len(ids) {
		err = sqldb.ErrRaced
	}
	return err
}

// ErrNoLoss means that no loss of history waits for an acknowledgement.
var ErrNoLoss = errors.New("there is no loss of history to acknowledge")

// AcknowledgeLoss ends the condition that history was lost. The epochs may then be raised again at once (H8).
func (o Operator) AcknowledgeLoss(ctx context.Context) error {
	loss, found, err := o.roster.Loss(ctx)
	if err == nil && !found {
		err = ErrNoLoss
	}
	if err != nil {
		return err
	}
	err = o.roster.UnderLock(ctx, loss.TaskType, func(ctx context.Context, l *LockTx) error {
		n, err := l.Exec(ctx, `UPDATE schedule_environment SET lost_at = NULL, lost_task = NULL, lost_report = NULL
			WHERE own_sign = ? AND lost_at = ?`, l.OwnSign, l.Dialect.Time(loss.At))
		if err == nil && n == 0 {
			err = ErrChanged
		}
		if err != nil {
			return err
		}
		return l.Record(ctx, Event{Kind: EventHistory, Actor: o.actor, Reason: "acknowledged: " + loss.Report})
	})
	return sqldb.Wrap(err, "acknowledge the loss of history of")
}

// LossCondition returns the condition of a loss. Each loss has one, for all task types of the environment.
func LossCondition(l Loss) condition.Condition {
	return condition.Condition{
		Kind: condition.HistoryLost.Name, TaskType: l.TaskType, Subject: clock(l.At), Since: time.Now().Add(-l.Now.Sub(l.At)),
		Text: "the database has lost history that it had acknowledged: " + l.Report,
	}.Complete()
}
