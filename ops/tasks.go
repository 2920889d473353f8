package ops

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// Tasks lists, defines, changes and deletes task types. A bundle may be used concurrently.
type Tasks struct {
	c        *Client
	progress func(items int)
}

// Tasks returns the bundle of task types.
func (c *Client) Tasks() *Tasks { return &Tasks{c, func(int) {}} }

// WithProgress returns a bundle whose Delete calls report after each transaction except the last, with the number of
// failed items that it has deleted so far. Delete calls it from the caller's goroutine.
func (t *Tasks) WithProgress(report func(items int)) *Tasks { return &Tasks{t.c, report} }

// TaskRecord is a task type with the state of its roster in this own_sign.
type TaskRecord struct {
	TaskType      string `json:"task_type"`
	OwnSign       string `json:"own_sign" db:"-"`
	Mode          string `json:"mode"`
	ProcessorType string `json:"processor_type"`
	Splittable    bool   `json:"splittable"`
	Paused        bool   `json:"paused"`
	QueueTotal    int64  `json:"queue_total"`

	// What the column queue_changes says: another number of queues, for which every server drains; the queues to be
	// removed; and those to be split or merged, with their new totals.
	RequestedTotal *int64         `json:"requested_total" db:"-"`
	Removing       []string       `json:"removing" db:"-"`
	Resizing       map[string]int `json:"resizing" db:"-"`

	Skipped   []string `json:"skipped"` // queues that the last plan could not move
	Partition int64    `json:"partition_version"`
	RunID     *string  `json:"run_id"` // the run that is RUNNING, in mode RUN

	Servers     int64 `json:"servers"` // overdue servers included
	DeadServers int64 `json:"overdue_servers"`

	// FailingServers are those whose calls do nothing but fail.
	FailingServers int64 `json:"failing_servers"`

	// Queues by their status, as schedule_assignment has it.
	Owned      int64 `json:"held"`
	Moving     int64 `json:"moving"`
	Overdue    int64 `json:"overdue"`
	Orphan     int64 `json:"orphan"`
	Unassigned int64 `json:"unassigned"`
	Reserved   int64 `json:"reserved"`

	// The sums of the backlogs of the queues, as their owners last counted them; nil if nobody has. BacklogQueues is how
	// many queues have been counted: if they are not all, there are more items.
	BacklogItems  *int64   `json:"backlog_items"`
	BacklogQueues *int64   `json:"backlog_queues"`
	BacklogOldest *float64 `json:"backlog_oldest_s"` // age of the oldest item of all, in seconds
	BacklogAge    *float64 `json:"backlog_age_s"`    // of the oldest count
	BacklogRate   *float64 `json:"backlog_rate"`     // items per second by which they become more

	// The same of the queues whose counts are no older than FreshBacklog, for Scale.
	FreshItems  *int64   `json:"fresh_backlog_items"`
	FreshQueues int64    `json:"fresh_backlog_queues"`
	FreshAge    *float64 `json:"fresh_backlog_age_s"`

	// What bounds Scale: how many queues have no owner because of max_queues_per_server, and any further worker may get
	// them; and two settings, 0 for no limit.
	Crowded     int64 `db:"crowded"       json:"-"`
	MaxServers  int64 `db:"max_servers"   json:"-"`
	MaxInFlight int64 `db:"max_in_flight" json:"-"`

	// GrantedCalls is how many calls of Execute the servers may have in flight together. It is above the setting
	// max_in_flight until all servers have lowered their shares, and nil while a server has no limit.
	GrantedCalls *int64 `json:"max_in_flight_granted"`

	InFlight       int64      `json:"in_hand"`
	OldestInFlight *time.Time `json:"oldest_in_hand_since"`
	SuccessCount   int64      `json:"success_count"` // of the registered servers
	FailureCount   int64      `json:"failure_count"`
	RetryItems     int64      `json:"retry_items"`
	DeadItems      int64      `json:"dead_items"`
	HeldKeys       int64      `json:"held_keys"` // order keys of failed items: other items of these keys wait (X10)

	Version int64 `json:"version"` // of the settings
}

// Lost is the number of queues without a live owner.
func (t TaskRecord) Lost() int64 { return t.Overdue + t.Orphan + t.Unassigned + t.Reserved }

// freshSeconds is FreshBacklog, for statements.
var freshSeconds = strconv.Itoa(int(FreshBacklog.Seconds()))

// isCrowded is a condition on a row of schedule_assignment: the queue has no owner, and any further worker may get it.
var isCrowded = `status = 'UNASSIGNED' AND pin = '' AND waits_for LIKE '` + plan.QueuesPerServer.String() + `:%'`

