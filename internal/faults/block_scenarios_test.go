//go:build linux

package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
	"github.com/dutyrota/rota/ops/verbs"
	"github.com/dutyrota/rota/processor"
)

// The variants of dealers with bad items, and with a service that can be down. They are keyed, and the oldest items
// come first.
const (
	blocked variant = "BLOCK"       // the bad items of all queues are within reach of the selects: 9 x fetch_number
	outages variant = "BLOCK LATER" // blocked; items have the usual attempts, because some fail before an outage is likely
	behind  variant = "BLOCK PAGED" // healthy items lie behind that reach, and the dealer can go on behind a page
	tenant  variant = "TENANT"      // all items of queue 0 fail until the table cures has a row
)

// blockScenarios are items that fail, and a service that fails.
var blockScenarios = []scenario{
	{name: "block-of-bad-items", play: blockOfBadItems, variant: blocked, seldom: true},
	{name: "block-of-bad-items-behind-pages", play: blockOfBadItems, variant: behind, seldom: true},
	{name: "queue-that-fails", play: queueThatFails, variant: tenant},
	{name: "second-outage", play: secondOutage, variant: outages, review: sampledGently, seldom: true},
}

// bad is the first of the items that fail until the table cures has a row.
const bad = 1_000_000_000

// blockSize is the number of bad items before the healthy items of all queues.
const blockSize = 3000

func (v variant) blocks() bool { return strings.HasPrefix(string(v), "BLOCK") || v == tenant }

func (v variant) applyBlock(s *manager.Settings) {
	s.FetchNumber, s.ThreadNumber, s.ItemMaxAttempts = 100, 4, 3
	switch v {
	case outages:
		s.ItemMaxAttempts = 0
	case behind:
		s.FetchNumber = 20
	case tenant:
		s.ItemMaxAttempts = 10_000 // the items outlive the scenario
	}
}

// blocking is the dealer for items of which some are bad.
type blocking struct{ *dealer }

func (d *dealer) blocking(v variant) processor.TaskDealer[int64] {
	switch v {
	case behind:
		return paging{blocking{d}}
	case tenant:
		return failingTenant{blocking{d}}
	}
	return blocking{d}
}

// Key implements processor.Keyed.
func (blocking) Key(id int64) string { return strconv.FormatInt(id, 10) }

// Select returns the oldest items. Bad items are older than all others.
func (b blocking) Select(ctx context.Context, s processor.Selection) ([]int64, error) {
	b.notes.add(note{What: "select"})
	return b.query(ctx, `SELECT id FROM items WHERE done = 0 AND id % ? = ? ORDER BY made, id LIMIT ?`, s.Total,
		s.Queue.Index, s.Limit)
}

// errDown is the error of the service that all items need.
var errDown = errors.New("the service is down")

// Execute fails while the service is down, and for bad items.
func (b blocking) Execute(ctx context.Context, ids []int64) error {
	return b.unless(ctx, ids, b.refuse)
}

func (b blocking) refuse(ctx context.Context, ids []int64) error {
	down, err := b.query(ctx, `SELECT id FROM outages`)
	if err != nil {
		return err
	}
	if len(down) > 0 {
		return errDown
	}
	for _, id := range ids {
		if id < bad {
			continue
		}
		if cures, err := b.query(ctx, `SELECT id FROM cures`); err != nil || len(cures) == 0 {
			return errors.Join(err, fmt.Errorf("item %d: %w", id, errors.ErrUnsupported))
		}
	}
	return nil
}

// paging can go on behind a page.
type paging struct{ blocking }

// Position implements processor.Paged.
func (p paging) Position(id int64) string {
	if id >= bad {
		return strconv.FormatInt(id-bad, 10)
	}
	return strconv.FormatInt(id+bad, 10)
}

// Select returns the bad items and then the others, each in the order of their ids.
func (p paging) Select(ctx context.Context, s processor.Selection) ([]int64, error) {
	p.notes.add(note{What: "select"})
	after := int64(-1)
	if s.After != "" {
		var err error
		if after, err = strconv.ParseInt(s.After, 10, 64); err != nil {
			return nil, err
		}
	}
	const place = `CASE WHEN id >= 1000000000 THEN id - 1000000000 ELSE id + 1000000000 END`
	return p.query(ctx, `SELECT id FROM items WHERE done = 0 AND id % ? = ? AND `+place+` > ? ORDER BY `+place+` LIMIT ?`,
		s.Total, s.Queue.Index, after, s.Limit)
}

