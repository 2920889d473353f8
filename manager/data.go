package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/processor"
)

// checkDatabases returns the number of data databases that the settings name. It returns an error if this process has
// not opened one of them.
func (s *server) checkDatabases() (int, error) {
	names, err := s.settings.Databases()
	for _, name := range names {
		if s.roster.Data(name) == nil {
			return 0, fmt.Errorf("task %s: database (%q) names %s, which this process has not opened: data in rota.yaml "+
				"adds it, or Center.FenceIn", s.taskType, s.settings.Database, name)
		}
	}
	return len(names), err
}

// placed returns the queue with what its data database needs to know (F11).
func (v *ownView) placed(ctx context.Context, q processor.Queue, row roster.ViewQueue) processor.Queue {
	name, err := v.settings.DatabaseOf(q.ID)
	if err != nil {
		name = noDatabase
		const text = "the setting database names no data database for a queue, which is not worked"
		v.log.LogAttrs(ctx, slog.LevelError, text, slog.String("queue", q.ID), slog.Any("error", err))
	}
	q.Database, q.Division, q.GrantedTotal = name, row.Division, row.Total
	return q
}

// noDatabase stands for the data database of a queue that has none by the setting. No database has this name.
const noDatabase = "{none}"

// enter makes the data database of a queue reject what earlier owners write (F11), and waits for transactions of this
// owner that may still commit (F5). The executors call it.
func (s *server) enter(ctx context.Context, q processor.Queue, suspect bool) (changed bool, err error) {
	epoch := center.QueueEpoch{ID: q.ID, Epoch: q.Epoch}
	if q.Database != "" {
		if changed, err = s.enterData(ctx, q, epoch, suspect); err != nil {
			return false, err
		}
	}
	ended, err := s.roster.EndCommits(ctx, s.taskType, s.session.Load().uuid, epoch)
	return changed || ended, err
}

func (s *server) enterData(ctx context.Context, q processor.Queue, epoch center.QueueEpoch, suspect bool,
) (raised bool, err error) {
	d := s.roster.Data(q.Database)
	if d == nil {
		return false, notOpened(q.Database, q.ID)
	}
	raised, err = d.Enter(ctx, center.Entry{
		TaskType: s.taskType, Server: s.session.Load().uuid, Queue: epoch,
		Items: roster.Items{Division: q.Division, Index: q.Index, Total: q.GrantedTotal}, Suspect: suspect,
	})
	if ahead, ok := errors.AsType[*roster.AheadError](err); ok {
		offer(s.ahead, *ahead)
	}
	return raised, err
}

// notOpened returns the error of a queue whose items are in a database that the process does not know.
func notOpened(database, queue string) error {
	return fmt.Errorf("the data database %s of queue %s is none that this process has opened", database, queue)
}

func dataPart(b *base) part {
	return part{look: func(context.Context, bool) { b.alerter.checkData() }}
}

// checkData notes the data databases of this task type that cannot be used, and the queues that wait for the end of
// fenced transactions. Only the selects of queues find out that this is over. So it goes by the queues that this server
// works.
func (a *alerter) checkData() {
	var all []string
	works := map[string][]string{} // the ids of the queues by database
	for _, h := range a.proc.Queues() {
		if !h.Draining {
			all = append(all, h.Queue.ID)
			works[h.Queue.Database] = append(works[h.Queue.Database], h.Queue.ID)
		}
	}
	a.seeWaits(a.roster.CommitWaits(a.taskType), all, "", "a transaction of its own, whose COMMIT got no reply, is open")
	for name, queues := range works { // the task type may have got more queues than there were when the process started
		if name != "" && a.roster.Data(name) == nil {
			a.see(condition.Condition{
				Kind: condition.Unreachable.Name, Subject: name, Text: notOpened(name, queues[0]).Error(),
			})
		}
	}
	for _, d := range a.roster.AllData() {
		problem, waits := d.State(a.taskType)
		if problem.Err != nil && len(works[d.Name()]) > 0 {
			a.see(condition.Condition{
				Kind: condition.Unreachable.Name, Since: problem.Since, Subject: d.Name(), Text: shortened(problem.Err.Error()),
			})
		}
		a.seeWaits(waits, works[d.Name()], d.Name(), "transactions of earlier owners are open")
	}
}

// seeWaits notes the queues among ids that wait for the end of transactions.
func (a *alerter) seeWaits(waits []center.DataWait, ids []string, database, why string) {
	for _, w := range waits {
		if slices.Contains(ids, w.Queue) {
			a.see(condition.Condition{
				Kind: condition.FenceWait.Name, Since: w.Since, QueueID: w.Queue, Subject: database,
				Text: fmt.Sprintf("queue %s is not worked: %s", escape.Name(w.Queue), why),
			})
		}
	}
}