// List lists the task types and the state of their rosters in this own_sign, by name. With a name it lists only that
// task type, and returns ErrUnknownTask if there is none. It sends one statement. Package doctor
// says what is wrong with them.
func (t *Tasks) List(ctx context.Context, taskType string) ([]TaskRecord, error) {
	// Each part asks for the task type by itself: MySQL and SQLite would first add up those of all others.
	var named, ofItem sqldb.Where
	named.Equal("task_type", taskType)
	ofItem.Equal("i.task_type", taskType)
	sign := []any{t.c.ownSign}
	both := append(sign, named.Args...)
	args := slices.Concat(sign, named.Args, both, sign, both, both, both)
	type row struct {
		TaskRecord
		Changes roster.Changes `db:"queue_changes"`
	}
	rows, err := sqldb.Records[row](ctx, t.c.db, `SELECT {columns} FROM (
		SELECT n.task_type, t.mode, t.processor_type, COALESCE(t.splittable, FALSE) AS splittable, t.version,
			t.max_servers, t.max_in_flight, q.crowded,
			COALESCE(r.paused, FALSE) AS paused, r.queue_total, r.queue_changes, r.skipped,
			r.partition_version,
			s.servers, s.overdue_servers, s.failing_servers, s.max_in_flight_granted,
			s.in_hand, s.oldest_in_hand_since, s.success_count, s.failure_count,
			q.held, q.moving, q.overdue, q.orphan, q.unassigned, q.reserved,
			q.backlog_items, q.backlog_queues, q.backlog_oldest_s, q.backlog_age_s, q.backlog_rate,
			q.fresh_backlog_items, q.fresh_backlog_queues, q.fresh_backlog_age_s, f.retry_items, f.dead_items, f.held_keys,
			(SELECT MAX(u.run_id) FROM schedule_run u
				WHERE u.task_type = n.task_type AND u.own_sign = ? AND u.state = 'RUNNING') AS run_id
		FROM (SELECT task_type FROM schedule_task_type WHERE 1 = 1`+named.Text+`
			UNION SELECT task_type FROM schedule_task_running WHERE own_sign = ? AND queue_total > 0`+named.Text+`) n
		LEFT JOIN schedule_task_type t ON t.task_type = n.task_type
		LEFT JOIN schedule_task_running r ON r.task_type = n.task_type AND r.own_sign = ?
		LEFT JOIN (SELECT task_type, COUNT(*) AS servers,
				COUNT(CASE WHEN `+roster.IsDead+` THEN 1 END) AS overdue_servers,
				COUNT(failing_since) AS failing_servers,
				CASE WHEN COUNT(*) = COUNT(max_in_flight) THEN `+sqldb.SumOf("max_in_flight")+` END AS max_in_flight_granted,
				`+sqldb.SumOf("in_hand")+` AS in_hand, 
				MIN(CASE WHEN in_hand > 0 THEN oldest_in_hand_since END) AS oldest_in_hand_since,
				`+sqldb.SumOf("success_count")+` AS success_count, `+sqldb.SumOf("failure_count")+` AS failure_count
			FROM schedule_server d WHERE own_sign = ?`+named.Text+` GROUP BY task_type) s ON s.task_type = n.task_type
		LEFT JOIN (SELECT task_type,
				SUM(CASE WHEN status = 'HELD' THEN queues END) AS held,
				SUM(CASE WHEN status = 'MOVING' THEN queues END) AS moving,
				SUM(CASE WHEN status = 'OVERDUE' THEN queues END) AS overdue,
				SUM(CASE WHEN status = 'ORPHAN' THEN queues END) AS orphan,
				SUM(CASE WHEN status = 'UNASSIGNED' THEN queues END) AS unassigned,
				SUM(CASE WHEN status = 'RESERVED' THEN queues END) AS reserved, SUM(crowded) AS crowded,
				SUM(items) AS backlog_items, NULLIF(SUM(counted), 0) AS backlog_queues,
				MAX(oldest) AS backlog_oldest_s, MAX(age) AS backlog_age_s, SUM(rate) AS backlog_rate,
				SUM(fresh_items) AS fresh_backlog_items, SUM(fresh) AS fresh_backlog_queues,
				MAX(fresh_age) AS fresh_backlog_age_s
			FROM (SELECT task_type, status, COUNT(*) AS queues, COUNT(CASE WHEN `+isCrowded+` THEN 1 END) AS crowded,
					`+sqldb.SumOf("backlog_items")+` AS items, COUNT(backlog_items) AS counted,
					MAX(backlog_oldest_s) AS oldest, MAX(backlog_age_s) AS age, SUM(backlog_rate) AS rate,
					SUM(CASE WHEN backlog_age_s <= `+freshSeconds+` THEN backlog_items END) AS fresh_items,
					COUNT(CASE WHEN backlog_age_s <= `+freshSeconds+` THEN 1 END) AS fresh,
					MAX(CASE WHEN backlog_age_s <= `+freshSeconds+` THEN backlog_age_s END) AS fresh_age
				FROM schedule_assignment WHERE own_sign = ?`+named.Text+` GROUP BY task_type, status) a
			GROUP BY task_type) q ON q.task_type = n.task_type
		LEFT JOIN (SELECT i.task_type, COUNT(CASE WHEN i.state = 'RETRY' THEN 1 END) AS retry_items,
				COUNT(CASE WHEN i.state = 'DEAD' THEN 1 END) AS dead_items,
				COUNT(DISTINCT CASE WHEN i.order_key <> '' AND (i.state <> 'DEAD' OR COALESCE(s.on_dead, '') <> 'PASS')
					THEN i.order_key END) AS held_keys
			FROM schedule_failed_item i LEFT JOIN schedule_task_type s ON s.task_type = i.task_type
			WHERE i.own_sign = ?`+ofItem.Text+` GROUP BY i.task_type) f ON f.task_type = n.task_type
		) x ORDER BY task_type`, args...)
	if err != nil {
		return nil, fmt.Errorf("list the task types: %w", err)
	}
	if taskType != "" && len(rows) == 0 {
		return nil, fmt.Errorf("%s: %w", taskType, center.ErrUnknownTask)
	}
	var list []TaskRecord
	for _, r := range rows {
		r.OwnSign = t.c.ownSign
		if n := int64(r.Changes.Queues()); n > 0 {
			r.RequestedTotal = &n
		}
		r.Removing, r.Resizing = r.Changes.Removing(), r.Changes.Totals()
		list = append(list, r.TaskRecord)
	}
	return list, nil
}

// Names lists the names of the task types, for completion.
func (t *Tasks) Names(ctx context.Context) ([]string, error) {
	return sqldb.Records[string](ctx, t.c.db, `SELECT task_type FROM schedule_task_type ORDER BY task_type`)
}
