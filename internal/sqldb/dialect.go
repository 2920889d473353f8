package sqldb

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dutyrota/rota/schema"
)

// Dialect holds the SQL and the conversions that differ between kinds of databases. It has one field for each
// difference, so it grows with the statements and not with its methods.
type Dialect struct {
	Name    schema.Dialect
	Version string // a SELECT of the name and the version of the server, for people
	// Tables is a SELECT of VIEW or TABLE, as in a DROP, and the name, of all that the schema has, views first.
	Tables    string
	OneWriter bool // the database has one lock for all writers

	Now      string                 // the clock now, not at the start of the transaction (L2)
	PlainNow string                 // Now in a statement that other programs run, if Now is a function of ours
	Ago      func(ms string) string // the clock that many milliseconds ago, at most MaxDuration in either direction
	Numbered bool                   // parameters are $1 instead of ?

	// Three texts take a list of ids: as a parameter that is a JSON array, or as a parameter for each of them in place of
	// {ids} (see In). QueuesIn is FROM ... WHERE of the table {queues} AS q for a list, a task type and an own_sign,
	// ServersIn that of schedule_server AS s for a list of uuids, and DeleteServers deletes these servers.
	QueuesIn      string
	ServersIn     string
	DeleteServers string

	// Values is the table v of [Values]: it reads a JSON array, or selects the {rows}. {columns} are its columns, each as
	// ValueColumns says for its kind, with its {name}. ValueTime is the layout of a time in the array, unless times are
	// texts anyway. {limit} is a parameter with the number of records.
	Values       string
	ValueColumns [valueKinds]string
	ValueTime    string
	// Param is a parameter in the place of a column of v, for each kind.
	Param [valueKinds]string
	// UpdateServers is an UPDATE of the rows s of schedule_server whose keys are in the {values}. {set} and {where} may
	// read v, whose columns have other names than those of s.
	UpdateServers string
	// JoinInOrder joins a table whose rows are looked up for each row of the tables before it.
	JoinInOrder string

	ByKey         string // follows the name of a table, so that its rows are found by their key, in that order
	Notify        string // sends a text to all listeners of a channel; empty if the database cannot
	KeepRow       string // ends an INSERT that does nothing if the key has a row. The statement may lock that row.
	UpsertItem    string // ends an INSERT of failed items: the statement then updates the rows that exist
	UpsertBacklog string // ends an INSERT of backlogs: the statement then updates the rows that have no later epoch
	// ChangeQueues writes a plan: changes that are a JSON array, or that are selected in place of {changes}. {rows} is at
	// least the number of changes.
	ChangeQueues string

	// Share ends a SELECT that keeps its rows unchanged until the commit. Empty if the database has no share locks: then
	// OneWriter or WriteFence stands in for them.
	Share string
	// WriteFence means that share locks do not reach all writers, so that the fence writes (F3): a cluster such as Galera
	// compares the rows that transactions have written, and not the rows that they have read.
	WriteFence bool
	// SkipLocked ends a SELECT that locks the rows of q that are free (L5). Empty only with OneWriter. In a database that
	// cannot skip rows, the statement does not wait for them, and its error has the class Held: see [Free].
	SkipLocked  string
	LockServers string // ends a SELECT that locks the rows of s

	// Limits ends the WHERE of the first statement of a transaction. It makes the server end the transaction when its
	// client is gone, and bounds the waits for locks.
	Limits string
	// WaitInLine is Limits for the statement that takes the lock row: the transaction first waits in a line, which a
	// bound text names. Empty if the database needs no line.
	WaitInLine string
	// TryLine is WaitInLine for a transaction that does not wait.
	TryLine string

	// IdleLimit ends the WHERE of the statement that fences. It makes the server end the transaction when its client has
	// been silent for as long as the text says that is bound to each of its parameters, such as 60000ms (F6). Empty if
	// that is a setting of the connection, or if all clients are on the server's host.
	IdleLimit string

	// Durable ends the WHERE of a statement that changes rows, or locks those of a transaction that does: its commit is
	// acknowledged when it is on disk, whatever the session says. Limits does the same. Empty if a session has no such
	// setting.
	Durable string

	// Guard runs a statement in the place of {work}, and fails with an error that contains [GuardFailed] unless a queue of
	// {table} belongs to an owner: then both have no effect. Its parameters follow those of the statement. Empty if the
	// database has no such form.
	Guard string

	ScheduledDay string // the day in UTC of the column scheduled_at, as a text

	Time     func(time.Time) any // a parameter that compares with a column of times
	Classify func(error) Class   // what an error of the driver means for the transaction
	Denied   func(error) bool    // reports whether the role lacks a right
}

// WithWriteFence returns the dialect of a cluster of the servers of d (F3).
func (d *Dialect) WithWriteFence() *Dialect {
	cluster := *d
	cluster.WriteFence = true
	return &cluster
}

// SetQueue is the SET clause of ChangeQueues. q is the row, and v its change. MySQL evaluates SET from left to right
// (L6): an assignment that reads an old value comes before the one that overwrites it.
const SetQueue = `req_since = CASE WHEN v.req IS NULL THEN NULL WHEN q.req_server = v.req THEN q.req_since
		ELSE {now} END,
	cur_since = CASE WHEN v.bump = 0 THEN q.cur_since WHEN v.cur IS NULL THEN NULL ELSE {now} END,
	cur_server = v.cur, req_server = v.req, epoch = q.epoch + v.bump,
	reserved_for = CASE WHEN v.cur IS NULL THEN q.reserved_for END,
	reserved_until = CASE WHEN v.cur IS NULL THEN q.reserved_until END,
	waits_for = CASE WHEN v.cur IS NULL THEN q.waits_for END, plan_version = v.plan, gmt_modified = {now}`

