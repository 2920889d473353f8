// Package manager runs the servers of one process. A server joins the roster of a task type that the process serves,
// sends heartbeats, and plans when a plan is due. It lets a processor work the queues that it owns. It drains the
// queues that other servers request, and hands them over. At the end it hands over everything.
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
//	session     one registration, with a method for each state: waits for events and handles them
//	heartbeater sends the heartbeats of all sessions of the process; registration is what it needs of a session
//	lease       how long the server may trust that it owns its queues; watch: whether it may expire other servers
//	ownView     the server's queues as they were last read, and whether it must read them again
//	planner     rebalances, changes the number of queues, audits
//	reconciler  reads the view, decides, performs
//	halt        pauses, and the hand-over of everything
//	alerter     raises what an operator should know
//	configurer  applies changed settings
//	agenda      what these have to ask of the roster, and from when on: a value, with pure functions for what is next
//	jobRunner   does what is due, one job at a time, beside the session's goroutine
//
// That is the kernel. Options are parts of a session (part.go), each in a file of its own:
//
//	window   permit windows                          share    the server's part of max_in_flight (P10)
//	drain    calls of former sessions that hang (P9) crash    queues whose owners die one after the other (S14)
//	history  history that the database has lost (H7) failing  a dealer and queues that do nothing but fail (X7)
//	data     data databases (F11)                    backlog  counts of items
//	hints    hints of other processes (X9)           items    failed items that an operator has changed
//	sweep    runs, with their ticks in tick          witness  processes of the host that have ended (S15)
//
// # The way of a queue
//
// From the plan to the first select:
//
//	planner.rebalance          plans in one transaction, which writes the owner into the queue's row
//	heartbeater.sendHeartbeat  reads the figures of the server's queues; registration.renew passes on the reply
//	session.wait               receives the reply
//	session.follow             finds with ownView.mustRead that the figures differ from its last view; what else the
//	                           reply asks for goes on the agenda, with agenda.after
//	reconciler.reconcile       reads the queue's row with ownView.read
//	decide                     finds the new queue; facts.begin returns grant
//	reconciler.perform         calls reconciler.grant
//	Processor.Grant            makes the queue due for its first select; see internal/engine
//
// The server that plans takes the last four steps as soon as its plan is written. A server that waits for another owner
// polls in between (ownView.pollAt), and reads its queues when a hint tells it to (session.lookAtOnce). In mode RUN,
// sweeper.claim claims the queue after a tick, and sweeper.grant calls Grant.
//
// Manager.Wake passes hints about new items to the processors, Manager.tell those about queues to the sessions.
//
// On the way back, facts.keep returns drain and then release, for a queue that another server requests.
// reconciler.release makes the processor forget the queue before it sends the release.
//
// decide is a pure function. It compares the rows as they were read with the queues that the processor has. Package
// internal/sim plays it, with all else that a process has, in random histories with lost replies, pauses, crashes and
// clocks that are set.
//
// # The way of an item
//
// Package internal/engine selects and executes items, and its doc.go has the steps. It comes back here for what it
// keeps in the database: server.leaseValid before each select and batch, server.bind for the context of a batch,
// itemStore after failures, cursorStore for cursors, server.queueAlert for alerts.
//
// # Goroutines
//
// The heartbeater has one goroutine for the whole process and a database connection of its own, so that no plan,
// release or dealer can delay a heartbeat. Each task type has one goroutine for its server. That goroutine reads the
// server's rows and decides. What may wait for the lock row, or takes many statements, is a job: it runs in a goroutine
// of its own, one at a time, and its outcome comes back as an event (S10). So a pause, the loss of a queue and the end
// of a window take effect while a job waits. Each task type also has the thread_number executors of its processor. The
// executors never ask the database about ownership: they check the lease before each select and each batch.
//
// # The lease
//
// The lease makes a network partition harmless. A server trusts that it owns its queues until judge_dead_interval less
// a margin after the start of its last successful heartbeat, by the larger of the monotonic and the wall clock. Then it
// cancels what is in flight and starts nothing, while the other servers still wait. A timer does that, so that a
// statement that hangs cannot delay it. A process that was stopped for longer may finish the call that it was in. No
// check can prevent that, but the fence rejects its writes.
//
// # Permit windows
//
// Permit windows follow the database's clock, as estimated from the last heartbeat. A timer wakes the server when one
// opens or closes. A server keeps its queues while the window is closed, so that no queue moves when it opens.
//
// # Runs
//
// In mode RUN a server owns queues as in mode CONTINUOUS, but works them only while a run is open. It claims own queues
// for the run, twice as many as it has executors, and grants each to the processor together with the run. That is a
// sweep. The server saves its progress every 5 s. When a select finds nothing more, or the sweep has failed, the
// processor forgets the queue first. Then the server writes the outcome in a transaction that fences the queue. Before
// the server hands a queue over, it suspends the sweep: the next owner continues it, and that counts as no attempt.
//
// The server's part of rate_per_second follows from the queues of the run that are not finished (runTicker.tick).
//
// Scheduler.Tick of runs opens and ends the runs themselves. The heartbeat's reply says whether a run is open,
// and when the next trigger is due. Only then does the server tick, once a second or when the trigger is due. With a
// tick every second in any case, many idle workers would cost a database more than all their heartbeats.
//
// # New uuids
//
// A server never registers the same uuid twice. A server that was expired cannot know what has happened since. If it
// joined under the old uuid, a release that was sent for the old session would be valid for the new one.
//
// # What is not promised
//
// A dealer that ignores its context keeps its queue from being worked again by this process. After an expiry another
// server gets the queue, or none if there is no other, until the dealer returns. The dealer also keeps [Manager.Run]
// waiting for drain_timeout and a grace. What it does afterwards happens after Run has returned.
//
// # Libraries
//
// google/uuid makes ids and tokens. x/sync/errgroup runs the servers, and stops all of them when one fails.
package manager
