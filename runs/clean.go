package runs

import (
	"context"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// maxCleanedRuns is the number of runs that one call of Clean reads.
const maxCleanedRuns = 100

// Clean deletes runs that ended before the retention, at most 1,000 rows of their items and their queues at a time
// (R12), and returns the number of deleted rows. It keeps a run for which another run still waits. It finds the runs by
// their ids, which sort by time, so that no further index is needed. It also keeps the last failure of a trigger that
// nothing has resolved (R19): otherwise the problem would end although its cause remains. It keeps the run by which a
// missed slot is no problem, which would come back. It keeps the runs of a backfill that has not ended, and deletes the
// row of a backfill after its last run.
func Clean(ctx context.Context, db *sqldb.DB, retention time.Duration) (deleted int, err error) {
	now, err := db.Clock(ctx)
	if err != nil {
		return 0, err
	}
	before := now.Add(-retention)
	ids, err := sqldb.Records[string](ctx, db, fmt.Sprintf(`SELECT r.run_id FROM schedule_run r
		WHERE r.run_id < ? AND r.finished_at < ? AND r.state NOT IN `+openStates+`
		AND NOT `+waitedFor+`
		AND NOT EXISTS (SELECT 1 FROM schedule_backfill b
			WHERE b.backfill_id = r.backfill_id AND b.state = '`+BackfillRunning+`')
		AND NOT `+lastFailure+` AND NOT `+endsMissed+`
		ORDER BY r.run_id LIMIT %d`, maxCleanedRuns), newRunID(before), db.Time(before))
	if err != nil {
		return 0, err
	}
	if len(ids) == 0 {
		return cleanBackfills(ctx, db, before)
	}
	// The items and the queues go first: without the row of its run, their rows would never be found again.
	for _, table := range []string{"schedule_run_item", "schedule_run_queue"} {
		n, full, err := deleteRows(ctx, db, table, ids)
		deleted += n
		if err != nil || full {
			return deleted, err
		}
	}
	n, err := deleteRuns(ctx, db, ids)
	return deleted + n, err
}

// deleteRuns deletes the rows of runs and of their edges, and returns the number of rows. It leaves out a run that a
// rerun has reopened since retention has read it, and one for which another run waits now. Whatever lets a run wait
// locks the row of the upstream first: so the lock shows each edge that is older than it.
//
// The edges that lead to a run go with it if the run has met them: otherwise a rerun of the dependant would look for a
// run that is gone. Other edges stay, because nothing else says that the dependant lacks the work of that run.
func deleteRuns(ctx context.Context, db *sqldb.DB, ids []string) (deleted int, err error) {
	err = db.Transact(ctx, db.Store, func(ctx context.Context, t sqldb.Tx) error {
		if _, err := t.ExecIn(ctx, ids, `UPDATE schedule_run SET version = version + 1 WHERE run_id IN ({ids})`); err != nil {
			return err
		}
		free, err := sqldb.RecordsIn[string](ctx, t, ids, `SELECT r.run_id FROM schedule_run r
			WHERE r.finished_at IS NOT NULL AND NOT `+waitedFor+` AND r.run_id IN ({ids}) ORDER BY r.run_id`)
		if err != nil {
			return err
		}
		met, err := t.ExecIn(ctx, free, `DELETE FROM schedule_run_dep WHERE upstream_run_id IN ({ids})
			AND (rule = '`+RuleFinished+`' OR EXISTS (SELECT 1 FROM schedule_run r
				WHERE r.run_id = schedule_run_dep.upstream_run_id AND r.state = '`+Success+`'))`)
		if err != nil {
			return err
		}
		runs, err := t.ExecIn(ctx, free, `DELETE FROM schedule_run WHERE run_id IN ({ids})`)
		if err != nil {
			return err
		}
		deps, err := t.ExecIn(ctx, ids, `DELETE FROM schedule_run_dep WHERE run_id IN ({ids})
			AND NOT EXISTS (SELECT 1 FROM schedule_run r WHERE r.run_id = schedule_run_dep.run_id)`)
		deleted = met + runs + deps
		return err
	})
	return deleted, err
}

// waitedFor is the condition that another run still waits for a run r.
const waitedFor = `EXISTS (SELECT 1 FROM schedule_run_dep d JOIN schedule_run w ON w.run_id = d.run_id
	WHERE d.upstream_run_id = r.run_id AND w.state IN ` + openStates + `)`

// cleanBackfills deletes backfills that ended before an instant and have no runs left.
func cleanBackfills(ctx context.Context, db *sqldb.DB, before time.Time) (int, error) {
	const gone = `ended_at < ? AND state <> '` + BackfillRunning + `'
		AND NOT EXISTS (SELECT 1 FROM schedule_run r WHERE r.backfill_id = schedule_backfill.backfill_id)`
	ids, err := sqldb.Records[string](ctx, db, fmt.Sprintf(`SELECT backfill_id FROM schedule_backfill
		WHERE backfill_id < ? AND `+gone+` ORDER BY backfill_id LIMIT %d`, maxCleanedRuns), newRunID(before), db.Time(before))
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	return db.Exec(ctx, `DELETE FROM schedule_backfill WHERE backfill_id IN (`+sqldb.Marks(len(ids))+`) AND `+gone,
		append(sqldb.Args(ids), db.Time(before))...)
}

// lastFailure is the condition that a run r has failed, that no operator has acknowledged it, and that no later run of
// its trigger has succeeded, or has failed like this. Among submitted runs, and in a backfill, only a later failure
// counts: a success of one key or slot does not make up for another. A later failure that is acknowledged or rerun is
// no problem, so that r may be the last one. The runs of a backfill do not count for the trigger. The condition leaves
// out a run whose task type is deleted.
const lastFailure = `(` + unresolved + `
	AND EXISTS (SELECT 1 FROM schedule_task_type t WHERE t.task_type = r.task_type)
	AND NOT EXISTS (SELECT 1 FROM schedule_run s WHERE s.task_type = r.task_type AND s.own_sign = r.own_sign
		AND (s.trigger_name = r.trigger_name OR s.trigger_name IS NULL AND r.trigger_name IS NULL)
		AND (s.backfill_id IS NULL AND r.backfill_id IS NULL OR s.backfill_id = r.backfill_id)
		AND (` + unresolved + `
			OR ` + succeeded + ` AND s.trigger_name IS NOT NULL AND s.backfill_id IS NULL)
		AND s.run_id > r.run_id))`

// endsMissed is the condition that a run r is the last success of a trigger with a missed slot, which makes up for it.
const endsMissed = `(` + succeeded + `
	AND EXISTS (SELECT 1 FROM schedule_trigger g WHERE g.own_sign = r.own_sign AND g.name = r.trigger_name
		AND g.target = r.task_type AND g.missed_at <= r.scheduled_at)
	AND NOT EXISTS (SELECT 1 FROM schedule_run s WHERE s.task_type = r.task_type AND s.own_sign = r.own_sign
		AND s.trigger_name = r.trigger_name AND ` + succeeded + ` AND s.scheduled_at > r.scheduled_at))`

// deleteRows deletes rows of runs in a table, at most CleanRows, and reports whether more of them may be left. It
// deletes the rows of a queue together, at most maxRunItems. It leaves out a run that a rerun has reopened meanwhile:
// no server would sweep the queues whose rows are gone.
func deleteRows(ctx context.Context, db *sqldb.DB, table string, runs []string) (deleted int, full bool, err error) {
	const page = CleanRows - maxRunItems
	read, err := sqldb.Records[runQueue](ctx, db, fmt.Sprintf(`SELECT {columns} FROM `+table+` WHERE run_id IN (%s)
		ORDER BY run_id, queue_id LIMIT %d`, sqldb.Marks(len(runs)), page), sqldb.Args(runs)...)
	last := map[string]string{} // the last queue of each run
	for _, r := range read {
		last[r.RunID] = r.QueueID
	}
	for _, run := range runs {
		if queue, ok := last[run]; ok && err == nil {
			var n int
			n, err = db.Exec(ctx, `DELETE FROM `+table+` WHERE run_id = ? AND queue_id <= ?
				AND EXISTS (SELECT 1 FROM schedule_run r WHERE r.run_id = ? AND r.finished_at IS NOT NULL)`, run, queue, run)
			deleted += n
		}
	}
	return deleted, len(read) == page, err
}

// CleanRows is the number of rows that one step of a clean-up deletes. It is small, so that no other transaction waits
// long for locked rows.
const CleanRows = 1_000