// OnConflictNothing is the KeepRow of databases that have ON CONFLICT.
const OnConflictNothing = ` ON CONFLICT DO NOTHING`

// OnConflictItem is the UpsertItem of databases that have ON CONFLICT.
const OnConflictItem = ` ON CONFLICT (task_type, own_sign, item_hash) DO UPDATE SET queue_id = excluded.queue_id,
	partition_version = excluded.partition_version, order_key = excluded.order_key, state = excluded.state,
	attempts = excluded.attempts, last_error = excluded.last_error, next_attempt_at = excluded.next_attempt_at`

// OnConflictBacklog is the UpsertBacklog of databases that have ON CONFLICT.
const OnConflictBacklog = ` ON CONFLICT (task_type, own_sign, queue_id) DO UPDATE SET epoch = excluded.epoch,
	items = excluded.items, oldest_at = excluded.oldest_at, measured_at = excluded.measured_at,
	took_ms = excluded.took_ms, rate = excluded.rate, trend = excluded.trend,
	demand = COALESCE(excluded.demand, schedule_backlog.demand)
	WHERE schedule_backlog.epoch <= excluded.epoch`

// ClampedMillis returns an SQL expression for a number of milliseconds that is at most MaxDuration in either direction,
// where the database has LEAST and GREATEST.
func ClampedMillis(ms string) string {
	most := MaxDuration.Milliseconds()
	return fmt.Sprintf("LEAST(GREATEST(%s, %d), %d)", ms, -most, most)
}

// SQL translates a statement into the dialect.
func (d *Dialect) SQL(text string) string {
	var b strings.Builder
	for i, part := range strings.Split(strings.ReplaceAll(text, "{now}", d.Now), "{ago ") {
		if i > 0 {
			column, rest, _ := strings.Cut(part, "}")
			b.WriteString(d.Ago(column))
			part = rest
		}
		b.WriteString(part)
	}
	if !d.Numbered {
		return b.String()
	}
	return number(b.String(), 1)
}

// GuardFailed is in the error of a guarded statement whose queue does not belong to the owner.
const GuardFailed = "rota: fenced"

// Guarded returns the text of a statement with parameters under the guard of a queue of a table. It returns false if
// the database has no such form. It also does so unless the statement begins with INSERT, UPDATE or DELETE: the guard
// does not read the result of the statement, and PostgreSQL would not execute a SELECT then. Nor does it guard a
// statement with a mark that has no parameter: that must fail, and would read a parameter of the guard.
func (d *Dialect) Guarded(table, work string, params int) (text string, ok bool) {
	verb, _, _ := strings.Cut(strings.Join(strings.Fields(work), " "), " ")
	if d.Guard == "" || !slices.Contains([]string{"INSERT", "UPDATE", "DELETE"}, strings.ToUpper(verb)) {
		return "", false
	}
	head, tail, _ := strings.Cut(strings.ReplaceAll(d.Guard, "{table}", table), "{work}")
	for n := range strings.Count(head, "?") {
		if strings.Contains(work, "$"+strconv.Itoa(params+1+n)) {
			return "", false
		}
	}
	head = number(head, params+1)
	return head + strings.TrimRight(work, "; \n\t") + "\n" + tail, true // a comment may end the statement
}

// number turns each ? into $1, $2 and so on, or higher numbers. Our statements hold no ? in literals.
func number(text string, first int) string {
	var b strings.Builder
	n := first - 1
	for part := range strings.SplitSeq(text, "?") {
		if n >= first {
			b.WriteByte('$')
			b.WriteString(strconv.Itoa(n))
		}
		b.WriteString(part)
		n++
	}
	return b.String()
}

// SelectQueues returns FROM ... WHERE of a table of queues AS q for the rows of the queues, and its parameters. A
// single queue, the most frequent case, is looked up by its key: databases turn a JSON array into a table first, some
// of them in a file.
func (d *Dialect) SelectQueues(table string, queues []string, taskType, ownSign string,
) (from string, args []any, err error) {
	if len(queues) == 1 {
		return ` FROM ` + table + ` AS q WHERE q.queue_id = ? AND q.task_type = ? AND q.own_sign = ?`, []any{
			queues[0],
			taskType, ownSign,
		}, nil
	}
	from, args, err = d.In(strings.Replace(d.QueuesIn, "{queues}", table, 1), queues)
	return from, append(args, taskType, ownSign), err
}

// In returns one of the texts that take a list of ids, for at least one id, with the parameters of the list.
func (d *Dialect) In(text string, ids []string) (query string, args []any, err error) {
	if before, after, found := strings.Cut(text, "{ids}"); found {
		return before + Marks(len(ids)) + after, Args(ids), nil
	}
	doc, err := JSON(ids)
	return text, []any{doc}, err
}

// TimeOrNull returns t as a parameter, or NULL if t is zero.
func (d *Dialect) TimeOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return d.Time(t)
}

// UTC is the Time of dialects whose drivers take a time.Time.
func UTC(t time.Time) any { return t.UTC() }
