package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// Problem is something about the runs of a task type that an operator should look after (R19). It lasts until its cause
// is gone, a later run succeeds, or an operator acknowledges it.
type Problem struct {
	Kind     string `json:"kind"` // a kind of package condition, such as RUN_FAILED
	TaskType string `json:"task_type"`
	Trigger  string `json:"trigger_name"` // empty for submitted runs
	Backfill string `json:"backfill_id"`  // of failed runs, if a backfill made them
	RunID    string `json:"run_id"`       // the last run that failed, or the open run; empty for a problem of a trigger
	FirstID  string `json:"first_run_id"` // the first run that failed since the last success
	Count    int64  `json:"count"`        // of failed runs, or of missed or skipped slots
	State    string `json:"state"`        // of the run or the trigger
	Message  string `json:"message"`      // of the run or the trigger: the cause

	// Cancelled has a few ids of failed runs that were rerun, and then cancelled. They are not FAILED any more,
	// and their work is not done either.
	Cancelled []string `json:"cancelled_run_ids" db:"-"`

	// Since is when the first run failed, the open run began to wait or was opened, or the slot was due.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero" db:"until_at"` // when the last run failed; the deadline of an open run

	Now time.Time `json:"-" db:"-"` // by the database's clock, when this was read
}

// Condition returns the problem as the doctor and the alerts know it.
func (p Problem) Condition() condition.Condition {
	c := condition.New(condition.KindOf(p.Kind), p.TaskType, p.Text(), p.hint())
	c.Subject = p.Subject()
	if !p.Since.IsZero() {
		c.Since = time.Now().Add(p.Since.Sub(p.Now))
	}
	return c
}

// Subject returns what the problem is about: a run, a trigger or a backfill. It stays the same while the problem lasts,
// although the first of the failed runs of a trigger is acknowledged, rerun or deleted by retention.
func (p Problem) Subject() string {
	failed := p.Kind == condition.RunFailed.Name || p.Kind == condition.RunCancelled.Name
	switch {
	case failed && p.Backfill != "":
		return "backfill " + p.Backfill
	case p.FirstID == "" || failed && p.Trigger != "":
		return "trigger " + p.Trigger
	}
	return "run " + p.FirstID
}

// Text describes the problem in one sentence for people. The subject is not part of it.
func (p Problem) Text() string {
	switch p.Kind {
	case condition.RunFailed.Name, condition.RunCancelled.Name:
		return p.failedText()
	case condition.RunOverdue.Name:
		if p.Until.Equal(p.Since) {
			return fmt.Sprintf("it has been %s since %s, for nearly as long as run_timeout, and was not opened",
				p.State, instant(p.Since))
		}
		return fmt.Sprintf("it is %s since %s; its deadline is %s", p.State, instant(p.Since), instant(p.Until))
	case condition.RunStalled.Name:
		return strings.TrimSuffix(fmt.Sprintf("it is %s since %s, and nothing of it has ended since %s: %s",
			p.State, instant(p.Since), instant(p.Until), p.Message), ": ")
	case condition.SlotMissed.Name:
		return fmt.Sprintf("the slot %s was missed and never fires (slots missed so far: %d)", instant(p.Since), p.Count)
	case condition.SlotSkipped.Name:
		return skippedText(p.Count, p.Since)
	case condition.TriggerLate.Name:
		return fmt.Sprintf("it has been due since %s, and no worker has fired it", instant(p.Since))
	case condition.TriggerError.Name:
		return "it does not fire, because its row is invalid: " + p.Message
	}
	return p.Message
}

// SkippedText says how many slots of a trigger were skipped since the last one that fired.
func (t Trigger) SkippedText() string { return skippedText(t.Skipped, t.SkippedSince) }

// SkippedTooLong reports whether the skipped slots of the trigger are a problem (R19).
func (t Trigger) SkippedTooLong(now time.Time) bool {
	return t.Skipped >= skippedSlots || t.Skipped > 0 && now.Sub(t.SkippedSince) > skippedFor
}

func skippedText(slots int64, since time.Time) string {
	return fmt.Sprintf("%s skipped in a row since the slot %s, because an earlier run of the trigger was open",
		human.Count(slots, "slot was", "slots were"), instant(since))
}

