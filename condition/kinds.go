package condition

// kinds has the kinds below, in their order.
var kinds []Kind

// kind adds a kind to the list.
func kind(name, check, status string, alert Alert, meaning, remedy string) Kind {
	kinds = append(kinds, Kind{name, check, status, alert, meaning, remedy})
	return kinds[len(kinds)-1]
}

// The kinds of conditions.
var (
	Standby = kind("STANDBY", "alerts", Note, Watched,
		"a worker has had no queue for long, because there are more workers than can work",
		"stop some workers, or allow more queues at a time: queues, max_in_flight, max_servers")
	NoFetch = kind("NO_FETCH", "alerts", Problem, Watched,
		"a worker has queues, and has called its dealer for nothing for long",
		"see whether rate_per_second or max_in_flight lets it call nothing for so long (CALLS of rota worker list "+
			"{task}); its log")
	Stalled = kind("STALLED", "dealer", Problem, Watched,
		"a call of the dealer does not end",
		"find out what it waits for: what the dealer calls, the database's locks; the worker's log; batch_timeout ends "+
			"such calls")
	LateReplies = kind("LATE_REPLIES", "alerts", Note, Told,
		"the replies to a worker's heartbeats come too late, so it has given its queues away",
		"shorten the way to the database, or raise judge_dead_interval")
	Crashes = kind("CRASHES", "queues", Problem, Watched,
		"workers were expired one after the other with the same queue",
		`read the logs of the workers that have died, and "rota item list {task}": an item may end its process`)
	Killer = kind("KILLER", "items", Problem, Each,
		"an item is DEAD, because the process ended while it executed the item alone",
		"rota item list {task} --state DEAD; then rota item retry {task} ITEM, or, when no select returns it any more, "+
			"rota item drop {task} ITEM")
	Unserved = kind("UNSERVED", "workers", Problem, Watched,
		"a task type has queues and no live worker; a worker of another one raises the alert",
		"start a worker: your program, or rota worker -c rota.yaml")
	Refused = kind("REFUSED", "alerts", Problem, Told,
		"a worker does not serve a task type, because its dealer or its program cannot work by the settings in the "+
			"database, or by how the queues are divided",
		"do what the text says: change the setting, or start another version of the worker")
	Failing = kind("FAILING", "failing", Problem, Watched,
		"the calls of a worker's dealer have done nothing but fail for half a minute",
		"correct what the error says; the log of the worker has more")
	QueueFailing = kind("QUEUE_FAILING", "failing", Problem, Watched,
		"all calls for a queue have failed for ten minutes; five queues of a worker at most have an alert each",
		"rota item list {task} shows the errors; a cursor waits for its first item: count_in_outage and "+
			"item_max_attempts let it pass")
	Parked = kind("PARKED", "alerts", Note, Told,
		"a queue has so many failed items that its selects may miss others",
		"rota item list {task}, and of a run: rota run show {task}; leave DEAD items out of the select, or let "+
			"it go on behind the page (Selection.After)")
	Unrecorded = kind("UNRECORDED", "alerts", Problem, Told,
		"failed items could not be recorded for half a minute, so that another worker would begin to count their attempts "+
			"again",
		"correct what the error says; a key must be valid UTF-8, not empty and without NUL")
	Undiscarded = kind("UNDISCARDED", "alerts", Problem, Told,
		"the Discard of dead items fails, so that selects return them again",
		"correct what the error says: discard of the sql dealer, or Discard of your dealer; it is called again")
	Unhinted = kind("UNHINTED", "alerts", Note, Told,
		"items come without a hint although the setting hinted says that each has one, so that they wait for up to 30 s",
		"let each program that adds items call Center.Wake after its commit, or: rota task set {task} hinted=false")
	Outage = kind("OUTAGE", "alerts", Problem, Watched,
		"items fail and nothing succeeds, so that a worker only samples them; where FAILING does not say so",
		"correct what the error says; the log of the worker has more")
	Backlog = kind("BACKLOG", "alerts", Note, Watched,
		"counts of the backlog fail, and become rare",
		"correct the count; the log of the worker has the error")
	StrayItems = kind("STRAY_ITEMS", "alerts", Problem, Watched,
		"items belong to no queue, so that no worker selects them, or to several",
		"divide them so that negative keys, NULL and texts have a queue: {{mine KEY}} in SQL, schema.Dialect.Mine in Go")
	NoEffect = kind("NO_EFFECT", "alerts", Note, Told,
		"Execute succeeds, and the selects of a queue return the same items again",
		"let Execute change what Select looks for, or let Select go on behind Queue.Cursor")
	Limit = kind("LIMIT", "alerts", Note, Told,
		"the selects of a queue seem to ignore their limit",
		"use Selection.Limit, {{limit}} in SQL")
	BadPage = kind("BAD_PAGE", "alerts", Note, Told,
		"a select returns an item twice",
		"look for a join that returns a row more than once")
	KeyDivided = kind("KEY_DIVIDED", "alerts", Problem, Told,
		"items of one order key are in several queues, so they are in no order",
		"divide the items by the order key, or by what depends on it: {{mine customer_id}} for the key customer_id")
	Unreachable = kind("UNREACHABLE", "alerts", Problem, Watched,
		"a data database cannot be used, and its queues are not selected",
		"correct what the error says; the queues go on by themselves")
	FenceWait = kind("FENCE_WAIT", "alerts", Note, Watched,
		"a queue waits for the end of fenced transactions: those of its earlier owner in its data database, or one "+
			"of its own whose COMMIT got no reply",
		"wait: idle_tx_timeout ends them, and a COMMIT waits for what it needs, such as a synchronous standby; or "+
			"end their sessions")
	Witness = kind("WITNESS", "alerts", Note, Told,
		"other processes of the host cannot notice at once that a process has ended",
		"make witness_dir writable for the workers of the host; the log says why it is not used")
	NoHints = kind("NO_HINTS", "alerts", Note, Watched,
		"workers of a host have heard no hints for a minute, and should",
		"let the workers open one more connection each, or set hints: false; the log says why they cannot listen")

	RunFailed = kind("RUN_FAILED", "runs", Problem, Watched,
		"a run is FAILED or DEPENDENT_FAILED, and no later run of its trigger has succeeded", "")
	RunOverdue = kind("RUN_OVERDUE", "runs", Problem, Watched,
		"an open run has used 90 % of run_timeout", "")
	RunStalled = kind("RUN_STALLED", "runs", Problem, Watched,
		"no item of an open run has ended for half an hour", "")
	RunCancelled = kind("RUN_CANCELLED", "runs", Note, Silent,
		"an operator has cancelled a run", "")
	SlotMissed = kind("SLOT_MISSED", "triggers", Problem, Watched,
		"a slot of a trigger never fires, and no run of a later slot has succeeded", "")
	SlotSkipped = kind("SLOT_SKIPPED", "triggers", Problem, Watched,
		"three slots of a trigger in a row were skipped, or all slots of a day", "")
	TriggerLate = kind("TRIGGER_LATE", "triggers", Problem, Watched,
		"a trigger has been due for a minute, and no worker fires it", "")
	TriggerError = kind("TRIGGER_ERROR", "triggers", Problem, Watched,
		"a trigger cannot fire, because its row is invalid", "")
	RunUnmade = kind("RUN_UNMADE", "runs", Problem, Silent,
		"transactions have submitted runs of a task type that works in no runs, or that was deleted",
		"rota task set {task} mode=RUN; or delete the rows: DELETE FROM schedule_submission WHERE task_type = '{task}'")
	JoinUnmet = kind("JOIN_UNMET", "joins", Note, Silent,
		"no trigger leads to an upstream of a join",
		"rota trigger apply: give the upstreams the same slots; or use after_any, for a run for each")

	NoTasks = kind("NO_TASKS", "tasks", Note, Silent,
		"there are no task types",
		"start a worker, or: rota task apply -f rota.yaml; a worker that runs already logs why it creates none, and "+
			"rota doctor -c rota.yaml compares its file")
	Healthy = kind("HEALTHY", "roster", OK, Silent,
		"nothing is wrong with a task type", "")
	Paused = kind("PAUSED", "pause", Note, Silent,
		"a task type is paused",
		"rota task resume {task}")
	WindowClosed = kind("WINDOW_CLOSED", "window", Note, Silent,
		"no worker may select for a week, because the window of permitted work is closed; OK if it opens before. "+
			"A window without an end closes queue by queue, which is not told",
		"wait until it opens; to lift it: rota task set {task} permit_run_start_time= permit_run_end_time=")
	NeverServed = kind("NEVER_SERVED", "queues", Note, Silent,
		"no worker has ever served a task type",
		"start a worker: your program, or rota worker -c rota.yaml")
	NoEligible = kind("NO_ELIGIBLE", "workers", Problem, Silent,
		"no worker may take queues, or those of a paused one",
		"start a worker, or resume one: rota worker list {task}")
	ServerPaused = kind("SERVER_PAUSED", "workers", Note, Silent,
		"a worker is paused", "")
	ServerDrained = kind("SERVER_DRAINED", "workers", Note, Silent,
		"a worker is drained and still runs", "")
	ServerSilent = kind("SERVER_SILENT", "workers", Problem, Silent,
		"a worker sends no heartbeats",
		"start a worker, which takes over; find out why the process stopped")
	ServerExpired = kind("SERVER_EXPIRED", "workers", Note, Silent,
		"a worker died or stood still in the last ten minutes, and has not joined again",
		"find out why the process ended or stands still, by its log; rota worker list {task} --gone")
	NoCalls = kind("NO_CALLS", "queues", Problem, Silent,
		"a worker owns queues and gets no call of max_in_flight",
		"raise max_in_flight or max_queues_per_server")
	PlannerVersion = kind("PLANNER_VERSION", "planner", Note, Silent,
		"workers know different rules of the planner, so that only the oldest ones plan",
		"end the rolling upgrade")
	Unwitnessed = kind("UNWITNESSED", "witness", Note, Silent,
		"the other processes of its host cannot prove a worker's end",
		"give all workers of the host the same witness_dir; see the worker's log")
	SameName = kind("SAME_NAME", "names", Problem, Silent,
		"two workers have one name",
		"give each worker a name of its own")
	RequireUnmet = kind("REQUIRE_UNMET", "labels", Problem, Silent,
		"no worker has the labels of require",
		"start a worker with the labels: rota worker --labels; or change the rule: rota task set {task} require=LABELS")
	PinUnmet = kind("PIN_UNMET", "pins", Problem, Silent,
		"no worker that has the labels of a pin may take the queue, and its owner keeps it",
		"start a worker with the labels, or: rota queue unpin {task} QUEUE")
	LastError = kind("LAST_ERROR", "errors", Note, Silent,
		"a call of the dealer has failed", "")
	Hung = kind("HUNG", "queues", Problem, Silent,
		"a queue has no owner, because a call of a former session hangs",
		"start another worker, or end the process in which the call hangs; a context that is cancelled should end "+
			"the call")
	NoOwner = kind("NO_OWNER", "queues", Problem, Silent,
		"a queue has no owner",
		"read the log of the workers: an audit assigns such queues every 30 s")
	Reserved = kind("RESERVED", "queues", Note, Silent,
		"a queue waits for the return of a worker",
		"wait until the workers are back, or until return_within is over")
	Orphan = kind("ORPHAN", "queues", Problem, Silent,
		"the owner of a queue is not registered",
		"wait: the next audit assigns them within 30 s")
	LateHandover = kind("LATE_HANDOVER", "requests", Problem, Silent,
		"a queue was requested long ago", "")
	DeadItems = kind("DEAD_ITEMS", "items", Problem, Silent,
		"items have failed for good",
		"rota item list {task} --state DEAD; then rota item retry {task} --all --state DEAD, or, when no select returns "+
			"it any more, rota item drop {task} ITEM")
	RetryItems = kind("RETRY_ITEMS", "items", Note, Silent,
		"items have failed and are retried",
		"rota item list {task}")
	BacklogStuck = kind("BACKLOG_STUCK", "backlog", Problem, Silent,
		"the oldest item of a queue stays the oldest",
		"find out why Select does not return the oldest item, or why it fails: rota item list {task}")
	BacklogGrowing = kind("BACKLOG_GROWING", "backlog", Note, Silent,
		"more items come than are executed",
		"see by rota worker list {task} whether calls hang or fail; if not, more workers, threads or queues execute "+
			"more at a time")
	BacklogLimited = kind("BACKLOG_LIMITED", "backlog", Note, Silent,
		"at the rate that the settings allow, the backlog takes more than an hour",
		"if what Execute calls can take more, raise the rate: rota task set {task} rate_per_second=0 lifts it")
	BacklogOld = kind("BACKLOG_OLD", "backlog", Note, Silent,
		"counts of backlogs are old",
		"see the alert BACKLOG, and let the count of a queue take milliseconds: give it an index, or more queues")
	LoadUnknown = kind("LOAD_UNKNOWN", "load", Note, Silent,
		"balance is LOAD, and no queue has a measured load",
		"let the dealer count its backlog (a Backlogger, or backlog: of the sql dealer), or set balance to QUEUES")
	LoadIncomplete = kind("LOAD_INCOMPLETE", "load", Note, Silent,
		"the loads of some queues are not known",
		"wait until their owners have counted twice; if counts fail, the log of the workers and the alert BACKLOG "+
			"say why")
	LoadTooLarge = kind("LOAD_TOO_LARGE", "load", Note, Silent,
		"a queue has more load than a worker should have",
		"divide the items into more queues")
	LoadBudget = kind("LOAD_BUDGET", "load", Note, Silent,
		"the load is uneven, and the budget of moves is used up",
		"wait, or raise load_moves_per_hour; rota plan {task} --by-load shows the moves")
	RepartitionWait = kind("REPARTITION_WAIT", "repartition", Note, Silent,
		"another number of queues waits for workers to drain", "")
	PlanSkipped = kind("PLAN_SKIPPED", "plan", Note, Silent,
		"a plan could not move queues, because transactions hold their rows",
		"wait: owners drain such queues; if the note stays, end the session in the database that holds the rows")
	RemovalWait = kind("REMOVAL_WAIT", "removal", Note, Silent,
		"a queue that is to be removed waits for its owner", "")
	ResizeWait = kind("RESIZE_WAIT", "resize", Note, Silent,
		"queues that are to be split or merged wait for their owners", "")
	SettingsGone = kind("SETTINGS_GONE", "settings", Problem, Silent,
		"a task type has no row of settings",
		"rota task apply -f rota.yaml creates it again")
	SettingsInvalid = kind("SETTINGS_INVALID", "settings", Problem, Silent,
		"workers refuse the row of settings",
		"correct the row: rota task set {task} SETTING=VALUE, or with all of a file: rota task apply --reset -f "+
			"rota.yaml")
	SettingsDiffer = kind("SETTINGS_DIFFER", "settings", Note, Silent,
		"a program or a file states other settings than the row",
		"to change the row: rota task set {task} SETTING=VALUE, or with all that is stated: rota task apply -f rota.yaml, "+
			"and manager.Apply in a Go program; otherwise change the program")
	NoUpstream = kind("NO_UPSTREAM", "settings", Problem, Silent,
		"the file of a worker names an upstream that does not exist", "")
	InvalidValue = kind("INVALID_VALUE", "values", Problem, Silent,
		"workers ignore a value of a row",
		"write a valid value with SQL; if the table has lost its CHECK constraints, which refuse such values, add "+
			"them again")

	HistoryLost = kind("HISTORY_LOST", "history", Problem, Watched,
		"the database has lost history that it had acknowledged",
		"find out what else is lost since then: runs, events, failed items, your own data; then: rota doctor ack")

	Data = kind("DATA", "data", Problem, Silent,
		"a data database cannot be used, or is not the one that it should be", "")
	DataAhead = kind("DATA_AHEAD", "data", Problem, Silent,
		"a data database has fenced epochs that the roster does not know: the roster has lost history",
		"start a worker: it raises all epochs above those, and says so by the alert HISTORY_LOST")
	Database = kind("DATABASE", "database", Problem, Silent,
		"the database cannot be reached, or there is something to know about it", "")
	Durability = kind("DURABILITY", "durability", Problem, Silent,
		"a crash of the database, or the promotion of a replica, loses commits that were acknowledged", "")
	Pooler = kind("POOLER", "pooler", Note, Silent,
		"something stands between this program and the database, such as a pooler", "")
	SearchPath = kind("SEARCH_PATH", "search_path", Note, Silent,
		"other roles may create in the schema of the tables", "")
	TLS = kind("TLS", "tls", Note, Silent,
		"connections are not encrypted, or nothing is verified", "")
	Clock = kind("CLOCK", "clock", Problem, Silent,
		"the clocks of the database, its nodes or this host differ", "")
	Schema = kind("SCHEMA", "schema", Note, Silent,
		"the tables are newer than this program",
		"install a newer rota, here and for the workers")
	Privileges = kind("PRIVILEGES", "privileges", Problem, Silent,
		"this role lacks rights that a worker needs", "")
	Statements = kind("STATEMENTS", "statements", Problem, Silent,
		"workers refuse rota.yaml or a statement of it, or a statement reads too much or was not checked", "")
	Cursor = kind("CURSOR", "cursor", Problem, Silent,
		"a transaction holds a cursor back", "")
)
