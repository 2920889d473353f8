// Package manager lives the life of the servers of one process: it joins the roster of each task type
// that the process serves, beats, plans when a plan is due, lets a processor work the queues that the
// roster says are this server's, drains what others ask for and hands it over, and leaves in order.
//
//	c, err := center.Open(ctx, postgres.URL(os.Getenv("ROTA_DATABASE")), center.Options{})
//	...
//	m, err := manager.New(c, manager.Config{},
//		manager.Serve("settle", settle{c.DB()}, manager.Settings{Queues: 8, ExecuteNumber: 100}))
//	...
//	err = m.Run(ctx) // until ctx is done; then it drains and hands over
//
// # The life of a server
//
//	             registered                  lease over, or row gone
//	joining ------------------> serving ---------------------------------> fenced
//	   ^                         |   ^                                      |  |
//	   |                  ctx is |   | the row is still there: work resumes |  |
//	   |                    done |   +--------------------------------------+  |
//	   |                         v                                             |
//	   |                      leaving                                          |
//	   |        the row is gone: everything is forgotten, a new uuid           |
//	   +-----------------------------------------------------------------------+
//
// states.go has one method for each. What is to be done with a queue is decided in one pure function,
// decide, which compares the rows as they were read with what the processor has in hand. The tests named
// model explore that function and the planner, against a modelled database with lost replies, pauses,
// crashes and clocks that are set.
//
// # Who runs when
//
// The heart is one goroutine for the whole process, with a database connection of its own: nothing that
// plans, releases or processes can hold up a heartbeat. Each task type has one goroutine for its state,
// which alone talks to the roster, and the executors of its processor, of which there are thread_number.
// The executors never ask the database about ownership: before each select and each batch they look at
// the lease.
//
// The lease is what makes a partition harmless. A server believes that it owns its queues until
// judge_dead_interval less a margin after the start of its last successful heartbeat, by the larger of
// the monotonic and the wall clock. Then it cancels what is in hand and starts nothing, while the others
// still wait. A timer does that, so that no statement that hangs can delay it. A process that was stopped for
// longer may finish the one call that it was in: no check can prevent that, the fence alone makes its writes void.
//
// Permit windows follow the database's clock, as estimated from the last heartbeat, and a timer wakes the server
// when one opens or closes. What may not be worked is owned all the same, so that opening a window moves nothing.
//
// # Runs
//
// In mode RUN a queue is owned as in any other, but it is worked only while a run is open: the server claims queues of
// its own for the run, twice as many as it has executors, and grants each to the processor together with the run. That
// is a sweep. How far it is, is saved every 5 s; when a select finds nothing more, or the sweep has failed, the queue is
// taken from the processor first and the outcome is written then, in a transaction that fences the queue. Before a
// queue is handed over its sweep is suspended, so that it goes on elsewhere where it was, and counts no attempt.
//
// What becomes of the runs themselves is decided by center.Tick. The heartbeat tells whether any run has not ended, and
// when the next trigger is due; only then does the server tick, once a second or at that instant. To ask every second
// whether there is anything to do would cost a database with many idle workers more than all their heartbeats.
//
// A uuid is never registered twice. Whoever was expired cannot know what has happened since, and joining
// under the old name would make what was meant for the old life look right for the new one.
//
// # What is not promised
//
// A dealer that ignores its context keeps its queue from being worked again by this process, and keeps
// [Manager.Run] waiting for drain_timeout and a grace; what it does afterwards goes on behind Run's back.
//
// # Libraries
//
// google/uuid makes ids and tokens; x/sync/errgroup runs the servers and ends all when one fails.
package manager
