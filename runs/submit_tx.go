package runs

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// ErrOtherDatabase means that SubmitTx got a transaction that does not lead to the roster's database.
var ErrOtherDatabase = errors.New("the transaction does not lead to the roster's database")

// SubmitTx is Submit as a part of tx, a transaction of the roster's database: the run is made if tx commits, and there
// is none if it rolls back. The caller rolls back after an error.
//
// SubmitTx inserts a row into schedule_submission. However long tx lasts, no plan, tick or sweep waits for that row: a
// tick of any server of the task type makes the run after the commit, and the runs of its dependants (R21). The commit
// tells the servers where the database sends hints ([center.WakeInTx] says at what cost). Elsewhere they find the row
// with their next heartbeat. Until then no list has the run, and Get returns ErrUnknownRun.
//
// A key has one run, as with Submit: existed is true if it has a run, or if tx or another transaction has submitted
// it. Two transactions that submit one key at the same time wait for each other, as for a unique key of the caller's
// own. If Submit makes the run of the key while tx is open, this run does the work, and the id that SubmitTx has
// returned is that of no run: a run that tx submits after this id ends DEPENDENT_FAILED.
//
// The runs in After may be of the same transaction. On SQLite the transaction must be an immediate one, as those of
// Center.DB are. SubmitTx returns the errors of Submit, and ErrOtherDatabase if tx leads to a database without a
// roster. It does not notice a database that has a roster of its own with the same task type.
func (rs *Runs) SubmitTx(ctx context.Context, tx *sql.Tx, taskType string, s Submission,
) (runID string, existed bool, err error) {
	if s.Key == "" {
		s.Key = uuid.NewString()
	}
	t := sqldb.Tx{Raw: tx, Dialect: rs.db.Dialect}
	if err = s.Validate(); err == nil {
		runID, existed, err = rs.submitTx(ctx, t, taskType, s)
	}
	if rs.db.Class(err) == sqldb.NoTable {
		err = fmt.Errorf("%w (%w)", ErrOtherDatabase, err)
	}
	if err != nil {
		return "", false, fmt.Errorf("submit %s: %w", taskType, err)
	}
	return runID, existed, nil
}

// submitTx reads with a connection of its own: tx may not see what has committed since it began. With one writer, tx is
// that writer, sees all, and another connection could wait for it.
func (rs *Runs) submitTx(ctx context.Context, t sqldb.Tx, taskType string, s Submission) (string, bool, error) {
	var q sqldb.Eacher = rs.db
	if rs.db.OneWriter {
		q = t
	}
	if err := checkMode(ctx, q, taskType); err != nil {
		return "", false, err
	}
	name, err := rs.checkUpstreamsTx(ctx, q, t, s.After)
	if err != nil {
		return "", false, err
	}
	s.Name = cmp.Or(s.Name, name)
	found, err := rs.runOfKey(ctx, q, taskType, s.Key)
	if err != nil || found.ID != "" && found.State != Skipped {
		return found.ID, true, err
	}
	now, err := sqldb.Value[time.Time](ctx, q, `SELECT {now}`)
	if err != nil {
		return "", false, fmt.Errorf("read the clock: %w", err)
	}
	request, err := json.Marshal(s)
	if err != nil {
		return "", false, err
	}
	id := newRunID(now)
	if _, err := t.Exec(ctx, `INSERT INTO schedule_submission (task_type, own_sign, run_key, run_id, request)
		VALUES (?, ?, ?, ?, ?)`+t.Dialect.KeepRow, taskType, rs.ownSign, s.Key, id, string(request)); err != nil {
		return "", false, err
	}
	// Only now is it certain that no other transaction submits the key, and a tick may have made its run meanwhile.
	found, err = rs.runOfKey(ctx, q, taskType, s.Key)
	if err == nil && found.ID == "" { // the row is of tx, which may have submitted the key before
		found.ID, err = sqldb.Value[string](ctx, t, `SELECT run_id FROM schedule_submission
			WHERE task_type = ? AND own_sign = ? AND run_key = ?`, taskType, rs.ownSign, s.Key)
	}
	existed := found.ID != "" && found.ID != id
	if err == nil && existed && found.State != Skipped { // a tick reopens a run that is SKIPPED
		_, err = t.Exec(ctx, `DELETE FROM schedule_submission WHERE task_type = ? AND own_sign = ? AND run_key = ?
			AND run_id = ?`, taskType, rs.ownSign, s.Key, id)
		return found.ID, true, err
	}
	if err == nil {
		err = rs.wake(ctx, t.Raw, taskType)
	}
	if existed {
		id = found.ID
	}
	return id, existed, err
}

// keyedRun is the run of a key. Its state is empty if a tick is still to make it.
type keyedRun struct{ ID, State string }

func (rs *Runs) runOfKey(ctx context.Context, q sqldb.Eacher, taskType, key string) (keyedRun, error) {
	r, _, err := sqldb.Record[keyedRun](ctx, q, `SELECT run_id, state FROM schedule_run
		WHERE task_type = ? AND own_sign = ? AND run_key = ?
		UNION ALL SELECT run_id, '' FROM schedule_submission WHERE task_type = ? AND own_sign = ? AND run_key = ?
		ORDER BY 2 DESC`, taskType, rs.ownSign, key, taskType, rs.ownSign, key)
	return r, sqldb.Wrap(err, "find the run of the key")
}