// failingTenant is a dealer whose items of queue 0 fail.
type failingTenant struct{ blocking }

// Execute fails for queue 0 until an operator has cured its items.
func (d failingTenant) Execute(ctx context.Context, ids []int64) error {
	return d.unless(ctx, ids, d.refuse)
}

func (d failingTenant) refuse(ctx context.Context, ids []int64) error {
	if ids[0]%queues == 0 {
		if cures, err := d.query(ctx, `SELECT id FROM cures`); err != nil || len(cures) == 0 {
			return errors.Join(err, errDown)
		}
	}
	return nil
}

// addBad inserts n bad items, which are older than all others.
func (s supplySteps) addBad(n int) {
	s.t.Helper()
	rows := make([]string, n)
	for i := range rows {
		rows[i] = fmt.Sprintf("(%d, 0)", bad+i)
	}
	s.exec(`INSERT INTO items (id, made) VALUES ` + strings.Join(rows, ", "))
}

// pace returns how many items a second are done, while n more items are done.
func (s workerSteps) pace(n int) float64 {
	s.t.Helper()
	from := time.Now()
	s.works(n)
	return float64(n) / time.Since(from).Seconds()
}

// blockOfBadItems: bad items are in front of the healthy items of all queues, for workers that run and for workers that
// start. The healthy items are done at four fifths of their pace within two minutes. The bad items die or wait, and
// no other item does. When an operator has repaired them, they are done, too.
func blockOfBadItems(s *stage) {
	const measured = 300
	before := s.pace(measured)
	flows := func(when string) {
		s.t.Helper()
		from, pace := time.Now(), 0.0
		for pace < 0.8*before {
			if pace = s.pace(measured); time.Since(from) > 2*time.Minute {
				s.t.Fatalf("%s, healthy items are done at %.0f a second after two minutes; it was %.0f", when, pace, before)
			}
		}
		s.t.Logf("%s, healthy items are done at %.0f a second after %.1f s; it was %.0f", when, pace,
			time.Since(from).Seconds(), before)
	}
	s.addBad(blockSize)
	flows("after the bad items came")
	allDie(s)
	s.start(workers - 1)
	flows("after all workers have died")
	s.stopSupply()
	s.until("all healthy items are done", func() bool {
		return s.count(`SELECT COUNT(*) FROM items WHERE done = 0`) == blockSize
	})
	dead := func(of string) int {
		return s.count(`SELECT COUNT(*) FROM schedule_failed_item WHERE state = ? AND item_key `+of+` LIKE '10________'`,
			ops.ItemDead)
	}
	s.until("bad items die", func() bool { return dead("") > 0 }) // the others wait
	if n := dead("NOT"); n != 0 {
		s.t.Errorf("%d healthy items are dead", n)
	}
	s.exec(`INSERT INTO cures (id) VALUES (1)`)
	change, err := verbs.RetryItems{ItemChoice: verbs.ItemChoice{TaskType: taskType, All: true}}.Prepare(s.t.Context(), ops.New(s.c))
	s.must(err)
	_, err = change.Do(s.t.Context(), "test")
	s.must(err)
}

// secondOutage: the service of all items is down for longer than a worker waits with its alert, twice within a few
// minutes. Each outage is told once, also by a worker that has started in between, and no item dies.
func secondOutage(s *stage) {
	told := func() int {
		return s.count(`SELECT COUNT(*) FROM schedule_event WHERE kind = ? AND reason LIKE ?`, ops.EventAlert,
			condition.Failing.Name+":%")
	}
	for n := 1; n <= 2; n++ {
		s.exec(`INSERT INTO outages (id) VALUES (1)`)
		s.until(fmt.Sprintf("outage %d is told", n), func() bool { return told() >= n })
		s.sleep(s.dead(2)) // the other workers see the same
		if told() != n {
			s.t.Errorf("%d alerts %s after %d outages, want one for each", told(), condition.Failing.Name, n)
		}
		s.exec(`DELETE FROM outages`)
		s.works(2 * queues * s.backlog)
		w := s.any()
		s.leave(w)
		s.start(1)
	}
	if n := s.count(`SELECT COUNT(*) FROM schedule_failed_item WHERE state = ?`, ops.ItemDead); n != 0 {
		s.t.Errorf("%d items died in an outage", n)
	}
}

