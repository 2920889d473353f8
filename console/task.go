package console

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/ops"
)

// rowsPerPage is how many rows of a list a page has.
const rowsPerPage = 100

// taskPage is the page of a task type.
type taskPage struct {
	ops.TaskRecord
	diagnosis
	Marks    []mark
	Spark    spark
	Backlog  backlog
	Owners   []*owner
	Cells    []cell // of a strip with a cell for each queue; nil if there are too many
	Fields   []field
	Rows     []queueRow
	Pages    paging
	Data     []dataRow // its data databases
	Settings []settingRow
	Filter   string // the condition that the list is limited to
	Sentence string
	Named    bool // its queues have names
}

// queueRow is a queue in the list.
type queueRow struct {
	cell
	Next *owner
	Mark mark
	read time.Time
}

// Bad reports whether the queue has no live owner.
func (q queueRow) Bad() bool { return q.Mark.Kind == "bad" }

// showTask returns the page of a task type.
func showTask(ctx context.Context, v *viewer, query url.Values) content {
	t := v.taskNamed(ctx, query.Get("task"))
	queues, servers := v.queuesOf(ctx, t.TaskType), v.serversOf(ctx, t.TaskType)
	if v.Err != nil || !v.knows("tasks") {
		return content{Title: t.TaskType}
	}
	named := nameOwners(servers, queues)
	p := taskPage{
		TaskRecord: t, Spark: v.samples.ofTask(t.TaskType),
		Backlog: backlogOfTask(t, v.readAt("tasks")), Owners: named.List, Filter: query.Get("status"), Pages: pageOf(query),
	}
	p.Sentence = sentence(t, servers, v.knows("servers"))
	p.Named = slices.ContainsFunc(queues, hasName)
	p.strip(named, queues)
	p.list(named, queues, v.readAt("queues"))
	p.Settings = v.settingsOf(ctx, t.TaskType, servers)
	p.Data = v.dataOf(ctx, t.TaskType)
	p.diagnosis = v.diagnose(ctx)
	p.Bad = slices.DeleteFunc(p.Bad, func(f found) bool { return f.TaskType != t.TaskType })
	p.Marks = marksOf(t, p.Judgement)
	return content{t.TaskType, p, queues}
}

// hasName reports whether a queue has a name, and not a number.
func hasName(q ops.QueueRecord) bool { return q.QueueTotal == nil }

// sentence says what the task type is. The servers may not be known yet.
func sentence(t ops.TaskRecord, servers []ops.ServerRecord, known bool) string {
	hosts := map[string]bool{}
	for _, s := range servers {
		hosts[s.HostName] = true
	}
	kind := "Continuous"
	if t.Mode == center.ModeRun {
		kind = "In runs"
	}
	kind += ", " + human.Count(t.QueueTotal, "queue", "queues")
	if !known {
		return kind
	}
	return fmt.Sprintf("%s, served by %s on %s", kind,
		human.Count(len(servers), "worker", "workers"), human.Count(len(hosts), "host", "hosts"))
}

// conditionOf returns the mark of a queue.
func conditionOf(q ops.QueueRecord) mark {
	text := strings.ToLower(q.DisplayState())
	switch {
	case q.Status == "OVERDUE" || q.Status == "ORPHAN":
		return mark{"bad", text}
	case q.Status == "UNASSIGNED" && q.WaitsFor != nil:
		return mark{"warn", text + ", " + *q.WaitsFor}
	case q.Status == "UNASSIGNED":
		return mark{"warn", text}
	case q.FailingFor != nil:
		return mark{"bad", text + ", all its calls fail"}
	case q.Status == "MOVING" || q.Status == "RESERVED" || q.Removing:
		return mark{"busy", text}
	}
	return mark{"ok", text}
}

// list fills the rows, trouble first, of the condition that the reader asks for.
func (p *taskPage) list(named owners, queues []ops.QueueRecord, read time.Time) {
	byRank := map[int][]int{} // the indices of the queues, in their order
	for i, q := range queues {
		m := conditionOf(q)
		if p.Filter == "" || p.Filter == "trouble" && (m.Kind == "bad" || m.Kind == "warn") ||
			strings.EqualFold(p.Filter, q.Status) {
			r := rank([]mark{m})
			byRank[r] = append(byRank[r], i)
		}
	}
	var order []int
	for _, r := range slices.Sorted(maps.Keys(byRank)) {
		order = append(order, byRank[r]...)
	}
	for _, i := range cutPage(&p.Pages, order, false) {
		p.Rows = append(p.Rows, queueRow{
			named.cellOf(queues[i]), named.Of(queues[i].ReqServer), conditionOf(queues[i]),
			read,
		})
	}
}

// Conditions returns the conditions that the list can be limited to.
func (p taskPage) Conditions() map[string]string {
	return map[string]string{"trouble": "Trouble", "MOVING": "Moving", "HELD": "Held"}
}

// Since returns since when the owner has had the queue.
func (q queueRow) Since() *time.Time { return ownedSince(q.Queue, q.read) }

// Backlog returns what the queue has left.
func (q queueRow) Backlog() backlog { return backlogOfQueue(q.Queue, q.read) }

// ownedSince returns since when a queue that was read at a time has its owner, by this host's clock. It returns nil for
// a queue without an owner.
func ownedSince(q ops.QueueRecord, read time.Time) *time.Time {
	return secondsBefore(read, q.OwnedFor)
}