// failedText describes a failed run, or several in succession.
func (p Problem) failedText() string {
	source := "submitted runs"
	if p.Trigger != "" {
		source = "runs of trigger " + p.Trigger
	}
	if p.Backfill != "" {
		source = "runs of backfill " + p.Backfill + " of trigger " + p.Trigger
	}
	if p.Count == 1 {
		return fmt.Sprintf("%s at %s (one of the %s): %s", p.State, instant(p.Until), source, p.Message)
	}
	verb, reruns := "have failed", ""
	if p.Kind == condition.RunCancelled.Name {
		verb = "were cancelled"
	}
	if len(p.Cancelled) > 0 {
		reruns = "; cancelled in a rerun: " + strings.Join(p.Cancelled[:min(len(p.Cancelled), shownReruns)], ", ")
	}
	if len(p.Cancelled) > shownReruns {
		reruns += " and others"
	}
	return fmt.Sprintf("%d %s %s since %s, the last one (%s) %s at %s: %s%s",
		p.Count, source, verb, instant(p.Since), p.RunID, p.State, instant(p.Until), p.Message, reruns)
}

// shownReruns is the number of runs that were cancelled in a rerun and that a text names.
const shownReruns = 5

// instant formats a time for people, in UTC.
func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// hint says what an operator can do.
func (p Problem) hint() string {
	show, ackAll := "rota run show "+p.RunID, "rota run ack "+human.ShellWord(p.TaskType)
	again := "; then rota run rerun " + p.RunID + " or rota run ack " + p.RunID
	switch p.Kind {
	case condition.RunFailed.Name:
		if p.Backfill != "" {
			return "rota run backfill show " + p.Backfill + again
		}
		if p.Trigger == "" {
			return show + again + "; " + ackAll + " acknowledges all"
		}
		return show + again + "; the next success of the trigger also ends this"
	case condition.RunOverdue.Name:
		if p.State == Ready {
			return show + " says what it waits for"
		}
		return show + "; it fails at its deadline; run_timeout sets the deadline of the next run"
	case condition.RunStalled.Name:
		return show + " names its queues and failed items; rota run cancel " + p.RunID + " lets the next run begin"
	case condition.SlotMissed.Name:
		return "the next success of the trigger ends this, or " + ackAll +
			"; misfire of the trigger decides what late slots do"
	case condition.SlotSkipped.Name:
		return "rota run list " + human.ShellWord(p.TaskType) +
			" shows the open run; overlap WAIT of the trigger lets one slot wait;" +
			" the next slot that fires ends this, or " + ackAll
	case condition.TriggerLate.Name:
		return "start a worker: rota worker -c rota.yaml; a live worker logs why it cannot tick"
	case condition.TriggerError.Name:
		name := human.ShellWord(p.Trigger)
		return "correct it with rota trigger apply " + name + "; then rota trigger resume " + name
	}
	return ""
}

// lateTriggerMS is how long a trigger may be due before that is a problem, in milliseconds. Live servers fire it within
// a second or two.
const lateTriggerMS = 60_000

// One skipped slot is no problem, because overlap SKIP asks for it. It becomes a problem when so many slots in a row
// were skipped, or when no slot has fired for so long.
const (
	skippedSlots = 3
	skippedFor   = 24 * time.Hour
)

// stallBegan is how long an open run of a task type t may make no progress before that is a problem. A setting that no
// server works with counts as its bound, and does not overflow (S13).
var stallBegan = fmt.Sprintf(`{ago CASE WHEN t.stall_after_ms > %[1]d / 2 THEN %[1]d
	WHEN t.stall_after_ms > 900000 THEN t.stall_after_ms * 2 ELSE 1800000 END}`, sqldb.MaxDuration.Milliseconds())

// mayBeginAt is since when nothing but other runs keeps a run r from being opened.
const mayBeginAt = `CASE WHEN r.not_before > r.waiting_since THEN r.not_before ELSE r.waiting_since END`

// ofSubmission is the condition that the deadline of a run r is the time by which its submission lets it end.
const ofSubmission = `COALESCE(r.deadline_at = r.end_before, FALSE)`

