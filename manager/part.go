package manager

import (
	"context"
	"time"

	"github.com/dutyrota/rota/internal/roster"
)

// part is what an option adds to a session: what it does at the points that every session passes. Each option returns
// its part from its own file, with the functions that it needs, and the others are nil. newSession lists the parts. The
// kernel of the session (the lease, the view, the plan and the hand-over of queues) goes through the list, and knows no
// option.
//
// All functions run in the server's own goroutine, except report, statistics, status and workless.
type part struct {
	// register adds to what the server registers with.
	register func(*roster.ServerInfo)
	// registered takes what the part needs of the registration.
	registered func(roster.Registration)
	// follow takes what the part needs of a heartbeat's reply, before the session reconciles by it.
	follow func(heartbeatReply)
	// told is called when a hint says that something has changed (X9).
	told func()
	// ahead is called when a data database has a later owner of a queue.
	ahead func(roster.AheadError)
	// update notes what has changed, before the session decides what to do with its queues.
	update func(context.Context)

	// closed returns which queues must not be worked now, and changes when that changes next by itself: never if that is
	// zero.
	closed  func([]roster.ViewQueue) map[string]bool
	changes func() time.Time

	// jobs make the jobs of the part's duties, or nil where there is nothing to do. The duties of often are due after each
	// event, and those of beats after each heartbeat. The part adds the others to the agenda.
	jobs         map[duty]func() *job
	often, beats []duty

	// yield is called before a drained queue is handed over. What it returns is called in the job that does so, first.
	// yielded is called when the queue was handed over.
	yield   func(queue string) func(context.Context)
	yielded func(roster.Handover)
	// leave is called when the server leaves and has drained its queues, except some. No job is running.
	leave func(ctx context.Context, jobs *jobRunner, notDrained []string)

	// look sees the conditions that last. restricted says that the server must not work on all of its queues now.
	look func(ctx context.Context, restricted bool)

	// report, statistics and status add to what the server reports of itself. workless says that there is no work to do,
	// so that failures do not last.
	report     func(*roster.ServerReport)
	statistics func(*roster.Statistics)
	status     func(*Status)
	workless   func() bool
}
