package roster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
)

// Reservation keeps the queues of a server that leaves for a later server of its name (P13). The zero value keeps none.
type Reservation struct {
	Name   string
	Within time.Duration // after which other servers get the queues
}

// MaxReturn is the longest time for which queues are reserved.
const MaxReturn = time.Hour

// maxName is the longest name of a process in bytes.
const maxName = 100

// CheckReturn returns an error if the name of a process, or the time for which it reserves its queues, breaks its rule.
func CheckReturn(name string, within time.Duration) error {
	switch {
	case len(name) > maxName, !utf8.ValidString(name),
		strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) }):
		return fmt.Errorf("name (%.60q) must be UTF-8 with at most %d bytes, and no control characters", name, maxName)
	case within < 0 || within > MaxReturn:
		return fmt.Errorf("return_within (%s) must be between 0s and %s", within, MaxReturn)
	case within > 0 && name == "":
		return fmt.Errorf("return_within (%s) needs a name, by which the process is known when it returns", within)
	}
	return nil
}

// keep takes the owner from the queues of a LEAVING server, and reserves them. It leaves out what other servers have
// requested, what operators remove, and the queues in forced. It reserves nothing while the task type is paused.
func (r Reservation) keep(ctx context.Context, l *LockTx, uuid string, forced []string) error {
	if may, err := r.mayKeep(ctx, l); err != nil || !may {
		return err
	}
	queues, _, err := l.Reader().queues(ctx)
	if err != nil {
		return err
	}
	var changes []plan.Change
	for _, q := range queues {
		if q.Owner == uuid && q.Requester == "" && !q.Removing && !slices.Contains(forced, q.ID) {
			changes = append(changes, plan.Change{QueueID: q.ID, OldOwner: uuid, OldEpoch: q.Epoch})
		}
	}
	written, _, err := writePlan(ctx, l, changes)
	if err != nil || len(written) == 0 {
		return err
	}
	var ids []string
	var events []Event
	for _, c := range written {
		ids = append(ids, c.QueueID)
		events = append(events, Event{
			Kind: EventReserved, queue: c.QueueID, from: uuid, epoch: c.OldEpoch + 1, Actor: uuid,
			Reason: fmt.Sprintf("for %s, for %s", r.Name, r.Within),
		})
	}
	_, err = l.ExecIn(ctx, ids, fmt.Sprintf(`UPDATE schedule_queue SET reserved_for = ?, reserved_until = {ago -%d}
		WHERE `+ofTask+` AND queue_id IN ({ids})`, r.Within.Milliseconds()), r.Name, l.TaskType, l.OwnSign)
	if err != nil {
		return fmt.Errorf("reserve the queues: %w", err)
	}
	if err := l.Record(ctx, events...); err != nil {
		return err
	}
	return l.planChanged(ctx)
}

func (r Reservation) mayKeep(ctx context.Context, l *LockTx) (may bool, err error) {
	if r.Name == "" || r.Within <= 0 {
		return false, nil
	}
	return sqldb.Value[bool](ctx, l, `SELECT CASE WHEN paused THEN 0 ELSE 1 END FROM schedule_task_running
		WHERE `+ofTask, l.TaskType, l.OwnSign)
}

// reservationExtension makes a plan due when a reservation ends.
func reservationExtension() extension {
	return extension{
		due:   func(string) string { return `reserved_until <= {now} OR NOT (` + soonReserved + `)` },
		after: noteReservations,
	}
}

// noteReservations writes to the lock row when the next reservation ends, if queues are reserved, or were at the last
// plan. A reservation that has ended since this transaction took the lock counts: its plan has taken the queue for
// reserved.
func noteReservations(ctx context.Context, p *planning) error {
	l := p.l
	reserved := func(q plan.Queue) bool { return q.ReservedFor != "" }
	if !l.versions.reserved && !slices.ContainsFunc(p.in.Queues, reserved) {
		return nil
	}
	return l.setLockRow(ctx, `reserved_until = (SELECT MIN(q.reserved_until) FROM schedule_queue q
		WHERE q.task_type = ? AND q.own_sign = ? AND q.cur_server IS NULL AND q.reserved_until > ?
		AND q.`+soonReserved+`)`, l.TaskType, l.OwnSign, l.Dialect.Time(l.Now))
}

// voidReservations ends all reservations, because an operator stops the work or divides it anew: the servers that are
// there get the queues.
func voidReservations(ctx context.Context, l *LockTx) error {
	n, err := l.Exec(ctx, `UPDATE schedule_queue SET reserved_for = NULL, reserved_until = NULL
		WHERE `+ofTask+` AND reserved_for IS NOT NULL`, l.TaskType, l.OwnSign)
	if err != nil {
		return fmt.Errorf("end the reservations of queues: %w", err)
	}
	if n == 0 {
		return nil
	}
	return l.membershipChanged(ctx)
}