// These statements select the problems of each kind, with the columns of Problem in the order of the first one.
// %[1]s and %[2]s stand for the condition that selects a task type by its runs and by its triggers.
var (
	// A run that is RUNNING has a deadline. One that waits has one if run_start_timeout is set. A deadline that the
	// submission of the run gave does not say how much of a timeout is used up.
	overdueProblems = `SELECT '` + condition.RunOverdue.Name + `' AS kind, r.task_type, r.trigger_name, r.backfill_id,
			r.run_id, r.run_id AS first_run_id, 1 AS count, r.state, r.message, r.started_at AS since, r.deadline_at AS until_at
		FROM schedule_run r LEFT JOIN schedule_task_type t ON t.task_type = r.task_type
		WHERE r.own_sign = ?%[1]s AND r.state = '` + Running + `'
		AND r.deadline_at < {ago -(COALESCE(t.run_timeout_ms, 0) / 10)} AND NOT ` + ofSubmission

	unopenedProblems = `SELECT '` + condition.RunOverdue.Name + `', r.task_type, r.trigger_name, r.backfill_id, r.run_id,
			r.run_id, 1, r.state, r.message, ` + mayBeginAt + `, COALESCE(r.deadline_at, ` + mayBeginAt + `)
		FROM schedule_run r JOIN schedule_task_type t ON t.task_type = r.task_type
		WHERE r.own_sign = ?%[1]s AND (r.state IN ('` + Ready + `', '` + Waiting + `')
				AND r.deadline_at < {ago -(t.run_start_timeout_ms / 10)} AND NOT ` + ofSubmission + `
			OR r.state = '` + Ready + `' AND (r.deadline_at IS NULL OR ` + ofSubmission + `) AND t.run_timeout_ms > 0
				AND ` + mayBeginAt + ` < {ago t.run_timeout_ms / 10 * 9})`

	// A run of a backfill or a trigger holds up the slots after it. So its stall is a problem long before its deadline. A
	// call that may last long (stall_after) is no stall, nor is the pause before the next attempt of a queue.
	stalledProblems = `SELECT '` + condition.RunStalled.Name + `', r.task_type, r.trigger_name, r.backfill_id, r.run_id,
			r.run_id, 1, r.state, COALESCE((SELECT MAX(q.last_error) FROM schedule_run_queue q
				WHERE q.run_id = r.run_id AND q.state = '` + QueueRunning + `'), ''), r.started_at,
			COALESCE((SELECT MAX(q.progress_at) FROM schedule_run_queue q WHERE q.run_id = r.run_id), r.started_at)
		FROM schedule_run r JOIN schedule_task_type t ON t.task_type = r.task_type
		JOIN schedule_task_running k ON k.task_type = r.task_type AND k.own_sign = r.own_sign
		WHERE r.own_sign = ?%[1]s AND r.state = '` + Running + `' AND NOT r.paused AND NOT k.paused
		AND r.waiting_since < ` + stallBegan + `
		AND NOT EXISTS (SELECT 1 FROM schedule_run_queue q WHERE q.run_id = r.run_id
			AND (q.progress_at > ` + stallBegan + ` OR q.finished_at > ` + stallBegan + ` OR q.next_attempt_at > {now}))`

	missedProblems = `SELECT '` + condition.SlotMissed.Name + `', g.target, g.name, NULL, '', '', g.missed, g.status,
			g.message, g.missed_at, g.missed_at
		FROM schedule_trigger g WHERE g.own_sign = ?%[2]s AND g.missed_at IS NOT NULL
		AND NOT EXISTS (SELECT 1 FROM schedule_run s WHERE s.task_type = g.target AND s.own_sign = g.own_sign
			AND s.trigger_name = g.name AND ` + succeeded + ` AND s.scheduled_at >= g.missed_at)`

	skippedProblems = `SELECT '` + condition.SlotSkipped.Name + `', g.target, g.name, NULL, '', '', g.skipped, g.status,
			g.message, g.skipped_since, g.skipped_since
		FROM schedule_trigger g WHERE g.own_sign = ?%[2]s AND (g.skipped >= ` + fmt.Sprint(skippedSlots) + `
			OR g.skipped_since < {ago ` + fmt.Sprint(skippedFor.Milliseconds()) + `})`

	brokenProblems = `SELECT CASE WHEN g.status = '` + TriggerError + `'
				THEN '` + condition.TriggerError.Name + `' ELSE '` + condition.TriggerLate.Name + `' END,
			g.target, g.name, NULL, '', '', 0, g.status, g.message, g.next_fire_at, g.next_fire_at
		FROM schedule_trigger g WHERE g.own_sign = ?%[2]s AND (g.status = '` + TriggerError + `'
			OR g.status = '` + TriggerActive + `' AND g.next_fire_at < {ago ` + fmt.Sprint(lateTriggerMS) + `})`
)