// checkUpstreamsTx checks that the runs exist, or are to be made if the transaction commits. It returns the name of the
// first of them that has one: a tick may make the run before its upstreams.
func (rs *Runs) checkUpstreamsTx(ctx context.Context, q sqldb.Eacher, t sqldb.Tx, after []string,
) (name string, err error) {
	for _, id := range slices.Sorted(slices.Values(after)) {
		var of string
		request, submitted, err := "", false, sqldb.CheckText("the id", id, maxRunID)
		if err == nil {
			request, submitted, err = sqldb.Record[string](ctx, t, `SELECT request FROM schedule_submission
				WHERE own_sign = ? AND run_id = ?`, rs.ownSign, id)
		}
		switch {
		case err == nil && submitted:
			var s Submission
			_ = json.Unmarshal([]byte(request), &s) // a row that was edited by hand has no name
			of = s.Name
		case err == nil:
			var r Run
			r, err = readUpstream(ctx, q, rs.ownSign, id)
			of = r.Name
		}
		if err != nil {
			return "", err
		}
		name = cmp.Or(name, of)
	}
	return name, nil
}

// submissionPages bounds the pages of maxPerTick submissions that a tick takes.
const submissionPages = 5

// takeSubmissions makes the runs that transactions have submitted, a page per transaction, in the order in which they
// were submitted (R21).
func (s *Scheduler) takeSubmissions(ctx context.Context, taskType string) error {
	for range submissionPages {
		var n int
		var unsettled []taskRun
		err := s.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *roster.LockTx) (err error) {
			n, unsettled, err = takeSubmissions(ctx, l)
			return err
		})
		if err == nil {
			err = s.closer.resolveAll(ctx, unsettled)
		}
		if err != nil || n < maxPerTick {
			return sqldb.Prefix(err, "make the submitted runs of")
		}
	}
	return nil
}

// Unmade are the submitted runs of a task type that has no runs.
type Unmade struct {
	TaskType string
	Runs     int64
}

// Unmade returns the submissions that no server takes, because their task type is not of mode RUN, or is gone.
func (rs *Runs) Unmade(ctx context.Context) ([]Unmade, error) {
	list, err := sqldb.Records[Unmade](ctx, rs.db, `SELECT u.task_type, COUNT(*) FROM schedule_submission u
		LEFT JOIN schedule_task_type t ON t.task_type = u.task_type
		WHERE u.own_sign = ? AND (t.mode IS NULL OR t.mode <> ?) GROUP BY u.task_type ORDER BY u.task_type`,
		rs.ownSign, ModeRun)
	return list, sqldb.Wrap(err, "list the submissions that no worker takes")
}

// submission is a row of schedule_submission.
type submission struct {
	Key     string `json:"run_key"`
	ID      string `json:"run_id"`
	Request string `json:"request"` // a Submission
}

// takeSubmissions takes the rows that no transaction holds: on MySQL one that submits the same key does, until it ends.
// It takes as many as begin within stepTime. It returns their number, and the runs whose upstreams decide their state.
func takeSubmissions(ctx context.Context, l *roster.LockTx) (n int, unsettled []taskRun, err error) {
	list, _, err := sqldb.Free[submission](ctx, l, l.Dialect, fmt.Sprintf(`SELECT {columns q} FROM schedule_submission q
		WHERE q.task_type = ? AND q.own_sign = ? ORDER BY q.run_id LIMIT %d`, maxPerTick), l.TaskType, l.OwnSign)
	if err != nil {
		return 0, nil, fmt.Errorf("read the submissions: %w", err)
	}
	var keys []string
	began := time.Now()
	for i, sub := range list {
		if i > 0 && time.Since(began) > stepTime {
			break
		}
		id, settled, err := sub.take(ctx, l)
		if err != nil {
			return 0, nil, fmt.Errorf("submission %s: %w", sub.ID, err)
		}
		if keys = append(keys, sub.Key); !settled {
			unsettled = append(unsettled, taskRun{id, l.TaskType})
		}
	}
	_, err = l.ExecIn(ctx, keys, `DELETE FROM schedule_submission WHERE task_type = ? AND own_sign = ?
		AND run_key IN ({ids})`, l.TaskType, l.OwnSign)
	return len(keys), unsettled, err
}

// take makes the run of a submission, unless its key has one. A row that was edited by hand makes a run that fails: it
// must not hold up the others.
func (sub submission) take(ctx context.Context, l *roster.LockTx) (id string, settled bool, err error) {
	var s Submission
	invalid := json.Unmarshal([]byte(sub.Request), &s)
	if invalid == nil {
		invalid = s.Validate()
	}
	if invalid != nil {
		s = Submission{} // a part of it may be valid
	}
	r := s.run()
	r.Key, r.ID = sub.Key, sub.ID
	id, existed, err := submitRun(ctx, l, r, slices.Compact(slices.Sorted(slices.Values(s.After))), s.Actor)
	if err == nil && invalid != nil && !existed {
		err = moveRun(ctx, l.Tx, id, Ready, Failed, "its row in schedule_submission is invalid: "+invalid.Error())
		return id, false, err
	}
	return id, !existed && len(s.After) == 0, err
}
