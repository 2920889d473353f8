CREATE TABLE schedule_schema_version (
			id         INTEGER PRIMARY KEY AUTOINCREMENT,
			version_id BIGINT  NOT NULL UNIQUE,
			is_applied BOOLEAN NOT NULL,
			tstamp     TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000')
		);
CREATE TABLE schedule_schema_lock (
			id               BIGINT NOT NULL PRIMARY KEY,
			holder           TEXT   NOT NULL DEFAULT '',
			expires_at       TEXT,
			oldest_companion BIGINT NOT NULL DEFAULT 1,
			edition          BIGINT NOT NULL DEFAULT 63
		);
CREATE TABLE schedule_task_type (
    task_type                   TEXT   NOT NULL PRIMARY KEY,          -- name of the task type
    mode                        TEXT   NOT NULL DEFAULT 'CONTINUOUS', -- CONTINUOUS or RUN
    processor_type              TEXT   NOT NULL DEFAULT 'SLEEP',      -- SLEEP or NOTSLEEP
    heartbeat_interval_ms       BIGINT NOT NULL DEFAULT 2000,         -- pause between two heartbeats of a server
    judge_dead_interval_ms      BIGINT NOT NULL DEFAULT 10000,        -- silence after which a server is expired
    thread_number               BIGINT NOT NULL DEFAULT 5,            -- calls of the dealer in flight at once, per server
    fetch_number                BIGINT NOT NULL DEFAULT 500,          -- items that one select asks for, a hint
    execute_number              BIGINT NOT NULL DEFAULT 1,            -- most items of one call of Execute
    sleep_time_nodata_ms        BIGINT NOT NULL DEFAULT 500,          -- pause of a queue after an empty select
    sleep_time_interval_ms      BIGINT NOT NULL DEFAULT 0,            -- pause between one page of items and the next select
    permit_run_start_time       TEXT   NOT NULL DEFAULT '',           -- when permit windows begin (cron with seconds), '' for always
    permit_run_end_time         TEXT   NOT NULL DEFAULT '',           -- when permit windows end (cron), '' or -1 for the first empty select
    time_zone                   TEXT   NOT NULL DEFAULT 'UTC',        -- time zone of the cron expressions, such as Europe/Berlin
    task_parameter              TEXT   NOT NULL DEFAULT '',           -- free text that each Select receives
    data_database               TEXT   NOT NULL DEFAULT '',           -- data database of each queue, such as shard{{queue}}; empty for the database of the roster
    max_queues_per_server       BIGINT NOT NULL DEFAULT 0,            -- most queues that one server may own, 0 for no limit
    max_servers                 BIGINT NOT NULL DEFAULT 0,            -- most servers that own queues, 0 for no limit; the others stand by
    max_servers_per_host        BIGINT NOT NULL DEFAULT 0,            -- as max_servers, of one host
    require_labels              TEXT   NOT NULL DEFAULT '',           -- labels that a server must have to own queues, such as zone=b|c,disk=ssd
    prefer_labels               TEXT   NOT NULL DEFAULT '',           -- labels that a server should have: the others own queues only if it must be
    spread_label                TEXT   NOT NULL DEFAULT '',           -- label whose values share the queues evenly, such as zone
    balance                     TEXT   NOT NULL DEFAULT 'QUEUES',     -- what is even among the servers: QUEUES (their numbers) or LOAD
    load_moves_per_hour         BIGINT NOT NULL DEFAULT 60,           -- most queues per hour that move only to even the load
    splittable                  BOOLEAN NOT NULL DEFAULT FALSE,        -- queues may be split and merged one by one; their selects divide by queue_total of each
    hinted                      BOOLEAN NOT NULL DEFAULT FALSE,        -- each program that adds items sends a hint: servers that hear hints poll twice a minute
    rate_per_second             DOUBLE NOT NULL DEFAULT 0,            -- most items per second of the whole task type, 0 for no limit
    max_in_flight               BIGINT NOT NULL DEFAULT 0,            -- most calls of Execute in flight of the whole task type, 0 for no limit
    queue_rate_per_second       DOUBLE NOT NULL DEFAULT 0,            -- most items per second of each queue, 0 for no limit
    queue_max_in_flight         BIGINT NOT NULL DEFAULT 0,            -- most calls of Execute in flight of each queue, 0 for no limit
    batch_timeout_ms            BIGINT NOT NULL DEFAULT 0,            -- time limit of one call of the dealer, 0 for none
    drain_timeout_ms            BIGINT NOT NULL DEFAULT 30000,        -- how long a leaving server waits for its items in flight
    stall_after_ms              BIGINT NOT NULL DEFAULT 300000,       -- age at which a call of the dealer raises an alert
    item_max_attempts           BIGINT NOT NULL DEFAULT 25,           -- failures after which an item is DEAD
    count_in_outage             BOOLEAN NOT NULL DEFAULT FALSE,       -- a failure counts as an attempt although nothing else succeeds
    on_dead                     TEXT   NOT NULL DEFAULT 'HOLD',       -- HOLD or PASS: whether a dead item holds back those of its order key
    item_retry_ms               BIGINT NOT NULL DEFAULT 1000,         -- pause after the first failure of an item
    item_retry_factor           DOUBLE NOT NULL DEFAULT 2,            -- by which the pause grows with each further failure
    item_retry_jitter           DOUBLE NOT NULL DEFAULT 0.5,          -- part of a pause by which it is longer or shorter at random
    item_retry_max_ms           BIGINT NOT NULL DEFAULT 21600000,     -- longest pause between two attempts of an item
    failing_after               BIGINT NOT NULL DEFAULT 5,            -- failed calls in a row after which a server counts as failing
    queue_max_attempts          BIGINT NOT NULL DEFAULT 3,            -- mode RUN: attempts to sweep a queue before it fails
    queue_retry_ms              BIGINT NOT NULL DEFAULT 30000,        -- mode RUN: pause after the first failed sweep, doubles
    sweep_max_repeats           BIGINT NOT NULL DEFAULT 3,            -- mode RUN: selects in a row that return only executed items before a sweep fails
    max_recoveries              BIGINT NOT NULL DEFAULT 5,            -- mode RUN: take-overs of a queue without progress before it fails
    run_timeout_ms              BIGINT NOT NULL DEFAULT 86400000,     -- mode RUN: time limit of a run
    run_start_timeout_ms        BIGINT NOT NULL DEFAULT 0,            -- mode RUN: time limit of the wait until a run is opened, 0 for none
    coalesce_runs               BOOLEAN NOT NULL DEFAULT FALSE,       -- mode RUN: a dependant skips a run while an earlier one of the same trigger is READY
    expire_own_sign_interval_ms BIGINT NOT NULL DEFAULT 86400000,     -- time without servers after which an environment is forgotten
    version                     BIGINT NOT NULL DEFAULT 0,            -- rises with each change of the settings
    hint_version                BIGINT NOT NULL DEFAULT 0,            -- rises with each hint, where the database sends none: workers of a hinted task type read it
    gmt_created                 TEXT   NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'), -- when the row was inserted
    gmt_modified                TEXT   NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'), -- when the settings last changed
    CONSTRAINT ck_schedule_task_type_heartbeat_interval_ms CHECK (heartbeat_interval_ms BETWEEN 0 AND 315360000000 AND heartbeat_interval_ms = CAST(heartbeat_interval_ms AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_judge_dead_interval_ms CHECK (judge_dead_interval_ms BETWEEN 0 AND 315360000000 AND judge_dead_interval_ms = CAST(judge_dead_interval_ms AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_thread_number CHECK (thread_number BETWEEN 0 AND 1000000 AND thread_number = CAST(thread_number AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_fetch_number CHECK (fetch_number BETWEEN 0 AND 1000000 AND fetch_number = CAST(fetch_number AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_execute_number CHECK (execute_number BETWEEN 0 AND 1000000 AND execute_number = CAST(execute_number AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_sleep_time_nodata_ms CHECK (sleep_time_nodata_ms BETWEEN 0 AND 315360000000 AND sleep_time_nodata_ms = CAST(sleep_time_nodata_ms AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_sleep_time_interval_ms CHECK (sleep_time_interval_ms BETWEEN 0 AND 315360000000 AND sleep_time_interval_ms = CAST(sleep_time_interval_ms AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_max_queues_per_server CHECK (max_queues_per_server BETWEEN 0 AND 1000000 AND max_queues_per_server = CAST(max_queues_per_server AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_max_servers CHECK (max_servers BETWEEN 0 AND 1000000 AND max_servers = CAST(max_servers AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_max_servers_per_host CHECK (max_servers_per_host BETWEEN 0 AND 1000000 AND max_servers_per_host = CAST(max_servers_per_host AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_load_moves_per_hour CHECK (load_moves_per_hour BETWEEN 0 AND 1000000 AND load_moves_per_hour = CAST(load_moves_per_hour AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_rate_per_second CHECK (rate_per_second BETWEEN 0 AND 1000000000),
    CONSTRAINT ck_schedule_task_type_max_in_flight CHECK (max_in_flight BETWEEN 0 AND 1000000 AND max_in_flight = CAST(max_in_flight AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_queue_rate_per_second CHECK (queue_rate_per_second BETWEEN 0 AND 1000000000),
    CONSTRAINT ck_schedule_task_type_queue_max_in_flight CHECK (queue_max_in_flight BETWEEN 0 AND 1000000 AND queue_max_in_flight = CAST(queue_max_in_flight AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_batch_timeout_ms CHECK (batch_timeout_ms BETWEEN 0 AND 315360000000 AND batch_timeout_ms = CAST(batch_timeout_ms AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_drain_timeout_ms CHECK (drain_timeout_ms BETWEEN 0 AND 315360000000 AND drain_timeout_ms = CAST(drain_timeout_ms AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_stall_after_ms CHECK (stall_after_ms BETWEEN 0 AND 315360000000 AND stall_after_ms = CAST(stall_after_ms AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_item_max_attempts CHECK (item_max_attempts BETWEEN 0 AND 1000000 AND item_max_attempts = CAST(item_max_attempts AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_count_in_outage CHECK (count_in_outage IN (0, 1)),
    CONSTRAINT ck_schedule_task_type_splittable CHECK (splittable IN (0, 1)),
    CONSTRAINT ck_schedule_task_type_hinted CHECK (hinted IN (0, 1)),
    CONSTRAINT ck_schedule_task_type_item_retry_ms CHECK (item_retry_ms BETWEEN 0 AND 315360000000 AND item_retry_ms = CAST(item_retry_ms AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_item_retry_factor CHECK (item_retry_factor BETWEEN 0 AND 1000000),
    CONSTRAINT ck_schedule_task_type_item_retry_jitter CHECK (item_retry_jitter BETWEEN 0 AND 1),
    CONSTRAINT ck_schedule_task_type_item_retry_max_ms CHECK (item_retry_max_ms BETWEEN 0 AND 315360000000 AND item_retry_max_ms = CAST(item_retry_max_ms AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_failing_after CHECK (failing_after BETWEEN 0 AND 1000000 AND failing_after = CAST(failing_after AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_queue_max_attempts CHECK (queue_max_attempts BETWEEN 0 AND 1000000 AND queue_max_attempts = CAST(queue_max_attempts AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_queue_retry_ms CHECK (queue_retry_ms BETWEEN 0 AND 315360000000 AND queue_retry_ms = CAST(queue_retry_ms AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_sweep_max_repeats CHECK (sweep_max_repeats BETWEEN 0 AND 1000000 AND sweep_max_repeats = CAST(sweep_max_repeats AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_max_recoveries CHECK (max_recoveries BETWEEN 0 AND 1000000 AND max_recoveries = CAST(max_recoveries AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_run_timeout_ms CHECK (run_timeout_ms BETWEEN 0 AND 315360000000 AND run_timeout_ms = CAST(run_timeout_ms AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_run_start_timeout_ms CHECK (run_start_timeout_ms BETWEEN 0 AND 315360000000 AND run_start_timeout_ms = CAST(run_start_timeout_ms AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_expire_own_sign_interval_ms CHECK (expire_own_sign_interval_ms BETWEEN 0 AND 315360000000 AND expire_own_sign_interval_ms = CAST(expire_own_sign_interval_ms AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_version CHECK (version BETWEEN 0 AND 1000000000000000000 AND version = CAST(version AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_hint_version CHECK (hint_version BETWEEN 0 AND 1000000000000000000 AND hint_version = CAST(hint_version AS INTEGER)),
    CONSTRAINT ck_schedule_task_type_gmt_created CHECK (datetime(substr(gmt_created, 1, 19)) IS substr(gmt_created, 1, 19) AND rtrim(substr(gmt_created, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_task_type_gmt_modified CHECK (datetime(substr(gmt_modified, 1, 19)) IS substr(gmt_modified, 1, 19) AND rtrim(substr(gmt_modified, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_task_type_mode CHECK (mode IN ('CONTINUOUS', 'RUN')),
    CONSTRAINT ck_schedule_task_type_processor_type CHECK (processor_type IN ('SLEEP', 'NOTSLEEP')),
    CONSTRAINT ck_schedule_task_type_on_dead CHECK (on_dead IN ('HOLD', 'PASS')),
    CONSTRAINT ck_schedule_task_type_balance CHECK (balance IN ('QUEUES', 'LOAD')),
    CONSTRAINT ck_schedule_task_type_coalesce_runs CHECK (coalesce_runs IN (0, 1))
);
CREATE TABLE schedule_task_running (
    task_type          TEXT    NOT NULL,                -- name of the task type
    own_sign           TEXT    NOT NULL DEFAULT 'BASE', -- environment
    paused             BOOLEAN NOT NULL DEFAULT FALSE,  -- the task type is paused in this environment
    queue_total        BIGINT  NOT NULL DEFAULT 0,      -- number of queues
    queue_changes      TEXT    NULL,                    -- JSON object of the changes that wait until the queues have no owner, by queue: the queue_total that it gets, or "remove"; "all" is another number of queues; NULL: none
    partition_version  BIGINT  NOT NULL DEFAULT 1,      -- rises when a queue is added, and when a change of the queues is requested, withdrawn or made
    membership_version BIGINT  NOT NULL DEFAULT 0,      -- rises with everything that the planner reads: servers, their states, queues, limits
    planned_version    BIGINT  NOT NULL DEFAULT 0,      -- membership_version of the last plan; if it differs, a plan is due
    plan_version       BIGINT  NOT NULL DEFAULT 0,      -- rises with each change of ownership; servers read their queues again
    item_version       BIGINT  NOT NULL DEFAULT 0,      -- rises when an operator changes failed items; servers then select soon
    epoch_high         BIGINT  NOT NULL DEFAULT 0,      -- highest epoch of any queue that was deleted; new queues start above it
    epoch_floor        BIGINT  NOT NULL DEFAULT 0,      -- the epoch_floor of the environment that the queues of this row are raised above
    audited_at         TEXT    NULL,                    -- when a server last compared the whole assignment with its plan
    last_assign_time   TEXT    NULL,                    -- when the last plan was written
    last_assign_server TEXT    NULL,                    -- server that wrote it
    skipped            TEXT    NULL,                    -- JSON list of the queues that the last plan could not move because transactions hold their rows; NULL if it skipped nothing
    reserved_until     TEXT    NULL,                    -- when the next reservation of a queue ends: a plan is due then, or NULL
    load_moves_until   TEXT    NULL,                    -- when the moves that only evened the load do not count any more in load_moves_per_hour, or NULL
    version            BIGINT  NOT NULL DEFAULT 0,      -- rises whenever the row is locked
    CONSTRAINT ck_schedule_task_running_queue_total CHECK (queue_total BETWEEN 0 AND 100000 AND queue_total = CAST(queue_total AS INTEGER)),
    CONSTRAINT ck_schedule_task_running_queue_changes CHECK (CASE WHEN json_valid(queue_changes) THEN json_type(queue_changes) = 'object' ELSE queue_changes IS NULL END),
    CONSTRAINT ck_schedule_task_running_skipped CHECK (CASE WHEN json_valid(skipped) THEN json_type(skipped) = 'array' ELSE skipped IS NULL END),
    CONSTRAINT ck_schedule_task_running_partition_version CHECK (partition_version BETWEEN 0 AND 1000000000000000000 AND partition_version = CAST(partition_version AS INTEGER)),
    CONSTRAINT ck_schedule_task_running_membership_version CHECK (membership_version BETWEEN 0 AND 1000000000000000000 AND membership_version = CAST(membership_version AS INTEGER)),
    CONSTRAINT ck_schedule_task_running_planned_version CHECK (planned_version BETWEEN 0 AND 1000000000000000000 AND planned_version = CAST(planned_version AS INTEGER)),
    CONSTRAINT ck_schedule_task_running_plan_version CHECK (plan_version BETWEEN 0 AND 1000000000000000000 AND plan_version = CAST(plan_version AS INTEGER)),
    CONSTRAINT ck_schedule_task_running_item_version CHECK (item_version BETWEEN 0 AND 1000000000000000000 AND item_version = CAST(item_version AS INTEGER)),
    CONSTRAINT ck_schedule_task_running_epoch_high CHECK (epoch_high BETWEEN 0 AND 1000000000000 AND epoch_high = CAST(epoch_high AS INTEGER)),
    CONSTRAINT ck_schedule_task_running_epoch_floor CHECK (epoch_floor BETWEEN 0 AND 1000000000000 AND epoch_floor = CAST(epoch_floor AS INTEGER)),
    CONSTRAINT ck_schedule_task_running_audited_at CHECK (datetime(substr(audited_at, 1, 19)) IS substr(audited_at, 1, 19) AND rtrim(substr(audited_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_task_running_reserved_until CHECK (datetime(substr(reserved_until, 1, 19)) IS substr(reserved_until, 1, 19) AND rtrim(substr(reserved_until, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_task_running_load_moves_until CHECK (datetime(substr(load_moves_until, 1, 19)) IS substr(load_moves_until, 1, 19) AND rtrim(substr(load_moves_until, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_task_running_last_assign_time CHECK (datetime(substr(last_assign_time, 1, 19)) IS substr(last_assign_time, 1, 19) AND rtrim(substr(last_assign_time, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_task_running_version CHECK (version BETWEEN 0 AND 1000000000000000000 AND version = CAST(version AS INTEGER)),
    CONSTRAINT ck_schedule_task_running_paused CHECK (paused IN (0, 1)),
    PRIMARY KEY (task_type, own_sign)
);
CREATE TABLE schedule_environment (
    own_sign      TEXT    NOT NULL PRIMARY KEY, -- environment
    epoch_floor   BIGINT  NOT NULL DEFAULT 0,   -- all queues have epochs above it: history that was lost may have used those below
    lost_at       TEXT    NULL,                 -- when a server found that history was lost, NULL for never or acknowledged
    lost_task     TEXT    NULL,                 -- task type of that server
    lost_report   TEXT    NULL,                 -- what is known of the loss, for people
    history_since TEXT    NULL,                 -- the history has all servers that sent a later heartbeat, or NULL: it has all servers
    CONSTRAINT ck_schedule_environment_epoch_floor CHECK (epoch_floor BETWEEN 0 AND 1000000000000 AND epoch_floor = CAST(epoch_floor AS INTEGER)),
    CONSTRAINT ck_schedule_environment_lost_at CHECK (datetime(substr(lost_at, 1, 19)) IS substr(lost_at, 1, 19) AND rtrim(substr(lost_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_environment_history_since CHECK (datetime(substr(history_since, 1, 19)) IS substr(history_since, 1, 19) AND rtrim(substr(history_since, 20), '0123456789') IN ('', '.'))
);
CREATE TABLE schedule_server (
    uuid                   TEXT   NOT NULL PRIMARY KEY,       -- host:pid:8 hexadecimal digits
    task_type              TEXT   NOT NULL,                   -- task type that it serves
    own_sign               TEXT   NOT NULL DEFAULT 'BASE',    -- environment
    ip                     TEXT   NOT NULL DEFAULT '',        -- address of the host
    host_name              TEXT   NOT NULL DEFAULT '',        -- name of the host
    pid                    BIGINT NOT NULL DEFAULT 0,         -- process id
    thread_number          BIGINT NOT NULL DEFAULT 0,         -- number of its executors
    state                  TEXT   NOT NULL DEFAULT 'SERVING', -- SERVING, STANDBY, PAUSED, DRAINING or LEAVING
    register_time          TEXT   NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'), -- when it registered
    heartbeat_time         TEXT   NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'), -- when its last heartbeat arrived
    beat_token             TEXT   NOT NULL DEFAULT '',        -- proves that a heartbeat comes from the same process
    beat_count             BIGINT NOT NULL DEFAULT 0,         -- number of heartbeats
    judge_dead_interval_ms BIGINT NOT NULL DEFAULT 10000,     -- silence after which others expire it
    watching_since         TEXT   NULL,                       -- since when it has watched the others without a gap
    read_plan_version      BIGINT NOT NULL DEFAULT 0,         -- plan_version up to which it has read its queues
    read_sum               BIGINT NOT NULL DEFAULT 0,         -- checksum of what it has read, for the audit
    last_fetch_time        TEXT   NULL,                       -- when the last finished select began
    next_run_start_time    TEXT   NULL,                       -- when its next permit window begins, if there are windows
    next_run_end_time      TEXT   NULL,                       -- when its permit window ends, if there are windows
    fetch_count            BIGINT NOT NULL DEFAULT 0,         -- number of selects
    fetch_item_count       BIGINT NOT NULL DEFAULT 0,         -- number of selected items
    success_count          BIGINT NOT NULL DEFAULT 0,         -- number of items that succeeded
    failure_count          BIGINT NOT NULL DEFAULT 0,         -- number of items that failed, each failure counts
    skip_count             BIGINT NOT NULL DEFAULT 0,         -- number of selected items that were not executed
    execute_ms             BIGINT NOT NULL DEFAULT 0,         -- time spent in Execute, summed over all executors
    in_hand                BIGINT NOT NULL DEFAULT 0,         -- number of items in flight: selected and not finished
    oldest_in_hand_since   TEXT   NULL,                       -- when the oldest running call of the dealer began
    last_error             TEXT   NOT NULL DEFAULT '',        -- last error of the dealer
    last_error_at          TEXT   NULL,                       -- when it happened, in the server's estimate of the database's clock
    failing_since          TEXT   NULL,                       -- when the first of failed_calls ended, if they are enough to say that its calls all fail
    failed_calls           BIGINT NOT NULL DEFAULT 0,         -- number of selects and batches that have failed since an item was last done
    library_version        TEXT   NOT NULL DEFAULT '',        -- version of Rota in the program
    labels                 TEXT   NOT NULL DEFAULT '',        -- what it has, such as disk=ssd,zone=b
    hung_queues            TEXT   NULL,                       -- JSON list of the queues that it does not get, because calls of its process's former session are in flight for them, or NULL
    given_settings         TEXT   NULL,                       -- JSON object of the settings that the program sets itself, as text; NULL if unknown
    max_in_flight          BIGINT NULL,                       -- most calls of Execute that it may have in flight, or NULL for no limit
    max_in_flight_target   BIGINT NULL,                       -- what max_in_flight is to become, or NULL for no limit
    max_in_flight_version  BIGINT NOT NULL DEFAULT 0,         -- rises whenever a plan writes one of these two
    weight                 BIGINT NOT NULL DEFAULT 1,         -- part of the queues, in proportion to the weights of the others; 0 for none
    planner_version        BIGINT NOT NULL DEFAULT 1,         -- rules of the planner that its program knows
    witness                TEXT   NULL,                       -- lock file that its process holds: boot, name, device, inode; NULL for none
    name                   TEXT   NOT NULL DEFAULT '',        -- name of its process, which a later process may have too; empty: none
    process                TEXT   NOT NULL DEFAULT '',        -- id of its process, which has a server for each of its task types: host:pid:8 hexadecimal digits
    capabilities           TEXT   NOT NULL DEFAULT '',        -- what its dealer offers that settings can contradict, such as Keyed,Cursored
    CONSTRAINT ck_schedule_server_register_time CHECK (datetime(substr(register_time, 1, 19)) IS substr(register_time, 1, 19) AND rtrim(substr(register_time, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_server_heartbeat_time CHECK (datetime(substr(heartbeat_time, 1, 19)) IS substr(heartbeat_time, 1, 19) AND rtrim(substr(heartbeat_time, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_server_beat_count CHECK (beat_count BETWEEN 0 AND 1000000000000000000 AND beat_count = CAST(beat_count AS INTEGER)),
    CONSTRAINT ck_schedule_server_judge_dead_interval_ms CHECK (judge_dead_interval_ms BETWEEN 0 AND 315360000000 AND judge_dead_interval_ms = CAST(judge_dead_interval_ms AS INTEGER)),
    CONSTRAINT ck_schedule_server_watching_since CHECK (datetime(substr(watching_since, 1, 19)) IS substr(watching_since, 1, 19) AND rtrim(substr(watching_since, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_server_read_plan_version CHECK (read_plan_version BETWEEN 0 AND 1000000000000000000 AND read_plan_version = CAST(read_plan_version AS INTEGER)),
    CONSTRAINT ck_schedule_server_read_sum CHECK (read_sum BETWEEN 0 AND 1000000000000000000 AND read_sum = CAST(read_sum AS INTEGER)),
    CONSTRAINT ck_schedule_server_max_in_flight CHECK (max_in_flight BETWEEN 0 AND 1000000 AND max_in_flight = CAST(max_in_flight AS INTEGER)),
    CONSTRAINT ck_schedule_server_max_in_flight_target CHECK (max_in_flight_target BETWEEN 0 AND 1000000 AND max_in_flight_target = CAST(max_in_flight_target AS INTEGER)),
    CONSTRAINT ck_schedule_server_max_in_flight_version CHECK (max_in_flight_version BETWEEN 0 AND 1000000000000000000 AND max_in_flight_version = CAST(max_in_flight_version AS INTEGER)),
    CONSTRAINT ck_schedule_server_weight CHECK (weight BETWEEN 0 AND 1000 AND weight = CAST(weight AS INTEGER)),
    CONSTRAINT ck_schedule_server_planner_version CHECK (planner_version BETWEEN 1 AND 1000000 AND planner_version = CAST(planner_version AS INTEGER)),
    CONSTRAINT ck_schedule_server_last_fetch_time CHECK (datetime(substr(last_fetch_time, 1, 19)) IS substr(last_fetch_time, 1, 19) AND rtrim(substr(last_fetch_time, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_server_next_run_start_time CHECK (datetime(substr(next_run_start_time, 1, 19)) IS substr(next_run_start_time, 1, 19) AND rtrim(substr(next_run_start_time, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_server_next_run_end_time CHECK (datetime(substr(next_run_end_time, 1, 19)) IS substr(next_run_end_time, 1, 19) AND rtrim(substr(next_run_end_time, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_server_oldest_in_hand_since CHECK (datetime(substr(oldest_in_hand_since, 1, 19)) IS substr(oldest_in_hand_since, 1, 19) AND rtrim(substr(oldest_in_hand_since, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_server_last_error_at CHECK (datetime(substr(last_error_at, 1, 19)) IS substr(last_error_at, 1, 19) AND rtrim(substr(last_error_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_server_failing_since CHECK (datetime(substr(failing_since, 1, 19)) IS substr(failing_since, 1, 19) AND rtrim(substr(failing_since, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_server_pid CHECK (pid BETWEEN 0 AND 1000000000000000000 AND pid = CAST(pid AS INTEGER)),
    CONSTRAINT ck_schedule_server_thread_number CHECK (thread_number BETWEEN 0 AND 1000000000000000000 AND thread_number = CAST(thread_number AS INTEGER)),
    CONSTRAINT ck_schedule_server_state CHECK (state IN ('SERVING', 'STANDBY', 'PAUSED', 'DRAINING', 'LEAVING')),
    CONSTRAINT ck_schedule_server_fetch_count CHECK (fetch_count BETWEEN 0 AND 1000000000000000000 AND fetch_count = CAST(fetch_count AS INTEGER)),
    CONSTRAINT ck_schedule_server_fetch_item_count CHECK (fetch_item_count BETWEEN 0 AND 1000000000000000000 AND fetch_item_count = CAST(fetch_item_count AS INTEGER)),
    CONSTRAINT ck_schedule_server_success_count CHECK (success_count BETWEEN 0 AND 1000000000000000000 AND success_count = CAST(success_count AS INTEGER)),
    CONSTRAINT ck_schedule_server_failure_count CHECK (failure_count BETWEEN 0 AND 1000000000000000000 AND failure_count = CAST(failure_count AS INTEGER)),
    CONSTRAINT ck_schedule_server_skip_count CHECK (skip_count BETWEEN 0 AND 1000000000000000000 AND skip_count = CAST(skip_count AS INTEGER)),
    CONSTRAINT ck_schedule_server_execute_ms CHECK (execute_ms BETWEEN 0 AND 1000000000000000000 AND execute_ms = CAST(execute_ms AS INTEGER)),
    CONSTRAINT ck_schedule_server_in_hand CHECK (in_hand BETWEEN 0 AND 1000000000000000000 AND in_hand = CAST(in_hand AS INTEGER)),
    CONSTRAINT ck_schedule_server_failed_calls CHECK (failed_calls BETWEEN 0 AND 1000000000000000000 AND failed_calls = CAST(failed_calls AS INTEGER))
);
CREATE INDEX idx_schedule_server_task ON schedule_server (task_type, own_sign, uuid);
CREATE TABLE schedule_server_version (
    task_type     TEXT   NOT NULL,                -- task type
    own_sign      TEXT   NOT NULL DEFAULT 'BASE', -- environment
    uuid          TEXT   NOT NULL,                -- server
    queue_version BIGINT NOT NULL DEFAULT 0,      -- rises with each change of the queues that the server owns or requests
    PRIMARY KEY (task_type, own_sign, uuid),
    CONSTRAINT ck_schedule_server_version_queue_version CHECK (queue_version BETWEEN 0 AND 1000000000000000000 AND queue_version = CAST(queue_version AS INTEGER))
);
CREATE TABLE schedule_server_history (
    uuid                   TEXT   NOT NULL PRIMARY KEY,       -- host:pid:8 hexadecimal digits
    task_type              TEXT   NOT NULL,                   -- task type that it serves
    own_sign               TEXT   NOT NULL DEFAULT 'BASE',    -- environment
    ip                     TEXT   NOT NULL DEFAULT '',        -- address of the host
    host_name              TEXT   NOT NULL DEFAULT '',        -- name of the host
    pid                    BIGINT NOT NULL DEFAULT 0,         -- process id
    thread_number          BIGINT NOT NULL DEFAULT 0,         -- number of its executors
    state                  TEXT   NOT NULL DEFAULT 'SERVING', -- its last state
    register_time          TEXT   NOT NULL,                   -- when it registered
    heartbeat_time         TEXT   NOT NULL,                   -- when its last heartbeat arrived
    beat_token             TEXT   NOT NULL DEFAULT '',        -- proves that a heartbeat comes from the same process
    beat_count             BIGINT NOT NULL DEFAULT 0,         -- number of heartbeats
    judge_dead_interval_ms BIGINT NOT NULL DEFAULT 10000,     -- silence after which others expire it
    watching_since         TEXT   NULL,                       -- since when it has watched the others without a gap
    read_plan_version      BIGINT NOT NULL DEFAULT 0,         -- plan_version up to which it has read its queues
    read_sum               BIGINT NOT NULL DEFAULT 0,         -- checksum of what it has read, for the audit
    last_fetch_time        TEXT   NULL,                       -- when the last finished select began
    next_run_start_time    TEXT   NULL,                       -- when its next permit window begins, if there are windows
    next_run_end_time      TEXT   NULL,                       -- when its permit window ends, if there are windows
    fetch_count            BIGINT NOT NULL DEFAULT 0,         -- number of selects
    fetch_item_count       BIGINT NOT NULL DEFAULT 0,         -- number of selected items
    success_count          BIGINT NOT NULL DEFAULT 0,         -- number of items that succeeded
    failure_count          BIGINT NOT NULL DEFAULT 0,         -- number of items that failed, each failure counts
    skip_count             BIGINT NOT NULL DEFAULT 0,         -- number of selected items that were not executed
    execute_ms             BIGINT NOT NULL DEFAULT 0,         -- time spent in Execute, summed over all executors
    in_hand                BIGINT NOT NULL DEFAULT 0,         -- number of items in flight: selected and not finished
    oldest_in_hand_since   TEXT   NULL,                       -- when the oldest running call of the dealer began
    last_error             TEXT   NOT NULL DEFAULT '',        -- last error of the dealer
    last_error_at          TEXT   NULL,                       -- when it happened, in the server's estimate of the database's clock
    failing_since          TEXT   NULL,                       -- when the first of failed_calls ended, if they are enough to say that its calls all fail
    failed_calls           BIGINT NOT NULL DEFAULT 0,         -- number of selects and batches that have failed since an item was last done
    library_version        TEXT   NOT NULL DEFAULT '',        -- version of Rota in the program
    labels                 TEXT   NOT NULL DEFAULT '',        -- what it has, such as disk=ssd,zone=b
    hung_queues            TEXT   NULL,                       -- JSON list of the queues that it does not get, because calls of its process's former session are in flight for them, or NULL
    given_settings         TEXT   NULL,                       -- JSON object of the settings that the program sets itself, as text; NULL if unknown
    max_in_flight          BIGINT NULL,                       -- most calls of Execute that it may have in flight, or NULL for no limit
    max_in_flight_target   BIGINT NULL,                       -- what max_in_flight is to become, or NULL for no limit
    max_in_flight_version  BIGINT NOT NULL DEFAULT 0,         -- rises whenever a plan writes one of these two
    weight                 BIGINT NOT NULL DEFAULT 1,         -- part of the queues, in proportion to the weights of the others; 0 for none
    planner_version        BIGINT NOT NULL DEFAULT 1,         -- rules of the planner that its program knows
    witness                TEXT   NULL,                       -- lock file that its process holds: boot, name, device, inode; NULL for none
    name                   TEXT   NOT NULL DEFAULT '',        -- name of its process, which a later process may have too; empty: none
    process                TEXT   NOT NULL DEFAULT '',        -- id of its process, which has a server for each of its task types: host:pid:8 hexadecimal digits
    capabilities           TEXT   NOT NULL DEFAULT '',        -- what its dealer offers that settings can contradict, such as Keyed,Cursored
    left_time              TEXT   NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'), -- when the server left or was expired
    reason                 TEXT   NOT NULL                    -- LEFT or EXPIRED
);
CREATE TABLE schedule_queue (
    task_type       TEXT   NOT NULL,                -- name of the task type
    own_sign        TEXT   NOT NULL DEFAULT 'BASE', -- environment
    queue_id        TEXT   NOT NULL,                -- name of the queue: a number, or a text
    queue_index     BIGINT NOT NULL,                -- position in natural order, from 0
    queue_total     BIGINT NULL,                    -- of a numbered queue: it has the items with mod(id, queue_total) = queue_index; NULL for a name
    cur_server      TEXT   NULL,                    -- server that owns the queue, or NULL
    req_server      TEXT   NULL,                    -- server that waits for the queue, or NULL
    epoch           BIGINT NOT NULL DEFAULT 0,      -- rises with each change of owner; the fence compares it
    plan_version    BIGINT NOT NULL DEFAULT 0,      -- plan_version of the lock row when cur_server or req_server was last written
    cur_since       TEXT   NULL,                    -- since when cur_server owns the queue
    req_since       TEXT   NULL,                    -- since when req_server waits
    queue_parameter TEXT   NOT NULL DEFAULT '',     -- free text that each Select of this queue receives
    cursor_value    TEXT   NOT NULL DEFAULT '',     -- how far a dealer with a cursor has read, in mode CONTINUOUS
    window_done_at  TEXT   NULL,                    -- start of the permit window in which the queue was found empty
    crash_count     BIGINT NOT NULL DEFAULT 0,      -- owners in a row that were expired before a page was executed
    failing_since   TEXT   NULL,                    -- since when all calls of the queue have failed, if that is long enough to be a problem; else NULL
    reserved_for    TEXT   NULL,                       -- name of the process that gets the queue back when it returns, or NULL
    reserved_until  TEXT   NULL,                       -- until when other servers do not get the queue
    waits_for       TEXT   NULL,                       -- why the queue has no owner, by the last plan: the rule that no server meets, or NULL
    division        TEXT   NOT NULL DEFAULT '',        -- which division of the items into queues the queue belongs to; another number of queues begins a new one
    gmt_created     TEXT   NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'), -- when the row was inserted
    gmt_modified    TEXT   NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'), -- when the row last changed
    CONSTRAINT ck_schedule_queue_queue_index CHECK (queue_index BETWEEN 0 AND 1000000000000 AND queue_index = CAST(queue_index AS INTEGER)),
    CONSTRAINT ck_schedule_queue_queue_total CHECK (queue_total BETWEEN 1 AND 1000000000 AND queue_total = CAST(queue_total AS INTEGER)),
    CONSTRAINT ck_schedule_queue_epoch CHECK (epoch BETWEEN 0 AND 1000000000000 AND epoch = CAST(epoch AS INTEGER)),
    CONSTRAINT ck_schedule_queue_plan_version CHECK (plan_version BETWEEN 0 AND 1000000000000000000 AND plan_version = CAST(plan_version AS INTEGER)),
    CONSTRAINT ck_schedule_queue_crash_count CHECK (crash_count BETWEEN 0 AND 1000000000000 AND crash_count = CAST(crash_count AS INTEGER)),
    CONSTRAINT ck_schedule_queue_cur_since CHECK (datetime(substr(cur_since, 1, 19)) IS substr(cur_since, 1, 19) AND rtrim(substr(cur_since, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_queue_req_since CHECK (datetime(substr(req_since, 1, 19)) IS substr(req_since, 1, 19) AND rtrim(substr(req_since, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_queue_reserved_until CHECK (datetime(substr(reserved_until, 1, 19)) IS substr(reserved_until, 1, 19) AND rtrim(substr(reserved_until, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_queue_window_done_at CHECK (datetime(substr(window_done_at, 1, 19)) IS substr(window_done_at, 1, 19) AND rtrim(substr(window_done_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_queue_failing_since CHECK (datetime(substr(failing_since, 1, 19)) IS substr(failing_since, 1, 19) AND rtrim(substr(failing_since, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_queue_gmt_created CHECK (datetime(substr(gmt_created, 1, 19)) IS substr(gmt_created, 1, 19) AND rtrim(substr(gmt_created, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_queue_gmt_modified CHECK (datetime(substr(gmt_modified, 1, 19)) IS substr(gmt_modified, 1, 19) AND rtrim(substr(gmt_modified, 20), '0123456789') IN ('', '.')),
    PRIMARY KEY (task_type, own_sign, queue_id)
);
CREATE INDEX idx_schedule_queue_cur_server ON schedule_queue (cur_server);
CREATE INDEX idx_schedule_queue_req_server ON schedule_queue (req_server);
CREATE TABLE schedule_queue_setting (
    task_type       TEXT   NOT NULL,                -- name of the task type
    own_sign        TEXT   NOT NULL DEFAULT 'BASE', -- environment
    queue_id        TEXT   NOT NULL,                -- the queue
    labels          TEXT   NOT NULL DEFAULT '',     -- the labels that a server must have to own it, such as zone=b; empty: none
    rate_per_second DOUBLE NULL,                    -- most items per second, 0 for no limit; NULL for queue_rate_per_second
    max_in_flight   BIGINT NULL,                    -- most calls of Execute in flight, 0 for no limit; NULL for queue_max_in_flight
    weight          BIGINT NULL,                    -- calls of Execute that it may start when it is its turn; NULL for 1
    CONSTRAINT ck_schedule_queue_setting_rate_per_second CHECK (rate_per_second BETWEEN 0 AND 1000000000),
    CONSTRAINT ck_schedule_queue_setting_max_in_flight CHECK (max_in_flight BETWEEN 0 AND 1000000 AND max_in_flight = CAST(max_in_flight AS INTEGER)),
    CONSTRAINT ck_schedule_queue_setting_weight CHECK (weight BETWEEN 1 AND 1000 AND weight = CAST(weight AS INTEGER)),
    PRIMARY KEY (task_type, own_sign, queue_id)
);
CREATE TABLE schedule_data (
    own_sign    TEXT    NOT NULL DEFAULT 'BASE', -- environment
    name        TEXT    NOT NULL,                -- name of the data database, as in schedule_task_type.data_database
    data_id     TEXT    NOT NULL,                -- id of the database, also in its table rota_data
    marked      BOOLEAN NOT NULL DEFAULT FALSE,  -- the database has the id; from then on another one is refused
    address     TEXT    NOT NULL,                -- URL without the password, of the worker that came first
    gmt_created TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'), -- when the row was inserted
    CONSTRAINT ck_schedule_data_marked CHECK (marked IN (0, 1)),
    CONSTRAINT ck_schedule_data_gmt_created CHECK (datetime(substr(gmt_created, 1, 19)) IS substr(gmt_created, 1, 19) AND rtrim(substr(gmt_created, 20), '0123456789') IN ('', '.')),
    PRIMARY KEY (own_sign, name)
);
CREATE TABLE schedule_backlog (
    task_type   TEXT   NOT NULL,                -- name of the task type
    own_sign    TEXT   NOT NULL DEFAULT 'BASE', -- environment
    queue_id    TEXT   NOT NULL,                -- the queue
    epoch       BIGINT NOT NULL,                -- epoch of the owner that counted; a later one wins
    items       BIGINT NOT NULL,                -- items that are left
    oldest_at   TEXT   NULL,                    -- time of the oldest of them, or NULL if there is none or the dealer does not tell
    measured_at TEXT   NOT NULL,                -- when they were counted
    took_ms     BIGINT NOT NULL,                -- how long that took
    rate        DOUBLE NULL,                    -- items per second by which they become more, or NULL if it was counted once
    trend       TEXT   NOT NULL DEFAULT '',     -- EMPTY, DRAINING, STEADY, GROWING or STUCK; empty after one or two counts
    demand      DOUBLE NULL,                    -- executors that the queue needs to keep up with what arrives, or NULL if no owner has counted it twice
    CONSTRAINT ck_schedule_backlog_epoch CHECK (epoch BETWEEN 0 AND 1000000000000000000 AND epoch = CAST(epoch AS INTEGER)),
    CONSTRAINT ck_schedule_backlog_items CHECK (items BETWEEN 0 AND 1000000000000000000 AND items = CAST(items AS INTEGER)),
    CONSTRAINT ck_schedule_backlog_took_ms CHECK (took_ms BETWEEN 0 AND 1000000000000 AND took_ms = CAST(took_ms AS INTEGER)),
    CONSTRAINT ck_schedule_backlog_rate CHECK (rate BETWEEN -1e18 AND 1e18),
    CONSTRAINT ck_schedule_backlog_demand CHECK (demand BETWEEN 0 AND 1e18),
    CONSTRAINT ck_schedule_backlog_oldest_at CHECK (datetime(substr(oldest_at, 1, 19)) IS substr(oldest_at, 1, 19) AND rtrim(substr(oldest_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_backlog_measured_at CHECK (datetime(substr(measured_at, 1, 19)) IS substr(measured_at, 1, 19) AND rtrim(substr(measured_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_backlog_trend CHECK (trend IN ('', 'EMPTY', 'DRAINING', 'STEADY', 'GROWING', 'STUCK')),
    PRIMARY KEY (task_type, own_sign, queue_id)
);
CREATE INDEX idx_schedule_backlog_time ON schedule_backlog (measured_at);
CREATE VIEW schedule_assignment AS
SELECT q.task_type, q.own_sign, q.queue_id, q.queue_index, q.queue_total,
       q.cur_server, c.host_name AS cur_host, c.pid AS cur_pid, c.state AS cur_state,
       round((julianday('now') - julianday(substr(c.heartbeat_time, 1, 23))) * 86400, 3) AS cur_heartbeat_age_s,
       q.req_server, r.host_name AS req_host,
       round((julianday('now') - julianday(substr(q.cur_since, 1, 23))) * 86400, 3) AS held_s,
       round((julianday('now') - julianday(substr(q.req_since, 1, 23))) * 86400, 3) AS requested_s,
       q.epoch, q.queue_parameter, q.cursor_value,
       CASE WHEN q.cur_server IS NULL AND julianday(substr(q.reserved_until, 1, 23)) > julianday('now') THEN 'RESERVED'
            WHEN q.cur_server IS NULL THEN 'UNASSIGNED'
            WHEN c.uuid IS NULL OR c.task_type <> q.task_type OR c.own_sign <> q.own_sign THEN 'ORPHAN'
            WHEN (julianday('now') - julianday(substr(c.heartbeat_time, 1, 23))) * 86400000 > c.judge_dead_interval_ms THEN 'OVERDUE'
            WHEN q.req_server IS NOT NULL THEN 'MOVING'
            ELSE 'HELD' END AS status,
       b.items AS backlog_items,
       round((julianday('now') - julianday(substr(b.oldest_at, 1, 23))) * 86400, 3) AS backlog_oldest_s,
       round((julianday('now') - julianday(substr(b.measured_at, 1, 23))) * 86400, 3) AS backlog_age_s,
       b.rate AS backlog_rate, b.trend AS backlog_trend,
       q.reserved_for, q.reserved_until, COALESCE(p.labels, '') AS pin,
       p.rate_per_second, p.max_in_flight, p.weight,
       CASE WHEN q.cur_server IS NULL THEN q.waits_for END AS waits_for,
       round((julianday('now') - julianday(substr(q.failing_since, 1, 23))) * 86400, 3) AS failing_s
  FROM schedule_queue q
  LEFT JOIN schedule_server c ON c.uuid = q.cur_server
  LEFT JOIN schedule_server r ON r.uuid = q.req_server
  LEFT JOIN schedule_queue_setting p ON p.task_type = q.task_type AND p.own_sign = q.own_sign AND p.queue_id = q.queue_id
  LEFT JOIN schedule_backlog b ON b.task_type = q.task_type AND b.own_sign = q.own_sign AND b.queue_id = q.queue_id;
CREATE TABLE schedule_event (
    event_id    INTEGER PRIMARY KEY AUTOINCREMENT,                                        -- rises; the order of the events
    event_time  TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'), -- when it happened
    task_type   TEXT    NOT NULL,                                                         -- name of the task type
    own_sign    TEXT    NOT NULL DEFAULT 'BASE',                                          -- environment
    queue_id    TEXT    NULL,                                                             -- queue, or NULL if it concerns no single queue
    kind        TEXT    NOT NULL,                                                         -- such as GRANTED, TAKEN_OVER or EXPIRED
    from_server TEXT    NULL,                                                             -- server that lost the queue, or that left or expired
    to_server   TEXT    NULL,                                                             -- server that got the queue, or that joined
    epoch       BIGINT  NULL,                                                             -- epoch of the queue after the event
    reason      TEXT    NOT NULL DEFAULT '',                                              -- why, for people
    actor       TEXT    NOT NULL DEFAULT '',                                              -- server or operator that did it
    alert       TEXT    NULL,                                                             -- of an ALERT: the kind of the condition
    subject     TEXT    NULL,                                                             -- of an ALERT: what it is about besides queue and server
    open_until  TEXT    NULL                                                              -- of an ALERT: when it has ended, if no server sees it again
);
CREATE INDEX idx_schedule_event_queue ON schedule_event (task_type, own_sign, queue_id, event_id);
CREATE INDEX idx_schedule_event_time ON schedule_event (event_time);
CREATE INDEX idx_schedule_event_kind ON schedule_event (kind, own_sign, event_id);
CREATE TABLE schedule_failed_item (
    task_type         TEXT   NOT NULL,                 -- name of the task type
    own_sign          TEXT   NOT NULL DEFAULT 'BASE',  -- environment
    item_hash         TEXT   NOT NULL,                 -- SHA-256 of the key, in hexadecimal: it has one length
    item_key          TEXT   NOT NULL,                 -- key of the item, from the dealer
    order_key         TEXT   NOT NULL DEFAULT '',      -- its order key, from the dealer; empty if it has none
    queue_id          TEXT   NOT NULL,                 -- queue that had the item when it last failed
    partition_version BIGINT NOT NULL DEFAULT 0,       -- the one of the lock row when this queue was granted
    state             TEXT   NOT NULL DEFAULT 'RETRY', -- RETRY, STARTED or DEAD
    attempts          BIGINT NOT NULL DEFAULT 0,       -- number of failures
    last_error        TEXT   NOT NULL DEFAULT '',      -- last error
    first_failed_at   TEXT   NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'), -- when it first failed
    next_attempt_at   TEXT   NULL,                     -- when it may be tried again; in state DEAD, when it died
    CONSTRAINT ck_schedule_failed_item_partition_version CHECK (partition_version BETWEEN 0 AND 1000000000000000000 AND partition_version = CAST(partition_version AS INTEGER)),
    CONSTRAINT ck_schedule_failed_item_attempts CHECK (attempts BETWEEN 0 AND 1000000000000 AND attempts = CAST(attempts AS INTEGER)),
    CONSTRAINT ck_schedule_failed_item_first_failed_at CHECK (datetime(substr(first_failed_at, 1, 19)) IS substr(first_failed_at, 1, 19) AND rtrim(substr(first_failed_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_failed_item_next_attempt_at CHECK (datetime(substr(next_attempt_at, 1, 19)) IS substr(next_attempt_at, 1, 19) AND rtrim(substr(next_attempt_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_failed_item_state CHECK (state IN ('RETRY', 'STARTED', 'DEAD')),
    PRIMARY KEY (task_type, own_sign, item_hash)
);
CREATE INDEX idx_schedule_failed_item_queue ON schedule_failed_item (task_type, own_sign, partition_version, queue_id, state);
CREATE INDEX idx_schedule_failed_item_time ON schedule_failed_item (next_attempt_at);
CREATE TABLE schedule_trigger (
    own_sign         TEXT   NOT NULL DEFAULT 'BASE',   -- environment
    name             TEXT   NOT NULL,                  -- name of the trigger
    trigger_id       TEXT   NOT NULL,                  -- derived from the name, so that a trigger that is created again fires no slot twice
    target           TEXT   NOT NULL,                  -- task type of mode RUN
    kind             TEXT   NOT NULL,                  -- CRON, EVERY or ONCE
    expression       TEXT   NOT NULL,                  -- a cron expression with seconds, a duration such as 5m, or a time
    time_zone        TEXT   NOT NULL DEFAULT 'UTC',    -- time zone of CRON
    start_at         TEXT   NULL,                      -- first permitted slot; EVERY counts from it
    end_at           TEXT   NULL,                      -- last permitted slot
    max_fires        BIGINT NOT NULL DEFAULT 0,        -- slots to fire before it is DONE, 0 for no limit
    fires            BIGINT NOT NULL DEFAULT 0,        -- slots that fired
    next_fire_at     TEXT   NULL,                      -- next slot, or NULL if there is none
    prev_fire_at     TEXT   NULL,                      -- last slot that fired
    status           TEXT   NOT NULL DEFAULT 'ACTIVE', -- ACTIVE, PAUSED, DONE or ERROR
    misfire          TEXT   NOT NULL DEFAULT 'ONE',    -- late slots: ONE, SKIP or ALL
    misfire_after_ms BIGINT NOT NULL DEFAULT 60000,    -- age from which a slot is late
    catchup_max      BIGINT NOT NULL DEFAULT 100,      -- most late slots that ALL fires at once
    jitter_ms        BIGINT NOT NULL DEFAULT 0,        -- it fires later than its slots by a constant time below this
    excluded_days    TEXT   NOT NULL DEFAULT '',       -- days without slots of CRON, such as 2026-04-03,12-25
    overlap          TEXT   NOT NULL DEFAULT 'SKIP',   -- while a run of it is open: SKIP or WAIT
    priority         BIGINT NOT NULL DEFAULT 0,        -- priority of the runs, the highest first
    params           TEXT   NOT NULL DEFAULT '',       -- parameters of the runs
    missed           BIGINT NOT NULL DEFAULT 0,        -- slots that fired nothing and never will
    missed_at        TEXT   NULL,                      -- newest of these slots, or NULL if there is none or an operator has acknowledged them
    skipped          BIGINT NOT NULL DEFAULT 0,        -- slots in a row whose runs are SKIPPED, since the last slot that fired
    skipped_since    TEXT   NULL,                      -- first of these slots, or NULL if there is none or an operator has acknowledged them
    message          TEXT   NOT NULL DEFAULT '',       -- why it is in ERROR, for people
    version          BIGINT NOT NULL DEFAULT 0,        -- rises with each change; a change compares it first
    CONSTRAINT ck_schedule_trigger_start_at CHECK (datetime(substr(start_at, 1, 19)) IS substr(start_at, 1, 19) AND rtrim(substr(start_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_trigger_end_at CHECK (datetime(substr(end_at, 1, 19)) IS substr(end_at, 1, 19) AND rtrim(substr(end_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_trigger_max_fires CHECK (max_fires BETWEEN 0 AND 1000000000000 AND max_fires = CAST(max_fires AS INTEGER)),
    CONSTRAINT ck_schedule_trigger_fires CHECK (fires BETWEEN 0 AND 1000000000000 AND fires = CAST(fires AS INTEGER)),
    CONSTRAINT ck_schedule_trigger_next_fire_at CHECK (datetime(substr(next_fire_at, 1, 19)) IS substr(next_fire_at, 1, 19) AND rtrim(substr(next_fire_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_trigger_prev_fire_at CHECK (datetime(substr(prev_fire_at, 1, 19)) IS substr(prev_fire_at, 1, 19) AND rtrim(substr(prev_fire_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_trigger_misfire_after_ms CHECK (misfire_after_ms BETWEEN 0 AND 315360000000 AND misfire_after_ms = CAST(misfire_after_ms AS INTEGER)),
    CONSTRAINT ck_schedule_trigger_jitter_ms CHECK (jitter_ms BETWEEN 0 AND 315360000000 AND jitter_ms = CAST(jitter_ms AS INTEGER)),
    CONSTRAINT ck_schedule_trigger_catchup_max CHECK (catchup_max BETWEEN 0 AND 1000000 AND catchup_max = CAST(catchup_max AS INTEGER)),
    CONSTRAINT ck_schedule_trigger_missed CHECK (missed BETWEEN 0 AND 1000000000000 AND missed = CAST(missed AS INTEGER)),
    CONSTRAINT ck_schedule_trigger_missed_at CHECK (datetime(substr(missed_at, 1, 19)) IS substr(missed_at, 1, 19) AND rtrim(substr(missed_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_trigger_skipped CHECK (skipped BETWEEN 0 AND 1000000000000 AND skipped = CAST(skipped AS INTEGER)),
    CONSTRAINT ck_schedule_trigger_skipped_since CHECK (datetime(substr(skipped_since, 1, 19)) IS substr(skipped_since, 1, 19) AND rtrim(substr(skipped_since, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_trigger_version CHECK (version BETWEEN 0 AND 1000000000000000000 AND version = CAST(version AS INTEGER)),
    CONSTRAINT ck_schedule_trigger_kind CHECK (kind IN ('CRON', 'EVERY', 'ONCE')),
    CONSTRAINT ck_schedule_trigger_status CHECK (status IN ('ACTIVE', 'PAUSED', 'DONE', 'ERROR')),
    CONSTRAINT ck_schedule_trigger_misfire CHECK (misfire IN ('ONE', 'SKIP', 'ALL')),
    CONSTRAINT ck_schedule_trigger_overlap CHECK (overlap IN ('SKIP', 'WAIT')),
    CONSTRAINT ck_schedule_trigger_priority CHECK (priority BETWEEN -1000000000000000000 AND 1000000000000000000 AND priority = CAST(priority AS INTEGER)),
    PRIMARY KEY (own_sign, name)
);
CREATE INDEX idx_schedule_trigger_due ON schedule_trigger (own_sign, status, next_fire_at);
CREATE TABLE schedule_task_after (
    task_type TEXT NOT NULL,                   -- task type that waits
    upstream  TEXT NOT NULL,                   -- task type that it waits for
    rule      TEXT NOT NULL DEFAULT 'SUCCESS', -- SUCCESS or FINISHED
    any_of    BOOLEAN NOT NULL DEFAULT FALSE,  -- each run of an upstream creates a run; otherwise all of one slot or key create one
    CONSTRAINT ck_schedule_task_after_rule CHECK (rule IN ('SUCCESS', 'FINISHED')),
    CONSTRAINT ck_schedule_task_after_any_of CHECK (any_of IN (0, 1)),
    PRIMARY KEY (task_type, upstream)
);
CREATE INDEX idx_schedule_task_after_upstream ON schedule_task_after (upstream);
CREATE TABLE schedule_run (
    run_id           TEXT    NOT NULL PRIMARY KEY,                        -- UUIDv7 by the database's clock: sorts by time
    task_type        TEXT    NOT NULL,                                    -- name of the task type
    own_sign         TEXT    NOT NULL DEFAULT 'BASE',                     -- environment
    run_key          TEXT    NOT NULL,                                    -- a task type has one run per key
    root_run_id      TEXT    NOT NULL,                                    -- run that this one was created with, or its own run_id
    graph_name       TEXT    NOT NULL DEFAULT '',                         -- name of its graph, or empty
    trigger_name     TEXT    NULL,                                        -- trigger that fired it or its root, or NULL
    backfill_id      TEXT    NULL,                                        -- backfill that made it or its root, or NULL
    scheduled_at     TEXT    NOT NULL,                                    -- slot of the trigger, or when it was submitted
    slot_end_at      TEXT    NULL,                                        -- next slot of the trigger, or NULL
    time_zone        TEXT    NOT NULL DEFAULT 'UTC',                      -- time zone of the trigger
    state            TEXT    NOT NULL,                                    -- WAITING, READY, RUNNING, SUCCESS, FAILED, DEPENDENT_FAILED, CANCELLED or SKIPPED
    paused           BOOLEAN NOT NULL DEFAULT FALSE,                      -- it is not opened, and its queues are not claimed
    cancel_requested BOOLEAN NOT NULL DEFAULT FALSE,                      -- an operator has asked to cancel it
    priority         BIGINT  NOT NULL DEFAULT 0,                          -- the highest is opened first
    params           TEXT    NOT NULL DEFAULT '',                         -- parameters that each Select receives
    trace_parent     TEXT    NOT NULL DEFAULT '',                         -- traceparent of the caller that submitted it or its root, by W3C Trace Context, or empty
    not_before       TEXT    NULL,                                        -- it is not opened before, or NULL
    end_before       TEXT    NULL,                                        -- it fails if it has not ended by then, or NULL
    max_attempts     BIGINT  NOT NULL DEFAULT 0,                          -- attempts of each of its queues, 0 for queue_max_attempts of the task type
    queue_total      BIGINT  NOT NULL DEFAULT 0,                          -- number of queues when it was opened
    items_done       BIGINT  NOT NULL DEFAULT 0,                          -- items that succeeded in all queues, once it has ended
    items_failed     BIGINT  NOT NULL DEFAULT 0,                          -- items that failed in all queues, once it has ended
    items_at_least   BOOLEAN NOT NULL DEFAULT FALSE,                      -- items_done and items_failed are lower bounds
    message          TEXT    NOT NULL DEFAULT '',                         -- why it is in its state, for people
    created_at       TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'), -- when the row was inserted
    waiting_since    TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'), -- when it was made, reopened, opened or resumed, or became READY, whichever is last
    started_at       TEXT    NULL,                                        -- when it was opened; newer rows of the user belong to the next run
    deadline_at      TEXT    NULL,                                        -- when it fails by itself because it has not started or ended; never NULL in state RUNNING
    finished_at      TEXT    NULL,                                        -- when it ended
    failed_at        TEXT    NULL,                                        -- when it last became FAILED or DEPENDENT_FAILED
    alerted_at       TEXT    NULL,                                        -- when a server raised the alert of that failure
    acked_at         TEXT    NULL,                                        -- when an operator acknowledged its failure
    acked_by         TEXT    NOT NULL DEFAULT '',                         -- operator who did
    version          BIGINT  NOT NULL DEFAULT 0,                          -- rises when a transaction locks the run
    CONSTRAINT ck_schedule_run_scheduled_at CHECK (datetime(substr(scheduled_at, 1, 19)) IS substr(scheduled_at, 1, 19) AND rtrim(substr(scheduled_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_run_slot_end_at CHECK (datetime(substr(slot_end_at, 1, 19)) IS substr(slot_end_at, 1, 19) AND rtrim(substr(slot_end_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_run_queue_total CHECK (queue_total BETWEEN 0 AND 100000 AND queue_total = CAST(queue_total AS INTEGER)),
    CONSTRAINT ck_schedule_run_created_at CHECK (datetime(substr(created_at, 1, 19)) IS substr(created_at, 1, 19) AND rtrim(substr(created_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_run_waiting_since CHECK (datetime(substr(waiting_since, 1, 19)) IS substr(waiting_since, 1, 19) AND rtrim(substr(waiting_since, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_run_started_at CHECK (datetime(substr(started_at, 1, 19)) IS substr(started_at, 1, 19) AND rtrim(substr(started_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_run_deadline_at CHECK (datetime(substr(deadline_at, 1, 19)) IS substr(deadline_at, 1, 19) AND rtrim(substr(deadline_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_run_finished_at CHECK (datetime(substr(finished_at, 1, 19)) IS substr(finished_at, 1, 19) AND rtrim(substr(finished_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_run_not_before CHECK (datetime(substr(not_before, 1, 19)) IS substr(not_before, 1, 19) AND rtrim(substr(not_before, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_run_end_before CHECK (datetime(substr(end_before, 1, 19)) IS substr(end_before, 1, 19) AND rtrim(substr(end_before, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_run_max_attempts CHECK (max_attempts BETWEEN 0 AND 100000),
    CONSTRAINT ck_schedule_run_failed_at CHECK (datetime(substr(failed_at, 1, 19)) IS substr(failed_at, 1, 19) AND rtrim(substr(failed_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_run_alerted_at CHECK (datetime(substr(alerted_at, 1, 19)) IS substr(alerted_at, 1, 19) AND rtrim(substr(alerted_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_run_acked_at CHECK (datetime(substr(acked_at, 1, 19)) IS substr(acked_at, 1, 19) AND rtrim(substr(acked_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_run_version CHECK (version BETWEEN 0 AND 1000000000000000000 AND version = CAST(version AS INTEGER)),
    CONSTRAINT ck_schedule_run_state CHECK (state IN ('WAITING', 'READY', 'RUNNING', 'SUCCESS', 'FAILED', 'DEPENDENT_FAILED', 'CANCELLED', 'SKIPPED')),
    CONSTRAINT ck_schedule_run_paused CHECK (paused IN (0, 1)),
    CONSTRAINT ck_schedule_run_cancel_requested CHECK (cancel_requested IN (0, 1)),
    CONSTRAINT ck_schedule_run_priority CHECK (priority BETWEEN -1000000000000000000 AND 1000000000000000000 AND priority = CAST(priority AS INTEGER)),
    CONSTRAINT ck_schedule_run_items_done CHECK (items_done BETWEEN 0 AND 1000000000000000000 AND items_done = CAST(items_done AS INTEGER)),
    CONSTRAINT ck_schedule_run_items_failed CHECK (items_failed BETWEEN 0 AND 1000000000000000000 AND items_failed = CAST(items_failed AS INTEGER)),
    CONSTRAINT ck_schedule_run_items_at_least CHECK (items_at_least IN (0, 1)),
    CONSTRAINT uq_schedule_run_key UNIQUE (task_type, own_sign, run_key)  -- one run per key
);
CREATE INDEX idx_schedule_run_state ON schedule_run (task_type, own_sign, state, scheduled_at);
CREATE INDEX idx_schedule_run_trigger ON schedule_run (task_type, own_sign, trigger_name, state, scheduled_at);
CREATE INDEX idx_schedule_run_backfill ON schedule_run (backfill_id, state);
CREATE INDEX idx_schedule_run_graph ON schedule_run (graph_name, run_id);
CREATE TABLE schedule_run_queue (
    run_id          TEXT   NOT NULL,                   -- run
    queue_id        TEXT   NOT NULL,                   -- queue
    queue_total     BIGINT NULL,                       -- queue_total of the queue when the run was opened
    state           TEXT   NOT NULL DEFAULT 'PENDING', -- PENDING, RUNNING, DONE, FAILED or CANCELLED
    server          TEXT   NULL,                       -- server that last claimed it
    epoch           BIGINT NOT NULL DEFAULT 0,         -- epoch of the queue at that claim
    attempt         BIGINT NOT NULL DEFAULT 0,         -- number of the sweep, from 1
    recoveries      BIGINT NOT NULL DEFAULT 0,         -- take-overs in a row without progress
    next_attempt_at TEXT   NULL,                       -- when it may be claimed again after a failure
    cursor_value    TEXT   NOT NULL DEFAULT '',        -- how far a dealer with a cursor has read in this run
    items_done      BIGINT NOT NULL DEFAULT 0,         -- items that succeeded
    items_failed    BIGINT NOT NULL DEFAULT 0,         -- items that failed
    items_at_least  BOOLEAN NOT NULL DEFAULT FALSE,    -- items_done and items_failed are lower bounds
    last_error      TEXT   NOT NULL DEFAULT '',        -- last error
    started_at      TEXT   NULL,                       -- when it was first claimed
    progress_at     TEXT   NULL,                       -- when its progress was last saved
    finished_at     TEXT   NULL,                       -- when it ended
    CONSTRAINT ck_schedule_run_queue_epoch CHECK (epoch BETWEEN 0 AND 1000000000000 AND epoch = CAST(epoch AS INTEGER)),
    CONSTRAINT ck_schedule_run_queue_queue_total CHECK (queue_total BETWEEN 1 AND 1000000000 AND queue_total = CAST(queue_total AS INTEGER)),
    CONSTRAINT ck_schedule_run_queue_attempt CHECK (attempt BETWEEN 0 AND 1000000000000 AND attempt = CAST(attempt AS INTEGER)),
    CONSTRAINT ck_schedule_run_queue_recoveries CHECK (recoveries BETWEEN 0 AND 1000000000000 AND recoveries = CAST(recoveries AS INTEGER)),
    CONSTRAINT ck_schedule_run_queue_next_attempt_at CHECK (datetime(substr(next_attempt_at, 1, 19)) IS substr(next_attempt_at, 1, 19) AND rtrim(substr(next_attempt_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_run_queue_started_at CHECK (datetime(substr(started_at, 1, 19)) IS substr(started_at, 1, 19) AND rtrim(substr(started_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_run_queue_progress_at CHECK (datetime(substr(progress_at, 1, 19)) IS substr(progress_at, 1, 19) AND rtrim(substr(progress_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_run_queue_finished_at CHECK (datetime(substr(finished_at, 1, 19)) IS substr(finished_at, 1, 19) AND rtrim(substr(finished_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_run_queue_state CHECK (state IN ('PENDING', 'RUNNING', 'DONE', 'FAILED', 'CANCELLED')),
    CONSTRAINT ck_schedule_run_queue_items_done CHECK (items_done BETWEEN 0 AND 1000000000000000000 AND items_done = CAST(items_done AS INTEGER)),
    CONSTRAINT ck_schedule_run_queue_items_failed CHECK (items_failed BETWEEN 0 AND 1000000000000000000 AND items_failed = CAST(items_failed AS INTEGER)),
    CONSTRAINT ck_schedule_run_queue_items_at_least CHECK (items_at_least IN (0, 1)),
    PRIMARY KEY (run_id, queue_id)
);
CREATE INDEX idx_schedule_run_queue_due ON schedule_run_queue (state, next_attempt_at);
CREATE TABLE schedule_run_item (
    run_id     TEXT   NOT NULL,            -- run
    queue_id   TEXT   NOT NULL,            -- queue
    item_no    BIGINT NOT NULL,            -- order of the failures of the queue
    item_key   TEXT   NOT NULL,            -- key of the item, from the dealer, cut to 255 characters
    attempt    BIGINT NOT NULL,            -- attempt of the queue in which it failed last; 0 before the last rerun
    last_error TEXT   NOT NULL DEFAULT '', -- last error
    failed_at  TEXT   NOT NULL,            -- when it failed last
    CONSTRAINT ck_schedule_run_item_item_no CHECK (item_no BETWEEN 0 AND 1000000000000 AND item_no = CAST(item_no AS INTEGER)),
    CONSTRAINT ck_schedule_run_item_attempt CHECK (attempt BETWEEN 0 AND 1000000000000 AND attempt = CAST(attempt AS INTEGER)),
    CONSTRAINT ck_schedule_run_item_failed_at CHECK (datetime(substr(failed_at, 1, 19)) IS substr(failed_at, 1, 19) AND rtrim(substr(failed_at, 20), '0123456789') IN ('', '.')),
    PRIMARY KEY (run_id, queue_id, item_no)
);
CREATE TABLE schedule_run_dep (
    run_id          TEXT NOT NULL,                   -- run that waits
    upstream_run_id TEXT NOT NULL,                   -- run that it waits for
    rule            TEXT NOT NULL DEFAULT 'SUCCESS', -- SUCCESS or FINISHED
    CONSTRAINT ck_schedule_run_dep_rule CHECK (rule IN ('SUCCESS', 'FINISHED')),
    PRIMARY KEY (run_id, upstream_run_id)
);
CREATE INDEX idx_schedule_run_dep_upstream ON schedule_run_dep (upstream_run_id);
CREATE TABLE schedule_submission (
    task_type TEXT NOT NULL,                -- name of the task type
    own_sign  TEXT NOT NULL DEFAULT 'BASE', -- environment
    run_key   TEXT NOT NULL,                -- key of the run
    run_id    TEXT NOT NULL,                -- id that the run gets
    request   TEXT NOT NULL,                -- JSON object: parameters, priority, limits and upstreams of the run
    PRIMARY KEY (task_type, own_sign, run_key)
);
CREATE TABLE schedule_backfill (
    backfill_id   TEXT    NOT NULL PRIMARY KEY,       -- UUIDv7 by the database's clock: sorts by time
    task_type     TEXT    NOT NULL,                   -- name of the task type
    own_sign      TEXT    NOT NULL DEFAULT 'BASE',    -- environment
    trigger_name  TEXT    NOT NULL,                   -- trigger whose slots get runs
    kind          TEXT    NOT NULL,                   -- of the trigger at the start: CRON or EVERY
    expression    TEXT    NOT NULL,                   -- a cron expression with seconds, or a duration such as 5m
    time_zone     TEXT    NOT NULL DEFAULT 'UTC',     -- time zone of CRON
    start_at      TEXT    NULL,                       -- first permitted slot; EVERY counts from it
    excluded_days TEXT    NOT NULL DEFAULT '',        -- days without slots of CRON, such as 2026-04-03,12-25
    params        TEXT    NOT NULL DEFAULT '',        -- parameters of the runs
    priority      BIGINT  NOT NULL DEFAULT 0,         -- priority of the runs, the highest first
    from_at       TEXT    NOT NULL,                   -- no slot is earlier
    to_at         TEXT    NOT NULL,                   -- all slots are earlier
    parallel      BIGINT  NOT NULL DEFAULT 1,         -- most slots whose runs are open at a time
    rerun_failed  BOOLEAN NOT NULL DEFAULT FALSE,     -- failed and cancelled runs of slots are rerun
    dependants    BOOLEAN NOT NULL DEFAULT TRUE,      -- the runs have dependants
    newest_first  BOOLEAN NOT NULL DEFAULT FALSE,     -- the newest slot comes first
    state         TEXT    NOT NULL DEFAULT 'RUNNING', -- RUNNING, SUCCESS, FAILED or CANCELLED
    paused        BOOLEAN NOT NULL DEFAULT FALSE,     -- no further slot gets a run
    next_slot_at  TEXT    NULL,                       -- next slot to look at, or NULL if there is none
    slots_total   BIGINT  NOT NULL DEFAULT 0,         -- slots in the range
    slots_made    BIGINT  NOT NULL DEFAULT 0,         -- slots whose run it has made or reopened
    slots_kept    BIGINT  NOT NULL DEFAULT 0,         -- slots whose run it has left alone
    message       TEXT    NOT NULL DEFAULT '',        -- why it is in its state, for people
    actor         TEXT    NOT NULL DEFAULT '',        -- operator that started it
    created_at    TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'), -- when it was started
    ended_at      TEXT    NULL,                       -- when it ended
    version       BIGINT  NOT NULL DEFAULT 0,         -- rises with each change; a change compares it first
    CONSTRAINT ck_schedule_backfill_start_at CHECK (datetime(substr(start_at, 1, 19)) IS substr(start_at, 1, 19) AND rtrim(substr(start_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_backfill_from_at CHECK (datetime(substr(from_at, 1, 19)) IS substr(from_at, 1, 19) AND rtrim(substr(from_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_backfill_to_at CHECK (datetime(substr(to_at, 1, 19)) IS substr(to_at, 1, 19) AND rtrim(substr(to_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_backfill_parallel CHECK (parallel BETWEEN 1 AND 100 AND parallel = CAST(parallel AS INTEGER)),
    CONSTRAINT ck_schedule_backfill_next_slot_at CHECK (datetime(substr(next_slot_at, 1, 19)) IS substr(next_slot_at, 1, 19) AND rtrim(substr(next_slot_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_backfill_slots_total CHECK (slots_total BETWEEN 0 AND 1000000 AND slots_total = CAST(slots_total AS INTEGER)),
    CONSTRAINT ck_schedule_backfill_slots_made CHECK (slots_made BETWEEN 0 AND 1000000 AND slots_made = CAST(slots_made AS INTEGER)),
    CONSTRAINT ck_schedule_backfill_slots_kept CHECK (slots_kept BETWEEN 0 AND 1000000 AND slots_kept = CAST(slots_kept AS INTEGER)),
    CONSTRAINT ck_schedule_backfill_created_at CHECK (datetime(substr(created_at, 1, 19)) IS substr(created_at, 1, 19) AND rtrim(substr(created_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_backfill_ended_at CHECK (datetime(substr(ended_at, 1, 19)) IS substr(ended_at, 1, 19) AND rtrim(substr(ended_at, 20), '0123456789') IN ('', '.')),
    CONSTRAINT ck_schedule_backfill_version CHECK (version BETWEEN 0 AND 1000000000000000000 AND version = CAST(version AS INTEGER)),
    CONSTRAINT ck_schedule_backfill_kind CHECK (kind IN ('CRON', 'EVERY')),
    CONSTRAINT ck_schedule_backfill_priority CHECK (priority BETWEEN -1000000000000000000 AND 1000000000000000000 AND priority = CAST(priority AS INTEGER)),
    CONSTRAINT ck_schedule_backfill_rerun_failed CHECK (rerun_failed IN (0, 1)),
    CONSTRAINT ck_schedule_backfill_dependants CHECK (dependants IN (0, 1)),
    CONSTRAINT ck_schedule_backfill_newest_first CHECK (newest_first IN (0, 1)),
    CONSTRAINT ck_schedule_backfill_state CHECK (state IN ('RUNNING', 'SUCCESS', 'FAILED', 'CANCELLED')),
    CONSTRAINT ck_schedule_backfill_paused CHECK (paused IN (0, 1))
);
CREATE INDEX idx_schedule_backfill_state ON schedule_backfill (task_type, own_sign, state);
INSERT INTO schedule_backfill (backfill_id, task_type, own_sign, trigger_name, kind, expression, time_zone, start_at, excluded_days, params, priority, from_at, to_at, parallel, rerun_failed, dependants, newest_first, state, paused, next_slot_at, slots_total, slots_made, slots_kept, message, actor, created_at, ended_at, version) VALUES ('1', 'settle', 'BASE', 'a', 'CRON', '', 'UTC', NULL, '', '', 0, '2026-01-01 00:00:00.000000', '2026-01-01 00:00:00.000000', 1, 0, 1, 0, 'RUNNING', 0, NULL, 0, 0, 0, '', '', '2026-11-30 12:58:06.538000', NULL, 0);
INSERT INTO schedule_backlog (task_type, own_sign, queue_id, epoch, items, oldest_at, measured_at, took_ms, rate, trend, demand) VALUES ('settle', 'BASE', '0', 1, 5, NULL, '2026-01-01 00:00:00.000000', 1, NULL, '', NULL);
INSERT INTO schedule_data (own_sign, name, data_id, marked, address, gmt_created) VALUES ('BASE', 'orders', 'x', 0, '', '2026-11-30 12:58:06.536000');
INSERT INTO schedule_environment (own_sign, epoch_floor, lost_at, lost_task, lost_report, history_since) VALUES ('BASE', 0, NULL, NULL, NULL, NULL);
INSERT INTO schedule_event (event_id, event_time, task_type, own_sign, queue_id, kind, from_server, to_server, epoch, reason, actor, alert, subject, open_until) VALUES (1, '2026-11-30 12:58:06.536000', 'settle', 'BASE', NULL, 'ALERT', NULL, NULL, NULL, '', '', NULL, NULL, NULL);
INSERT INTO schedule_failed_item (task_type, own_sign, item_hash, item_key, order_key, queue_id, partition_version, state, attempts, last_error, first_failed_at, next_attempt_at) VALUES ('settle', 'BASE', 'h', '17', '', '0', 0, 'RETRY', 0, '', '2026-11-30 12:58:06.536000', NULL);
INSERT INTO schedule_queue (task_type, own_sign, queue_id, queue_index, queue_total, cur_server, req_server, epoch, plan_version, cur_since, req_since, queue_parameter, cursor_value, window_done_at, crash_count, failing_since, reserved_for, reserved_until, waits_for, division, gmt_created, gmt_modified) VALUES ('settle', 'BASE', '0', 0, NULL, NULL, NULL, 0, 0, NULL, NULL, '', '', NULL, 0, NULL, NULL, NULL, NULL, '', '2026-11-30 12:58:06.536000', '2026-11-30 12:58:06.536000');
INSERT INTO schedule_queue_setting (task_type, own_sign, queue_id, labels, rate_per_second, max_in_flight, weight) VALUES ('settle', 'BASE', '0', 'zone=b', NULL, NULL, NULL);
INSERT INTO schedule_run (run_id, task_type, own_sign, run_key, root_run_id, graph_name, trigger_name, backfill_id, scheduled_at, slot_end_at, time_zone, state, paused, cancel_requested, priority, params, trace_parent, not_before, end_before, max_attempts, queue_total, items_done, items_failed, items_at_least, message, created_at, waiting_since, started_at, deadline_at, finished_at, failed_at, alerted_at, acked_at, acked_by, version) VALUES ('1', 'settle', 'BASE', 'k', '1', '', NULL, NULL, '2026-01-01 00:00:00.000000', NULL, 'UTC', 'READY', 0, 0, 0, '', '', NULL, NULL, 0, 0, 0, 0, 0, '', '2026-11-30 12:58:06.537000', '2026-11-30 12:58:06.537000', NULL, NULL, NULL, NULL, NULL, NULL, '', 0);
INSERT INTO schedule_run_dep (run_id, upstream_run_id, rule) VALUES ('1', '0', 'SUCCESS');
INSERT INTO schedule_run_item (run_id, queue_id, item_no, item_key, attempt, last_error, failed_at) VALUES ('1', '0', 1, '17', 1, '', '2026-01-01 00:00:00.000000');
INSERT INTO schedule_run_queue (run_id, queue_id, queue_total, state, server, epoch, attempt, recoveries, next_attempt_at, cursor_value, items_done, items_failed, items_at_least, last_error, started_at, progress_at, finished_at) VALUES ('1', '0', NULL, 'PENDING', NULL, 0, 0, 0, NULL, '', 0, 0, 0, '', NULL, NULL, NULL);
INSERT INTO schedule_schema_lock (id, holder, expires_at, oldest_companion, edition) VALUES (1, '', NULL, 1, 63);
INSERT INTO schedule_schema_version (id, version_id, is_applied, tstamp) VALUES (1, 0, 1, '2026-11-30 12:58:06.520000');
INSERT INTO schedule_schema_version (id, version_id, is_applied, tstamp) VALUES (2, 1, 1, '2026-11-30 12:58:06.533000');
INSERT INTO schedule_server (uuid, task_type, own_sign, ip, host_name, pid, thread_number, state, register_time, heartbeat_time, beat_token, beat_count, judge_dead_interval_ms, watching_since, read_plan_version, read_sum, last_fetch_time, next_run_start_time, next_run_end_time, fetch_count, fetch_item_count, success_count, failure_count, skip_count, execute_ms, in_hand, oldest_in_hand_since, last_error, last_error_at, failing_since, failed_calls, library_version, labels, hung_queues, given_settings, max_in_flight, max_in_flight_target, max_in_flight_version, weight, planner_version, witness, name, process, capabilities) VALUES ('a', 'settle', 'BASE', '', '', 0, 0, 'SERVING', '2026-11-30 12:58:06.535000', '2026-11-30 12:58:06.535000', '', 0, 10000, NULL, 0, 0, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, NULL, '', NULL, NULL, 0, '', '', NULL, NULL, NULL, NULL, 0, 1, 1, NULL, '', '', '');
INSERT INTO schedule_server_history (uuid, task_type, own_sign, ip, host_name, pid, thread_number, state, register_time, heartbeat_time, beat_token, beat_count, judge_dead_interval_ms, watching_since, read_plan_version, read_sum, last_fetch_time, next_run_start_time, next_run_end_time, fetch_count, fetch_item_count, success_count, failure_count, skip_count, execute_ms, in_hand, oldest_in_hand_since, last_error, last_error_at, failing_since, failed_calls, library_version, labels, hung_queues, given_settings, max_in_flight, max_in_flight_target, max_in_flight_version, weight, planner_version, witness, name, process, capabilities, left_time, reason) VALUES ('a', 'settle', 'BASE', '', '', 0, 0, 'SERVING', '2026-01-01 00:00:00.000000', '2026-01-01 00:00:00.000000', '', 0, 10000, NULL, 0, 0, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, NULL, '', NULL, NULL, 0, '', '', NULL, NULL, NULL, NULL, 0, 1, 1, NULL, '', '', '', '2026-11-30 12:58:06.535000', 'LEFT');
INSERT INTO schedule_server_version (task_type, own_sign, uuid, queue_version) VALUES ('settle', 'BASE', 'a', 0);
INSERT INTO schedule_submission (task_type, own_sign, run_key, run_id, request) VALUES ('settle', 'BASE', 'k', '1', '{}');
INSERT INTO schedule_task_after (task_type, upstream, rule, any_of) VALUES ('a', 'b', 'SUCCESS', 0);
INSERT INTO schedule_task_running (task_type, own_sign, paused, queue_total, queue_changes, partition_version, membership_version, planned_version, plan_version, item_version, epoch_high, epoch_floor, audited_at, last_assign_time, last_assign_server, skipped, reserved_until, load_moves_until, version) VALUES ('settle', 'BASE', 0, 0, NULL, 1, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, 0);
INSERT INTO schedule_task_type (task_type, mode, processor_type, heartbeat_interval_ms, judge_dead_interval_ms, thread_number, fetch_number, execute_number, sleep_time_nodata_ms, sleep_time_interval_ms, permit_run_start_time, permit_run_end_time, time_zone, task_parameter, data_database, max_queues_per_server, max_servers, max_servers_per_host, require_labels, prefer_labels, spread_label, balance, load_moves_per_hour, splittable, hinted, rate_per_second, max_in_flight, queue_rate_per_second, queue_max_in_flight, batch_timeout_ms, drain_timeout_ms, stall_after_ms, item_max_attempts, count_in_outage, on_dead, item_retry_ms, item_retry_factor, item_retry_jitter, item_retry_max_ms, failing_after, queue_max_attempts, queue_retry_ms, sweep_max_repeats, max_recoveries, run_timeout_ms, run_start_timeout_ms, coalesce_runs, expire_own_sign_interval_ms, version, hint_version, gmt_created, gmt_modified) VALUES ('settle', 'CONTINUOUS', 'SLEEP', 2000, 10000, 5, 500, 1, 500, 0, '', '', 'UTC', '', '', 0, 0, 0, '', '', '', 'QUEUES', 60, 0, 0, 0.0, 0, 0.0, 0, 0, 30000, 300000, 25, 0, 'HOLD', 1000, 2.0, 0.5, 21600000, 5, 3, 30000, 3, 5, 86400000, 0, 0, 86400000, 0, 0, '2026-11-30 12:58:06.534000', '2026-11-30 12:58:06.534000');
INSERT INTO schedule_trigger (own_sign, name, trigger_id, target, kind, expression, time_zone, start_at, end_at, max_fires, fires, next_fire_at, prev_fire_at, status, misfire, misfire_after_ms, catchup_max, jitter_ms, excluded_days, overlap, priority, params, missed, missed_at, skipped, skipped_since, message, version) VALUES ('BASE', 'a', 'a', 'settle', 'CRON', '', 'UTC', NULL, NULL, 0, 0, NULL, NULL, 'ACTIVE', 'ONE', 60000, 100, 0, '', 'SKIP', 0, '', 0, NULL, 0, NULL, '', 0);