// Problems lists what an operator should look after in the runs of the task type, or of all task types if it is empty
// (R19). It sends two statements, one more if there are any, and up to four more for each trigger with failed runs.
func (rs *Runs) Problems(ctx context.Context, taskType string) ([]Problem, error) {
	list, err := rs.endings(ctx, taskType, unresolved, condition.RunFailed.Name)
	if err != nil {
		return nil, fmt.Errorf("list the failed runs: %w", err)
	}
	others, err := rs.otherProblems(ctx, taskType)
	if err != nil {
		return nil, fmt.Errorf("list the problems of runs: %w", err)
	}
	if list, err = rs.asOf(ctx, append(list, others...)); err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.TaskType, b.TaskType), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Trigger, b.Trigger), cmp.Compare(a.RunID, b.RunID))
	})
	return list, nil
}

// asOf notes the database's time in problems that were just read.
func (rs *Runs) asOf(ctx context.Context, list []Problem) ([]Problem, error) {
	if len(list) == 0 {
		return nil, nil
	}
	now, err := rs.db.Clock(ctx)
	for i := range list {
		list[i].Now = now
	}
	return list, err
}

// Cancelled lists the runs that an operator cancelled although they had not failed, those of each trigger as one
// record, until a later run of the trigger succeeds or an operator acknowledges them. They are no problem, because
// somebody cancelled them on purpose.
func (rs *Runs) Cancelled(ctx context.Context, taskType string) ([]Problem, error) {
	list, err := rs.endings(ctx, taskType, onlyCancelled, condition.RunCancelled.Name)
	return list, sqldb.Wrap(err, "list the cancelled runs")
}

// otherProblems lists the problems except failed runs.
func (rs *Runs) otherProblems(ctx context.Context, taskType string) ([]Problem, error) {
	var run, trigger string
	args := []any{rs.ownSign}
	if taskType != "" {
		run, trigger, args = ` AND r.task_type = ?`, ` AND g.target = ?`, append(args, taskType)
	}
	parts := []string{
		overdueProblems, unopenedProblems, stalledProblems, missedProblems, skippedProblems, brokenProblems,
	}
	for i := range parts {
		parts[i] = fmt.Sprintf(parts[i], run, trigger)
	}
	return sqldb.Records[Problem](ctx, rs.db, `SELECT {columns} FROM (`+strings.Join(parts, ` UNION ALL `)+`) x
		ORDER BY task_type, kind, trigger_name, run_id`, slices.Repeat(args, len(parts))...)
}

const (
	// failedStates are the states of runs that have not done their work although no operator has cancelled them.
	// failedOrCancelled adds the state of the runs that an operator has cancelled.
	failedStates      = `('` + Failed + `', '` + DependentFailed + `')`
	failedOrCancelled = `('` + Failed + `', '` + DependentFailed + `', '` + Cancelled + `')`
	// unresolved is the condition that a run has failed and that nobody has acknowledged it. A run that was cancelled in a
	// rerun is still the one that failed: the cancellation has not done its work.
	unresolved = `state IN ` + failedOrCancelled + ` AND failed_at IS NOT NULL AND acked_at IS NULL`
	// onlyCancelled is the condition that an operator cancelled a run which had not failed.
	onlyCancelled = `state = '` + Cancelled + `' AND failed_at IS NULL AND acked_at IS NULL`
)

// Unresolved reports whether the run has failed, and nobody has acknowledged it. A run that was cancelled in a rerun
// has failed before.
func (r Run) Unresolved() bool {
	return r.Ended() && r.State != Success && r.State != Skipped && !r.FailedAt.IsZero() && r.AckedAt.IsZero()
}

// failedTrigger is a trigger whose runs have failed. All submitted runs belong to one failedTrigger without a name. The
// runs of a backfill belong to one of their own.
type failedTrigger struct{ TaskType, Name, Backfill string }

// unrelated reports whether no run does the work of another: each submitted run has a key of its own, and each run of a
// backfill has a slot of its own (R19).
func (t failedTrigger) unrelated() bool { return t.Name == "" || t.Backfill != "" }

