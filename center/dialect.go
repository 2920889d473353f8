package center

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/dutyrota/rota/schema"
)

// dialect is what differs between the databases. Statements are written once, with ? for
// parameters, {now} for the database's clock and {ago COLUMN} for the instant that lies
// COLUMN milliseconds back, or ahead with -COLUMN; sql turns them into the dialect's own.
type dialect struct {
	name schema.Dialect

	now      string              // the clock now, not at the transaction's start (L2)
	ago      func(string) string // the clock less so many milliseconds
	numbered bool                // $1 instead of ?
	listed   string              // FROM ... WHERE of schedule_queue AS q: the rows of a JSON array of ids, a task type, an own_sign
	byKey    string              // after a table's name: its rows are to be read in the order of their key
	// FROM ... WHERE of schedule_server AS s: the rows of a JSON array of uuids.
	listedServers string
	lockServers   string              // ends a SELECT that locks the rows of s
	deleteServers string              // deletes the rows of a JSON array of uuids
	share         string              // ends a SELECT that keeps its rows as they are until the commit
	skipLocked    string              // ends a SELECT that locks the rows of q that it can have at once (L5)
	limited       string              // ends the WHERE of a transaction's first statement: the server ends the transaction when its client is gone, and its waits for locks
	inLine        string              // the same for the statement that locks: who waits stands in line (see lockBy); a text is bound to it
	firstInLine   string              // the same for who does not wait
	upsertItem    string              // ends an INSERT of failed items: those that are there are changed
	change        string              // writes a plan: see writeHeld; {rows} is a number, not below that of the changes
	time          func(time.Time) any // a parameter that compares with a column of times
	classify      func(error) class   // what an error of the driver means for the transaction
}

// sql translates a statement into the dialect's own.
func (d *dialect) sql(text string) string {
	var b strings.Builder
	for i, part := range strings.Split(strings.ReplaceAll(text, "{now}", d.now), "{ago ") {
		if i > 0 {
			column, rest, _ := strings.Cut(part, "}")
			b.WriteString(d.ago(column))
			part = rest
		}
		b.WriteString(part)
	}
	if !d.numbered {
		return b.String()
	}
	return number(b.String())
}

// number turns each ? into $1, $2 and so on. Our statements hold no ? in literals.
func number(text string) string {
	var b strings.Builder
	n := 0
	for part := range strings.SplitSeq(text, "?") {
		if n > 0 {
			b.WriteByte('$')
			b.WriteString(strconv.Itoa(n))
		}
		b.WriteString(part)
		n++
	}
	return b.String()
}

// marks returns n parameter marks: "?, ?, ?".
func marks(n int) string {
	return strings.TrimSuffix(strings.Repeat("?, ", n), ", ")
}

// list returns FROM ... WHERE of schedule_queue AS q: the rows of the queues. One, as it is most of the time, is asked for
// by its key: databases make a table of a JSON array first, some in a file.
func (d *dialect) list(queues []string, taskType, ownSign string) (from string, args []any, err error) {
	if len(queues) == 1 {
		return ` FROM schedule_queue AS q WHERE q.queue_id = ? AND q.task_type = ? AND q.own_sign = ?`, []any{queues[0], taskType, ownSign}, nil
	}
	doc, err := ids(queues)
	return d.listed, []any{doc, taskType, ownSign}, err
}

// ids is a JSON array of strings, for listed.
func ids(list []string) (string, error) {
	doc, err := json.Marshal(list)
	return string(doc), err
}

// strs turns strings into parameters.
func strs(list []string) []any {
	args := make([]any, len(list))
	for i, s := range list {
		args[i] = s
	}
	return args
}

func utc(t time.Time) any { return t.UTC() }
