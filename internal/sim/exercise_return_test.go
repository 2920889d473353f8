package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/condition"
)

// comeBack lets a process leave, and another one of its name come in its place: it gets the reserved queues back (P13).
// Sometimes one of them is pinned to the other zone meanwhile, and goes there.
func (e *exertion) comeBack() error {
	p, limit, err := e.oneOfMany()
	if p == nil || err != nil || e.w.h.returns < 15*time.Second {
		return err
	}
	before, err := e.placed(e.task)
	if err != nil {
		return err
	}
	p.leave()
	err = e.soon("away", limit+time.Second, func() (string, error) {
		if p.alive.Load() {
			return p.name + " is still there", nil
		}
		return "", nil
	})
	if err != nil || len(e.w.broken) > 0 {
		return err
	}
	reserved, err := e.reservedFor(p.name)
	if err != nil || len(e.others()) == 0 {
		return err
	}
	for queue, owner := range before.owners {
		if before.servers[owner].name == p.name && !slices.Contains(reserved, queue) {
			e.w.breaks("reserved: %s has left queue %s of %s, and it is not reserved", p.name, queue, e.task.name)
		}
	}
	if len(reserved) == 0 || len(e.w.broken) > 0 { // queues of other tasks may be
		e.w.start(p.name)
		return e.soon("back", limit+time.Second, e.settled)
	}
	queue, zone := reserved[e.rng.IntN(len(reserved))], zoneOf(p.name)
	pinned := e.rng.IntN(2) == 0 && slices.ContainsFunc(e.others(), func(p *process) bool {
		return zoneOf(p.name) != zone && weightOf(p.name) == nil
	})
	if pinned {
		zone = string("yx"[int(p.name[0])%2])
		if _, err := e.operate("queue_pin", "queue="+queue, "labels=zone="+zone); err != nil {
			return err
		}
	}
	if err := e.watch(2 * time.Second); err != nil { // nobody gets the queues
		return err
	}
	granted := e.w.recorder.grants
	e.w.start(p.name)
	err = e.soon("back", limit+time.Second, func() (string, error) {
		if left, err := e.settled(); err != nil || left != "" {
			return left, err
		}
		for _, q := range reserved {
			owners, err := e.ownersOf(q, granted)
			switch {
			case err != nil || len(owners) == 0:
				return fmt.Sprintf("queue %s has no owner", q), err
			case pinned && q == queue && slices.ContainsFunc(owners, func(name string) bool { return zoneOf(name) != zone }):
				e.w.breaks("placed: queue %s of %s is pinned to %s, and was given to %s", q, e.task.name, zone, owners)
			case (!pinned || q != queue) && owners[0] != p.name: // from where it may go on
				e.w.breaks("reserved: queue %s of %s is reserved for %s, and was given to %s", q, e.task.name, p.name, owners)
			}
		}
		return "", nil
	})
	if err != nil || !pinned || len(e.w.broken) > 0 {
		return err
	}
	if _, err := e.operate("queue_unpin", "queue="+queue); err != nil { // the zone may lose its last process
		return err
	}
	return e.soon("unpinned", limit, e.settled)
}

// ownersOf returns the names of the servers to which a queue was given after a row of sim_grant.
func (e *exertion) ownersOf(queue string, after int64) (names []string, err error) {
	err = e.each(e.w.oracle.center.DB(), `SELECT name, queue FROM sim_grant JOIN schedule_server ON uuid = server
		WHERE id > ? AND queue = ? ORDER BY id`, func(name, _ string) { names = append(names, name) },
		after, fmt.Sprint(e.task.name, " ", queue, " of ", signOf(e.task.env)))
	return names, err
}

// reservedFor returns the queues of the task that are reserved for a name for some time yet.
func (e *exertion) reservedFor(name string) (queues []string, err error) {
	err = e.each(e.w.oracle.center.DB(), `SELECT queue_id, '' FROM schedule_queue WHERE task_type = ? AND reserved_for = ?
		AND cur_server IS NULL AND julianday(substr(reserved_until, 1, 23)) > julianday(substr(rota_now(), 1, 23)) + 5 / 86400.0
		ORDER BY 1`, func(queue, _ string) { queues = append(queues, queue) }, e.task.name, name)
	return queues, err
}

// refuse writes a setting that the dealer of the task contradicts, as a person does by hand, and lets a process join, or
// one lose its session. It does not serve the task, somebody is told of it, and the alert is over when the edit is
// undone (N3, S13).
func (e *exertion) refuse() error {
	p, limit, err := e.oneOfMany()
	if p == nil || err != nil {
		return err
	}
	patience, err := e.patience()
	if err != nil {
		return err
	}
	settings := slices.DeleteFunc(slices.Clone(refused()), e.spec().accepts)
	if open, err := e.refusals(); err != nil || open > 0 || len(settings) == 0 {
		return err
	}
	setting := settings[e.rng.IntN(len(settings))]
	joins := e.w.process(e.newName()) == nil
	if loses := setting == "splittable=true"; !loses && !joins { // others go on with the settings that they had
		return nil
	} else if loses && e.rng.IntN(2) == 0 {
		joins = false
	}
	if err := e.w.edit([]string{e.task.name, setting}); err != nil {
		return err
	}
	if joins {
		e.w.start(e.newName())
	} else {
		p.link.set(trouble{cut: true})
		if err := e.watch(2 * patience); err != nil {
			return err
		}
		p.link.set(trouble{})
	}
	err = e.soon("told", time.Minute, func() (string, error) {
		open, err := e.refusals()
		if open > 0 {
			return "", err
		}
		return "nobody is told that a process does not serve the task", err
	})
	if err != nil || len(e.w.broken) > 0 {
		return err
	}
	if err := e.w.undoEdits(); err != nil {
		return err
	}
	err = e.soon("over", time.Minute, func() (string, error) {
		open, err := e.refusals()
		if open == 0 {
			return "", err
		}
		return "a process counts as refused", err
	})
	if err != nil || len(e.w.broken) > 0 {
		return err
	}
	return e.soon("settled", patience+limit, e.settled)
}

// refusals returns how many alerts are open that a process does not serve the task.
func (e *exertion) refusals() (n int, err error) {
	err = e.w.oracle.center.DB().QueryRowContext(e.w.t.Context(), `SELECT COUNT(*) FROM schedule_event WHERE task_type = ? AND alert = ?
		AND open_until > rota_now()`, e.task.name, condition.Refused.Name).Scan(&n)
	return n, err
}