// endings lists the runs under a condition, those of each trigger as one record of that kind: a trigger that fires each
// minute must not give 1,440 problems a day. A run counts if no operator has acknowledged it and no later run of its
// trigger has succeeded. A submitted run, and a run of a backfill, counts until an operator acknowledges it or a rerun
// of it succeeds (R19).
//
// It sends statements for each trigger alone, so that every database reads the newest success once for each trigger. In
// one statement, with a join, a subquery or a window, one database or another read it once for each failed run, and
// 20,000 failed runs took minutes.
func (rs *Runs) endings(ctx context.Context, taskType, condition, kind string) (list []Problem, err error) {
	w := sqldb.Where{Args: []any{rs.ownSign}}
	w.Equal("task_type", taskType)
	triggers, err := sqldb.Records[failedTrigger](ctx, rs.db, `SELECT task_type, trigger_name, backfill_id
		FROM schedule_run WHERE own_sign = ?`+w.Text+` AND `+condition+`
		GROUP BY task_type, trigger_name, backfill_id ORDER BY task_type, trigger_name, backfill_id`, w.Args...)
	if err != nil {
		return nil, err
	}
	for _, t := range triggers {
		e, err := rs.endingsOf(ctx, rs.db, t, condition)
		if err != nil {
			return nil, err
		}
		if e.Count == 0 {
			continue
		}
		runs, err := sqldb.Records[Run](ctx, rs.db, `SELECT {columns} FROM schedule_run WHERE run_id IN (?, ?)
			ORDER BY run_id`, e.First, e.Last)
		if err != nil {
			return nil, err
		}
		if len(runs) > 0 { // otherwise they were deleted meanwhile
			p := newFailure(runs[0], runs[len(runs)-1], e.Count)
			p.Kind = kind
			if condition == unresolved && e.Count > 1 {
				if p.Cancelled, err = rs.cancelledReruns(ctx, t, e); err != nil {
					return nil, err
				}
			}
			list = append(list, p)
		}
	}
	return list, nil
}

// cancelledReruns returns the newest of the failed runs of an ending that an operator cancelled in a rerun: one more
// than a text names, so that the text says that there are more.
func (rs *Runs) cancelledReruns(ctx context.Context, t failedTrigger, e ending) ([]string, error) {
	same, args := t.condition(rs.ownSign)
	return sqldb.Records[string](ctx, rs.db, `SELECT run_id FROM schedule_run WHERE `+same+` AND `+unresolved+`
		AND state = '`+Cancelled+`' AND run_id BETWEEN ? AND ? ORDER BY run_id DESC LIMIT `+fmt.Sprint(shownReruns+1),
		append(args, e.First, e.Last)...)
}

func newFailure(first, last Run, count int64) Problem {
	if last.State == Cancelled && !last.FailedAt.IsZero() {
		last.Message = "it had failed at " + instant(last.FailedAt) + "; " + last.Message
	}
	return Problem{
		Kind: condition.RunFailed.Name, TaskType: last.TaskType, Trigger: last.Trigger, Backfill: last.Backfill,
		RunID: last.ID, FirstID: first.ID, Count: count, State: last.State, Message: last.Message,
		Since: first.FinishedAt, Until: last.FinishedAt,
	}
}

// ending is the first and the last of the runs of a trigger under a condition, and their number.
type ending struct {
	First, Last string
	Count       int64
}

// endingsOf returns the ending of the runs of a trigger under a condition since its newest success.
func (rs *Runs) endingsOf(ctx context.Context, q sqldb.Eacher, t failedTrigger, condition string) (ending, error) {
	same, args := t.condition(rs.ownSign)
	if !t.unrelated() {
		newest, _, err := sqldb.Record[time.Time](ctx, q, `SELECT scheduled_at FROM schedule_run
			WHERE `+same+` AND `+succeeded+` ORDER BY scheduled_at DESC LIMIT 1`, args...)
		if err != nil {
			return ending{}, err
		}
		if newest.IsZero() {
			newest = time.Unix(0, 0) // before all runs
		}
		same, args = same+` AND backfill_id IS NULL AND scheduled_at >= ?`, append(args, rs.db.Time(newest))
	}
	e, _, err := sqldb.Record[ending](ctx, q, `SELECT MIN(run_id), MAX(run_id), COUNT(*) FROM schedule_run
		WHERE `+same+` AND `+condition, args...)
	return e, err
}

