// Package manager runs the servers of one process. A server joins the roster of a task type that the process serves, sends
// heartbeats, plans when a plan is due, lets a processor work the queues that it owns, drains the queues that other servers
// request and hands them over, and leaves in order.
//
//	c, err := center.Open(ctx, postgres.URL(os.Getenv("ROTA_DATABASE")), center.Options{})
//	...
//	m, err := manager.New(c, manager.Config{},
//		manager.Serve("settle", settle{c.DB()}, manager.Settings{Queues: 8, ExecuteNumber: 100}))
//	...
//	err = m.Run(ctx) // until ctx is done; then it drains and hands over
//
// # The states of a server
//
//	             registered               lease expired, or row gone
//	joining ------------------> serving ---------------------------------> fenced
//	   ^                         |   ^                                      |  |
//	   |                  ctx is |   | the row is still there: work resumes |  |
//	   |                    done |   +--------------------------------------+  |
//	   |                         v                                             |
//	   |                      leaving                                          |
//	   |        the row is gone: everything is forgotten, a new session        |
//	   +-----------------------------------------------------------------------+
//
// # Where things are
//
//	server      one task type over all sessions: defines it, joins, runs one session after the other
//	session     one registration, with a method for each state: waits for events and deals with them
//	heartbeater sends the heartbeats of all sessions of the process; registration is what it needs of a session
//	lease       how long the server may believe that it owns its queues; watch: whether it may expire other servers
//	ownView     the server's queues as they were last read, and whether they must be read again
//	planner     rebalances, changes the number of queues, audits
//	reconciler  reads the view, decides, performs: the way of a queue from the plan to the processor and back
//	halt        pauses, the barrier of a repartition, and the hand-over of everything
//	runTicker   when to look after the runs; sweeper: sweeps queues for the open run
//	alerter     raises what an operator should know
//	configurer  applies changed settings
//
// One pure function, decide, decides what is to be done with each queue: it compares the rows as they were read with the
// queues that the processor has. The tests named Model explore that function and package internal/plan, against a modelled
// database with lost replies, pauses, crashes and clocks that are set.
//
// # Goroutines
//
// The heartbeater has one goroutine for the whole process and a database connection of its own, so that no plan, release
// or dealer can delay a heartbeat. Each task type has one goroutine for its server, which alone talks to the roster, and
// the thread_number executors of its processor. The executors never ask the database about ownership: they check the lease
// before each select and each batch.
//
// # The lease
//
// The lease makes a network partition harmless. A server believes that it owns its queues until judge_dead_interval less a
// margin after the start of its last successful heartbeat, by the larger of the monotonic and the wall clock. Then it
// cancels what is in flight and starts nothing, while the other servers still wait. A timer does that, so that no statement
// that hangs can delay it. A process that was stopped for longer may finish the call that it was in. No check can prevent
// that, but the fence rejects its writes.
//
// # Permit windows
//
// Permit windows follow the database's clock, as estimated from the last heartbeat. A timer wakes the server when one opens
// or closes. A server owns its queues also while they must not be worked, so that no queue moves when a window opens.
//
// # Runs
//
// In mode RUN queues are owned as in mode CONTINUOUS, but worked only while a run is open. The server claims own queues for
// the run, twice as many as it has executors, and grants each to the processor together with the run. That is a sweep. Its
// progress is saved every 5 s. When a select finds nothing more, or the sweep has failed, the processor forgets the queue
// first, and then the server writes the outcome in a transaction that fences the queue. Before a queue is handed over its
// sweep is suspended: the next owner continues it, and that counts as no attempt.
//
// Engine.Tick of internal/runs decides what becomes of the runs themselves. The heartbeat tells whether a run has not
// ended, and when the next trigger is due. Only then does the server tick, once a second or at that instant. To tick every
// second in any case would cost a database with many idle workers more than all their heartbeats.
//
// # New uuids
//
// A uuid is never registered twice. A server that was expired cannot know what has happened since. If it joined under the
// old uuid, a release that was sent for the old session would look right for the new one.
//
// # What is not promised
//
// A dealer that ignores its context keeps its queue from being worked again by this process, and keeps [Manager.Run]
// waiting for drain_timeout and a grace. What it does afterwards happens after Run has returned.
//
// # Libraries
//
// google/uuid makes ids and tokens; x/sync/errgroup runs the servers and ends all when one fails.
package manager