// queueThatFails: all items of one queue fail while the others succeed (X7). The row of the queue is edited so that
// it looks as if its owner had found that out eleven minutes ago, and the owner is killed in the same moment. The
// next owner goes on from there: the queue is told by its name, and no other queue is, until one of its items
// succeeds.
func queueThatFails(s *stage) {
	const queue = `schedule_queue WHERE task_type = '` + taskType + `' AND queue_id = '0'`
	s.until("items of queue 0 fail", func() bool {
		return s.count(`SELECT COUNT(*) FROM schedule_failed_item WHERE queue_id = '0' AND attempts >= 3`) >= 3
	})
	if n := s.count(`SELECT COUNT(*) FROM schedule_queue WHERE failing_since IS NOT NULL`); n != 0 {
		s.t.Errorf("%d queues fail before ten minutes have passed", n)
	}
	edit, err := s.c.DB().BeginTx(s.t.Context(), nil)
	s.must(err)
	defer edit.Rollback() // does nothing after a commit
	_, err = edit.ExecContext(s.t.Context(), bind(s.c,
		`UPDATE schedule_queue SET failing_since = ? WHERE task_type = ? AND queue_id = '0'`),
		time.Now().UTC().Add(-11*time.Minute).Format("2006-01-02 15:04:05"), taskType)
	s.must(err)
	pid := s.count(`SELECT cur_pid FROM schedule_assignment WHERE task_type = ? AND queue_id = '0'`, taskType)
	s.kill(s.workers[slices.IndexFunc(s.workers, func(w *worker) bool { return w.PID == pid })])
	s.must(edit.Commit())

	told := func() int {
		return s.count(`SELECT COUNT(*) FROM schedule_event WHERE kind = ? AND reason LIKE ?`, ops.EventAlert,
			condition.QueueFailing.Name+": no item of queue 0 %")
	}
	s.until("the next owner tells the queue", func() bool { return told() > 0 })
	s.works(queues * s.backlog)
	fails := s.count(`SELECT COUNT(*) FROM ` + queue + ` AND failing_since IS NOT NULL`)
	if all := s.count(`SELECT COUNT(*) FROM schedule_queue WHERE failing_since IS NOT NULL`); fails != 1 || all != 1 {
		s.t.Errorf("%d queues fail by their rows, %d of them is queue 0, want only that", all, fails)
	}
	if found := s.queuesThatFail(); len(found) != 1 || !strings.Contains(found[0].Text, ": 0 (11m") {
		s.t.Errorf("the doctor says %+v, want that queue 0 fails since eleven minutes", found)
	}
	s.exec(`INSERT INTO cures (id) VALUES (1)`)
	s.until("queue 0 fails no more", func() bool {
		return s.count(`SELECT COUNT(*) FROM `+queue+` AND failing_since IS NULL`) == 1 && len(s.queuesThatFail()) == 0
	})
	if n := s.count(`SELECT COUNT(*) FROM schedule_event WHERE kind = ? AND reason LIKE ?`, ops.EventAlert,
		condition.QueueFailing.Name+":%"); n != told() {
		s.t.Errorf("%d alerts about queues that fail, want %d, of queue 0 only", n, told())
	}
}

// queuesThatFail returns what the doctor says of queues that fail.
func (s *scene) queuesThatFail() []condition.Condition {
	s.t.Helper()
	found, err := doctor.Diagnose(s.t.Context(), ops.New(s.c), taskType)
	s.must(err)
	return slices.DeleteFunc(found, func(c condition.Condition) bool { return c.Kind != condition.QueueFailing.Name })
}

// sampledGently checks 22. It suits scenarios without bad items: an item that failed before and after a success of
// another one is retried at the pace of its retry policy.
func sampledGently(s *stage, _ *History) {
	var tries []Try
	for _, w := range s.workers {
		w.eachNote(func(n note) {
			switch n.What {
			case "select":
				tries = append(tries, Try{Process: w.PID, At: n.At, Select: true})
			case "end":
				tries = append(tries, Try{Process: w.PID, At: n.At, Done: n.Error == fmt.Sprint(error(nil))})
			}
		})
	}
	for _, v := range CheckTries(tries) {
		s.t.Error(v)
	}
}