// condition selects the runs of the trigger. A success of a backfill counts for its trigger, too.
func (t failedTrigger) condition(ownSign string) (string, []any) {
	switch {
	case t.Backfill != "":
		return `backfill_id = ? AND task_type = ?`, []any{t.Backfill, t.TaskType}
	case t.Name == "":
		return `task_type = ? AND own_sign = ? AND trigger_name IS NULL`, []any{t.TaskType, ownSign}
	}
	return `task_type = ? AND own_sign = ? AND trigger_name = ?`, []any{t.TaskType, ownSign, t.Name}
}

// unalerted is the condition that a run has failed, that no server has raised the alert of this failure, and that no
// operator has acknowledged it.
const unalerted = `task_type = ? AND own_sign = ? AND ` + unresolved + ` AND alerted_at IS NULL`

// AlertFailures raises the alerts of the failed runs of a task type for which no server has raised one: it records
// them as events, and returns them. The row of a run says whether its failure is still to be raised, so that no failure
// is missed, even if a later success has ended the problem already or the process that ended the run is gone (R19). The
// failures of a trigger raise one alert until the trigger succeeds. Submitted runs have nothing to do with each other:
// each raises an alert, together with the submitted runs that AlertFailures finds at the same time.
//
// AlertFailures is one statement if there is nothing to raise. After a commit whose reply was lost, it returns the
// alerts with the error: if the commit has failed, the next call raises them again.
func (rs *Runs) AlertFailures(ctx context.Context, taskType string) (raised []condition.Condition, err error) {
	_, due, err := sqldb.Record[int](ctx, rs.db, `SELECT 1 FROM schedule_run WHERE `+unalerted+` LIMIT 1`,
		taskType, rs.ownSign)
	if err == nil && due {
		err = rs.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *roster.LockTx) (err error) {
			raised, err = rs.alertFailures(ctx, l)
			return err
		})
		if err != nil && !errors.Is(err, sqldb.ErrUnknownCommit) {
			raised = nil // the next call raises them
		}
	}
	return raised, sqldb.Wrap(err, "raise the alerts of failed runs of %s$%s", taskType, rs.ownSign)
}

// maxAlertedRuns bounds the failed runs that one call of AlertFailures marks as alerted. The next call continues.
const maxAlertedRuns = roster.InsertRows

func (rs *Runs) alertFailures(ctx context.Context, l *roster.LockTx) (raised []condition.Condition, err error) {
	failed, err := unalertedRuns(ctx, l)
	for len(failed) > 0 && err == nil {
		var group, others []Run
		of := triggerOf(failed[0])
		for _, r := range failed {
			if triggerOf(r) == of {
				group = append(group, r)
			} else {
				others = append(others, r)
			}
		}
		failed = others
		var known bool
		if known, err = rs.alertKnown(ctx, l, of, group); err != nil || known {
			continue
		}
		p := newFailure(group[0], group[len(group)-1], int64(len(group)))
		p.Now = l.Now
		a := p.Condition()
		err = l.RecordAlert(ctx, a, condition.KindOf(a.Kind).Alert.Gap(0))
		raised = append(raised, a)
	}
	return raised, err
}

// unalertedRuns returns failed runs, the oldest first, and notes that their alerts are raised.
func unalertedRuns(ctx context.Context, l *roster.LockTx) (failed []Run, err error) {
	failed, err = sqldb.Records[Run](ctx, l, fmt.Sprintf(`SELECT {columns} FROM schedule_run WHERE `+unalerted+`
		ORDER BY run_id LIMIT %d`, maxAlertedRuns), l.TaskType, l.OwnSign)
	if err != nil || len(failed) == 0 {
		return nil, err
	}
	var ids []string
	for _, r := range failed {
		ids = append(ids, r.ID)
	}
	_, err = l.ExecIn(ctx, ids, `UPDATE schedule_run SET alerted_at = {now} WHERE run_id IN ({ids})`)
	return failed, err
}

// alertKnown reports whether the runs failed after a run of the same trigger or backfill that has raised an alert, and
// whose failure is still a problem.
func (rs *Runs) alertKnown(ctx context.Context, l *roster.LockTx, of failedTrigger, group []Run) (bool, error) {
	if of.Name == "" {
		return false, nil
	}
	e, err := rs.endingsOf(ctx, l, of, unresolved)
	return e.Count > 0 && !slices.ContainsFunc(group, func(r Run) bool { return r.ID == e.First }), err
}

func triggerOf(r Run) failedTrigger { return failedTrigger{r.TaskType, r.Trigger, r.Backfill} }
