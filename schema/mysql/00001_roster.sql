-- The roster on MySQL and MariaDB: all tables, indexes and the view. docs/tables.md describes them at length.
-- Oldest companion: version 1, this one. There is no older one.
--
-- From the first release on this file never changes, because databases have been made by it. A change of the tables is
-- another migration then.
--
-- MySQL commits each DDL statement by itself, so a migration that is killed has done a part of its work. Every
-- statement can therefore run again. Indexes are inside CREATE TABLE, because there is no CREATE INDEX IF NOT EXISTS.
-- Identifiers are utf8mb4_bin, the default of each table: they sort by their bytes, as on every other database,
-- because the order of queue ids is the order in which rows are locked. utf8mb4_bin ignores trailing spaces, so an
-- identifier must not end in one. Times are UTC with microseconds. Columns that end in _ms are milliseconds.
-- NULL means that there is none (no owner, no such moment yet), never "empty".
--
-- The CHECK constraints refuse values that no server can work with: a duration beyond ten years, a time that is no time
-- or beyond the year 9999, a number that overflows when it rises, a state that no program knows. One such row would stop
-- all servers that read it. BOOLEAN is a number here. MySQL enforces the constraints from 8.0.16 on.

-- +goose Up
-- The settings of a task type, one row per task type. They apply to all its servers in all environments.
CREATE TABLE IF NOT EXISTS schedule_task_type (
    task_type                   VARCHAR(100) NOT NULL PRIMARY KEY,                -- name of the task type
    mode                        VARCHAR(20)  NOT NULL DEFAULT 'CONTINUOUS',       -- CONTINUOUS or RUN
    processor_type              VARCHAR(20)  NOT NULL DEFAULT 'SLEEP',            -- SLEEP or NOTSLEEP
    heartbeat_interval_ms       BIGINT       NOT NULL DEFAULT 2000,               -- pause between two heartbeats of a server
    judge_dead_interval_ms      BIGINT       NOT NULL DEFAULT 10000,              -- silence after which a server is expired
    thread_number               BIGINT       NOT NULL DEFAULT 5,                  -- calls of the dealer in flight at once, per server
    fetch_number                BIGINT       NOT NULL DEFAULT 500,                -- items that one select asks for, a hint
    execute_number              BIGINT       NOT NULL DEFAULT 1,                  -- most items of one call of Execute
    sleep_time_nodata_ms        BIGINT       NOT NULL DEFAULT 500,                -- pause of a queue after an empty select
    sleep_time_interval_ms      BIGINT       NOT NULL DEFAULT 0,                  -- pause between one page of items and the next select
    permit_run_start_time       VARCHAR(255) NOT NULL DEFAULT '',                 -- when permit windows begin (cron with seconds), '' for always
    permit_run_end_time         VARCHAR(255) NOT NULL DEFAULT '',                 -- when permit windows end (cron), '' or -1 for the first empty select
    time_zone                   VARCHAR(64)  NOT NULL DEFAULT 'UTC',              -- time zone of the cron expressions, such as Europe/Berlin
    task_parameter              TEXT         NOT NULL DEFAULT (''),               -- free text that each Select receives
    data_database               TEXT         NOT NULL DEFAULT (''),               -- data database of each queue, such as shard{{queue}}; empty for the database of the roster
    max_queues_per_server       BIGINT       NOT NULL DEFAULT 0,                  -- most queues that one server may own, 0 for no limit
    max_servers                 BIGINT       NOT NULL DEFAULT 0,                  -- most servers that own queues, 0 for no limit; the others stand by
    max_servers_per_host        BIGINT       NOT NULL DEFAULT 0,                  -- as max_servers, of one host
    require_labels              TEXT         NOT NULL DEFAULT (''),               -- labels that a server must have to own queues, such as zone=b|c,disk=ssd
    prefer_labels               TEXT         NOT NULL DEFAULT (''),               -- labels that a server should have: the others own queues only if it must be
    spread_label                VARCHAR(64)  NOT NULL DEFAULT '',                 -- label whose values share the queues evenly, such as zone
    balance                     VARCHAR(20)  NOT NULL DEFAULT 'QUEUES',           -- what is even among the servers: QUEUES (their numbers) or LOAD
    load_moves_per_hour         BIGINT       NOT NULL DEFAULT 60,                 -- most queues per hour that move only to even the load
    splittable                  BOOLEAN      NOT NULL DEFAULT FALSE,              -- queues may be split and merged one by one; their selects divide by queue_total of each
    hinted                      BOOLEAN      NOT NULL DEFAULT FALSE,              -- each program that adds items sends a hint: servers that hear hints poll twice a minute
    rate_per_second             DOUBLE       NOT NULL DEFAULT 0,                  -- most items per second of the whole task type, 0 for no limit
    max_in_flight               BIGINT       NOT NULL DEFAULT 0,                  -- most calls of Execute in flight of the whole task type, 0 for no limit
    queue_rate_per_second       DOUBLE       NOT NULL DEFAULT 0,                  -- most items per second of each queue, 0 for no limit
    queue_max_in_flight         BIGINT       NOT NULL DEFAULT 0,                  -- most calls of Execute in flight of each queue, 0 for no limit
    batch_timeout_ms            BIGINT       NOT NULL DEFAULT 0,                  -- time limit of one call of the dealer, 0 for none
    drain_timeout_ms            BIGINT       NOT NULL DEFAULT 30000,              -- how long a leaving server waits for its items in flight
    stall_after_ms              BIGINT       NOT NULL DEFAULT 300000,             -- age at which a call of the dealer raises an alert
    item_max_attempts           BIGINT       NOT NULL DEFAULT 25,                 -- failures after which an item is DEAD
    count_in_outage             BOOLEAN      NOT NULL DEFAULT FALSE,              -- a failure counts as an attempt although nothing else succeeds
    on_dead                     VARCHAR(20)  NOT NULL DEFAULT 'HOLD',             -- HOLD or PASS: whether a dead item holds back those of its order key
    item_retry_ms               BIGINT       NOT NULL DEFAULT 1000,               -- pause after the first failure of an item
    item_retry_factor           DOUBLE       NOT NULL DEFAULT 2,                  -- by which the pause grows with each further failure
    item_retry_jitter           DOUBLE       NOT NULL DEFAULT 0.5,                -- part of a pause by which it is longer or shorter at random
    item_retry_max_ms           BIGINT       NOT NULL DEFAULT 21600000,           -- longest pause between two attempts of an item
    failing_after               BIGINT       NOT NULL DEFAULT 5,                  -- failed calls in a row after which a server counts as failing
    queue_max_attempts          BIGINT       NOT NULL DEFAULT 3,                  -- mode RUN: attempts to sweep a queue before it fails
    queue_retry_ms              BIGINT       NOT NULL DEFAULT 30000,              -- mode RUN: pause after the first failed sweep, doubles
    sweep_max_repeats           BIGINT       NOT NULL DEFAULT 3,                  -- mode RUN: selects in a row that return only executed items before a sweep fails
    max_recoveries              BIGINT       NOT NULL DEFAULT 5,                  -- mode RUN: take-overs of a queue without progress before it fails
    run_timeout_ms              BIGINT       NOT NULL DEFAULT 86400000,           -- mode RUN: time limit of a run
    run_start_timeout_ms        BIGINT       NOT NULL DEFAULT 0,                  -- mode RUN: time limit of the wait until a run is opened, 0 for none
    coalesce_runs               BOOLEAN      NOT NULL DEFAULT FALSE,              -- mode RUN: a dependant skips a run while an earlier one of the same trigger is READY
    expire_own_sign_interval_ms BIGINT       NOT NULL DEFAULT 86400000,           -- time without servers after which an environment is forgotten
    version                     BIGINT       NOT NULL DEFAULT 0,                  -- rises with each change of the settings
    hint_version                BIGINT       NOT NULL DEFAULT 0,                  -- rises with each hint, where the database sends none: workers of a hinted task type read it
    gmt_created                 DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)), -- when the row was inserted
    gmt_modified                DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)), -- when the settings last changed
    CONSTRAINT ck_schedule_task_type_heartbeat_interval_ms CHECK (heartbeat_interval_ms BETWEEN 0 AND 315360000000),
    CONSTRAINT ck_schedule_task_type_judge_dead_interval_ms CHECK (judge_dead_interval_ms BETWEEN 0 AND 315360000000),
    CONSTRAINT ck_schedule_task_type_thread_number CHECK (thread_number BETWEEN 0 AND 1000000),
    CONSTRAINT ck_schedule_task_type_fetch_number CHECK (fetch_number BETWEEN 0 AND 1000000),
    CONSTRAINT ck_schedule_task_type_execute_number CHECK (execute_number BETWEEN 0 AND 1000000),
    CONSTRAINT ck_schedule_task_type_sleep_time_nodata_ms CHECK (sleep_time_nodata_ms BETWEEN 0 AND 315360000000),
    CONSTRAINT ck_schedule_task_type_sleep_time_interval_ms CHECK (sleep_time_interval_ms BETWEEN 0 AND 315360000000),
    CONSTRAINT ck_schedule_task_type_max_queues_per_server CHECK (max_queues_per_server BETWEEN 0 AND 1000000),
    CONSTRAINT ck_schedule_task_type_max_servers CHECK (max_servers BETWEEN 0 AND 1000000),
    CONSTRAINT ck_schedule_task_type_max_servers_per_host CHECK (max_servers_per_host BETWEEN 0 AND 1000000),
    CONSTRAINT ck_schedule_task_type_load_moves_per_hour CHECK (load_moves_per_hour BETWEEN 0 AND 1000000),
    CONSTRAINT ck_schedule_task_type_rate_per_second CHECK (rate_per_second BETWEEN 0 AND 1000000000),
    CONSTRAINT ck_schedule_task_type_max_in_flight CHECK (max_in_flight BETWEEN 0 AND 1000000),
    CONSTRAINT ck_schedule_task_type_queue_rate_per_second CHECK (queue_rate_per_second BETWEEN 0 AND 1000000000),
    CONSTRAINT ck_schedule_task_type_queue_max_in_flight CHECK (queue_max_in_flight BETWEEN 0 AND 1000000),
    CONSTRAINT ck_schedule_task_type_batch_timeout_ms CHECK (batch_timeout_ms BETWEEN 0 AND 315360000000),
    CONSTRAINT ck_schedule_task_type_drain_timeout_ms CHECK (drain_timeout_ms BETWEEN 0 AND 315360000000),
    CONSTRAINT ck_schedule_task_type_stall_after_ms CHECK (stall_after_ms BETWEEN 0 AND 315360000000),
    CONSTRAINT ck_schedule_task_type_item_max_attempts CHECK (item_max_attempts BETWEEN 0 AND 1000000),
    CONSTRAINT ck_schedule_task_type_count_in_outage CHECK (count_in_outage IN (0, 1)),
    CONSTRAINT ck_schedule_task_type_splittable CHECK (splittable IN (0, 1)),
    CONSTRAINT ck_schedule_task_type_hinted CHECK (hinted IN (0, 1)),
    CONSTRAINT ck_schedule_task_type_item_retry_ms CHECK (item_retry_ms BETWEEN 0 AND 315360000000),
    CONSTRAINT ck_schedule_task_type_item_retry_factor CHECK (item_retry_factor BETWEEN 0 AND 1000000),
    CONSTRAINT ck_schedule_task_type_item_retry_jitter CHECK (item_retry_jitter BETWEEN 0 AND 1),
    CONSTRAINT ck_schedule_task_type_item_retry_max_ms CHECK (item_retry_max_ms BETWEEN 0 AND 315360000000),
    CONSTRAINT ck_schedule_task_type_failing_after CHECK (failing_after BETWEEN 0 AND 1000000),
    CONSTRAINT ck_schedule_task_type_queue_max_attempts CHECK (queue_max_attempts BETWEEN 0 AND 1000000),
    CONSTRAINT ck_schedule_task_type_queue_retry_ms CHECK (queue_retry_ms BETWEEN 0 AND 315360000000),
    CONSTRAINT ck_schedule_task_type_sweep_max_repeats CHECK (sweep_max_repeats BETWEEN 0 AND 1000000),
    CONSTRAINT ck_schedule_task_type_max_recoveries CHECK (max_recoveries BETWEEN 0 AND 1000000),
    CONSTRAINT ck_schedule_task_type_run_timeout_ms CHECK (run_timeout_ms BETWEEN 0 AND 315360000000),
    CONSTRAINT ck_schedule_task_type_run_start_timeout_ms CHECK (run_start_timeout_ms BETWEEN 0 AND 315360000000),
    CONSTRAINT ck_schedule_task_type_expire_own_sign_interval_ms CHECK (expire_own_sign_interval_ms BETWEEN 0 AND 315360000000),
    CONSTRAINT ck_schedule_task_type_version CHECK (version BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_task_type_hint_version CHECK (hint_version BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_task_type_gmt_created CHECK (gmt_created BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_task_type_gmt_modified CHECK (gmt_modified BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_task_type_mode CHECK (mode IN ('CONTINUOUS', 'RUN')),
    CONSTRAINT ck_schedule_task_type_processor_type CHECK (processor_type IN ('SLEEP', 'NOTSLEEP')),
    CONSTRAINT ck_schedule_task_type_on_dead CHECK (on_dead IN ('HOLD', 'PASS')),
    CONSTRAINT ck_schedule_task_type_balance CHECK (balance IN ('QUEUES', 'LOAD')),
    CONSTRAINT ck_schedule_task_type_coalesce_runs CHECK (coalesce_runs IN (0, 1))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The lock row of a task type in an environment. Every change of ownership starts with an UPDATE of this row,
-- so that changes happen one after the other. The row is never deleted.
CREATE TABLE IF NOT EXISTS schedule_task_running (
    task_type          VARCHAR(100) NOT NULL,                -- name of the task type
    own_sign           VARCHAR(50)  NOT NULL DEFAULT 'BASE', -- environment
    paused             BOOLEAN      NOT NULL DEFAULT FALSE,  -- the task type is paused in this environment
    queue_total        BIGINT       NOT NULL DEFAULT 0,      -- number of queues
    queue_changes      MEDIUMTEXT   NULL,                    -- JSON object of the changes that wait until the queues have no owner, by queue: the queue_total that it gets, or "remove"; "all" is another number of queues; NULL: none
    partition_version  BIGINT       NOT NULL DEFAULT 1,      -- rises when a queue is added, and when a change of the queues is requested, withdrawn or made
    membership_version BIGINT       NOT NULL DEFAULT 0,      -- rises with everything that the planner reads: servers, their states, queues, limits
    planned_version    BIGINT       NOT NULL DEFAULT 0,      -- membership_version of the last plan; if it differs, a plan is due
    plan_version       BIGINT       NOT NULL DEFAULT 0,      -- rises with each change of ownership; servers read their queues again
    item_version       BIGINT       NOT NULL DEFAULT 0,      -- rises when an operator changes failed items; servers then select soon
    epoch_high         BIGINT       NOT NULL DEFAULT 0,      -- highest epoch of any queue that was deleted; new queues start above it
    epoch_floor        BIGINT       NOT NULL DEFAULT 0,      -- the epoch_floor of the environment that the queues of this row are raised above
    audited_at         DATETIME(6)  NULL,                    -- when a server last compared the whole assignment with its plan
    last_assign_time   DATETIME(6)  NULL,                    -- when the last plan was written
    last_assign_server VARCHAR(150) NULL,                    -- server that wrote it
    skipped            MEDIUMTEXT   NULL,                    -- JSON list of the queues that the last plan could not move because transactions hold their rows; NULL if it skipped nothing
    reserved_until     DATETIME(6)  NULL,                     -- when the next reservation of a queue ends: a plan is due then, or NULL
    load_moves_until   DATETIME(6)  NULL,                     -- when the moves that only evened the load do not count any more in load_moves_per_hour, or NULL
    version            BIGINT       NOT NULL DEFAULT 0,      -- rises whenever the row is locked
    CONSTRAINT ck_schedule_task_running_queue_total CHECK (queue_total BETWEEN 0 AND 100000),
    CONSTRAINT ck_schedule_task_running_queue_changes CHECK (CASE WHEN JSON_VALID(queue_changes) THEN JSON_TYPE(queue_changes) = 'OBJECT' ELSE queue_changes IS NULL END = 1),
    CONSTRAINT ck_schedule_task_running_skipped CHECK (CASE WHEN JSON_VALID(skipped) THEN JSON_TYPE(skipped) = 'ARRAY' ELSE skipped IS NULL END = 1),
    CONSTRAINT ck_schedule_task_running_partition_version CHECK (partition_version BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_task_running_membership_version CHECK (membership_version BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_task_running_planned_version CHECK (planned_version BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_task_running_plan_version CHECK (plan_version BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_task_running_item_version CHECK (item_version BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_task_running_epoch_high CHECK (epoch_high BETWEEN 0 AND 1000000000000),
    CONSTRAINT ck_schedule_task_running_epoch_floor CHECK (epoch_floor BETWEEN 0 AND 1000000000000),
    CONSTRAINT ck_schedule_task_running_audited_at CHECK (audited_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_task_running_reserved_until CHECK (reserved_until BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_task_running_load_moves_until CHECK (load_moves_until BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_task_running_last_assign_time CHECK (last_assign_time BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_task_running_version CHECK (version BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_task_running_paused CHECK (paused IN (0, 1)),
    PRIMARY KEY (task_type, own_sign)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The environments. The row says whether the database has lost history that it had acknowledged. A plan that moves a
-- queue to even the totals of the processes locks it, so that one task type at a time does so. It is never deleted.
CREATE TABLE IF NOT EXISTS schedule_environment (
    own_sign      VARCHAR(50)  NOT NULL PRIMARY KEY, -- environment
    epoch_floor   BIGINT       NOT NULL DEFAULT 0,   -- all queues have epochs above it: history that was lost may have used those below
    lost_at       DATETIME(6)  NULL,                 -- when a server found that history was lost, NULL for never or acknowledged
    lost_task     VARCHAR(100) NULL,                 -- task type of that server
    lost_report   TEXT         NULL,                 -- what is known of the loss, for people
    history_since DATETIME(6)  NULL,                 -- the history has all servers that sent a later heartbeat, or NULL: it has all servers
    CONSTRAINT ck_schedule_environment_epoch_floor CHECK (epoch_floor BETWEEN 0 AND 1000000000000),
    CONSTRAINT ck_schedule_environment_lost_at CHECK (lost_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_environment_history_since CHECK (history_since BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999')
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The live servers. A server is one task type in one worker process.
-- heartbeat_time has no index on purpose: every heartbeat would have to update it. A task type has few servers.
CREATE TABLE IF NOT EXISTS schedule_server (
    uuid                   VARCHAR(150) NOT NULL PRIMARY KEY,                -- host:pid:8 hexadecimal digits
    task_type              VARCHAR(100) NOT NULL,                            -- task type that it serves
    own_sign               VARCHAR(50)  NOT NULL DEFAULT 'BASE',             -- environment
    ip                     VARCHAR(64)  NOT NULL DEFAULT '',                 -- address of the host
    host_name              VARCHAR(255) NOT NULL DEFAULT '',                 -- name of the host
    pid                    BIGINT       NOT NULL DEFAULT 0,                  -- process id
    thread_number          BIGINT       NOT NULL DEFAULT 0,                  -- number of its executors
    state                  VARCHAR(20)  NOT NULL DEFAULT 'SERVING',          -- SERVING, STANDBY, PAUSED, DRAINING or LEAVING
    register_time          DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)), -- when it registered
    heartbeat_time         DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)), -- when its last heartbeat arrived
    beat_token             VARCHAR(64)  NOT NULL DEFAULT '',                 -- proves that a heartbeat comes from the same process
    beat_count             BIGINT       NOT NULL DEFAULT 0,                  -- number of heartbeats
    judge_dead_interval_ms BIGINT       NOT NULL DEFAULT 10000,              -- silence after which others expire it
    watching_since         DATETIME(6)  NULL,                                -- since when it has watched the others without a gap
    read_plan_version      BIGINT       NOT NULL DEFAULT 0,                  -- plan_version up to which it has read its queues
    read_sum               BIGINT       NOT NULL DEFAULT 0,                  -- checksum of what it has read, for the audit
    last_fetch_time        DATETIME(6)  NULL,                                -- when the last finished select began
    next_run_start_time    DATETIME(6)  NULL,                                -- when its next permit window begins, if there are windows
    next_run_end_time      DATETIME(6)  NULL,                                -- when its permit window ends, if there are windows
    fetch_count            BIGINT       NOT NULL DEFAULT 0,                  -- number of selects
    fetch_item_count       BIGINT       NOT NULL DEFAULT 0,                  -- number of selected items
    success_count          BIGINT       NOT NULL DEFAULT 0,                  -- number of items that succeeded
    failure_count          BIGINT       NOT NULL DEFAULT 0,                  -- number of items that failed, each failure counts
    skip_count             BIGINT       NOT NULL DEFAULT 0,                  -- number of selected items that were not executed
    execute_ms             BIGINT       NOT NULL DEFAULT 0,                  -- time spent in Execute, summed over all executors
    in_hand                BIGINT       NOT NULL DEFAULT 0,                  -- number of items in flight: selected and not finished
    oldest_in_hand_since   DATETIME(6)  NULL,                                -- when the oldest running call of the dealer began
    last_error             TEXT         NOT NULL DEFAULT (''),               -- last error of the dealer
    last_error_at          DATETIME(6)  NULL,                                -- when it happened, in the server's estimate of the database's clock
    failing_since          DATETIME(6)  NULL,                                -- when the first of failed_calls ended, if they are enough to say that its calls all fail
    failed_calls           BIGINT       NOT NULL DEFAULT 0,                  -- number of selects and batches that have failed since an item was last done
    library_version        VARCHAR(64)  NOT NULL DEFAULT '',                 -- version of Rota in the program
    labels                 TEXT         NOT NULL DEFAULT (''),               -- what it has, such as disk=ssd,zone=b
    hung_queues            MEDIUMTEXT   NULL,                                -- JSON list of the queues that it does not get, because calls of its process's former session are in flight for them, or NULL
    given_settings         TEXT         NULL,                                -- JSON object of the settings that the program sets itself, as text; NULL if unknown
    max_in_flight          BIGINT       NULL,                                -- most calls of Execute that it may have in flight, or NULL for no limit
    max_in_flight_target   BIGINT       NULL,                                -- what max_in_flight is to become, or NULL for no limit
    max_in_flight_version  BIGINT       NOT NULL DEFAULT 0,                  -- rises whenever a plan writes one of these two
    weight                 BIGINT       NOT NULL DEFAULT 1,                  -- part of the queues, in proportion to the weights of the others; 0 for none
    planner_version        BIGINT       NOT NULL DEFAULT 1,                  -- rules of the planner that its program knows
    witness                VARCHAR(160) NULL,                                -- lock file that its process holds: boot, name, device, inode; NULL for none
    name                   VARCHAR(100) NOT NULL DEFAULT '',                 -- name of its process, which a later process may have too; empty: none
    process                VARCHAR(150) NOT NULL DEFAULT '',                 -- id of its process, which has a server for each of its task types: host:pid:8 hexadecimal digits
    capabilities           VARCHAR(200) NOT NULL DEFAULT '',                 -- what its dealer offers that settings can contradict, such as Keyed,Cursored
    CONSTRAINT ck_schedule_server_register_time CHECK (register_time BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_server_heartbeat_time CHECK (heartbeat_time BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_server_beat_count CHECK (beat_count BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_server_judge_dead_interval_ms CHECK (judge_dead_interval_ms BETWEEN 0 AND 315360000000),
    CONSTRAINT ck_schedule_server_watching_since CHECK (watching_since BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_server_read_plan_version CHECK (read_plan_version BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_server_read_sum CHECK (read_sum BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_server_max_in_flight CHECK (max_in_flight BETWEEN 0 AND 1000000),
    CONSTRAINT ck_schedule_server_max_in_flight_target CHECK (max_in_flight_target BETWEEN 0 AND 1000000),
    CONSTRAINT ck_schedule_server_max_in_flight_version CHECK (max_in_flight_version BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_server_weight CHECK (weight BETWEEN 0 AND 1000),
    CONSTRAINT ck_schedule_server_planner_version CHECK (planner_version BETWEEN 1 AND 1000000),
    CONSTRAINT ck_schedule_server_last_fetch_time CHECK (last_fetch_time BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_server_next_run_start_time CHECK (next_run_start_time BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_server_next_run_end_time CHECK (next_run_end_time BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_server_oldest_in_hand_since CHECK (oldest_in_hand_since BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_server_last_error_at CHECK (last_error_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_server_failing_since CHECK (failing_since BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_server_pid CHECK (pid BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_server_thread_number CHECK (thread_number BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_server_state CHECK (state IN ('SERVING', 'STANDBY', 'PAUSED', 'DRAINING', 'LEAVING')),
    CONSTRAINT ck_schedule_server_fetch_count CHECK (fetch_count BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_server_fetch_item_count CHECK (fetch_item_count BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_server_success_count CHECK (success_count BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_server_failure_count CHECK (failure_count BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_server_skip_count CHECK (skip_count BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_server_execute_ms CHECK (execute_ms BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_server_in_hand CHECK (in_hand BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_server_failed_calls CHECK (failed_calls BETWEEN 0 AND 1000000000000000000),
    INDEX idx_schedule_server_task (task_type, own_sign, uuid)               -- the servers of a roster, in order
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- A number for each live server, which rises whenever its queues change.
CREATE TABLE IF NOT EXISTS schedule_server_version (
    task_type     VARCHAR(100) NOT NULL,                             -- task type
    own_sign      VARCHAR(50) NOT NULL DEFAULT 'BASE',               -- environment
    uuid          VARCHAR(150) NOT NULL,                             -- server
    queue_version BIGINT NOT NULL DEFAULT 0,                         -- rises with each change of the queues that the server owns or requests
    PRIMARY KEY (task_type, own_sign, uuid),
    CONSTRAINT ck_schedule_server_version_queue_version CHECK (queue_version BETWEEN 0 AND 1000000000000000000)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The servers that left or expired: their last rows, until the retention ends. No two servers ever have the same uuid.
CREATE TABLE IF NOT EXISTS schedule_server_history (
    uuid                   VARCHAR(150) NOT NULL PRIMARY KEY,                -- host:pid:8 hexadecimal digits
    task_type              VARCHAR(100) NOT NULL,                            -- task type that it serves
    own_sign               VARCHAR(50)  NOT NULL DEFAULT 'BASE',             -- environment
    ip                     VARCHAR(64)  NOT NULL DEFAULT '',                 -- address of the host
    host_name              VARCHAR(255) NOT NULL DEFAULT '',                 -- name of the host
    pid                    BIGINT       NOT NULL DEFAULT 0,                  -- process id
    thread_number          BIGINT       NOT NULL DEFAULT 0,                  -- number of its executors
    state                  VARCHAR(20)  NOT NULL DEFAULT 'SERVING',          -- its last state
    register_time          DATETIME(6)  NOT NULL,                            -- when it registered
    heartbeat_time         DATETIME(6)  NOT NULL,                            -- when its last heartbeat arrived
    beat_token             VARCHAR(64)  NOT NULL DEFAULT '',                 -- proves that a heartbeat comes from the same process
    beat_count             BIGINT       NOT NULL DEFAULT 0,                  -- number of heartbeats
    judge_dead_interval_ms BIGINT       NOT NULL DEFAULT 10000,              -- silence after which others expire it
    watching_since         DATETIME(6)  NULL,                                -- since when it has watched the others without a gap
    read_plan_version      BIGINT       NOT NULL DEFAULT 0,                  -- plan_version up to which it has read its queues
    read_sum               BIGINT       NOT NULL DEFAULT 0,                  -- checksum of what it has read, for the audit
    last_fetch_time        DATETIME(6)  NULL,                                -- when the last finished select began
    next_run_start_time    DATETIME(6)  NULL,                                -- when its next permit window begins, if there are windows
    next_run_end_time      DATETIME(6)  NULL,                                -- when its permit window ends, if there are windows
    fetch_count            BIGINT       NOT NULL DEFAULT 0,                  -- number of selects
    fetch_item_count       BIGINT       NOT NULL DEFAULT 0,                  -- number of selected items
    success_count          BIGINT       NOT NULL DEFAULT 0,                  -- number of items that succeeded
    failure_count          BIGINT       NOT NULL DEFAULT 0,                  -- number of items that failed, each failure counts
    skip_count             BIGINT       NOT NULL DEFAULT 0,                  -- number of selected items that were not executed
    execute_ms             BIGINT       NOT NULL DEFAULT 0,                  -- time spent in Execute, summed over all executors
    in_hand                BIGINT       NOT NULL DEFAULT 0,                  -- number of items in flight: selected and not finished
    oldest_in_hand_since   DATETIME(6)  NULL,                                -- when the oldest running call of the dealer began
    last_error             TEXT         NOT NULL DEFAULT (''),               -- last error of the dealer
    last_error_at          DATETIME(6)  NULL,                                -- when it happened, in the server's estimate of the database's clock
    failing_since          DATETIME(6)  NULL,                                -- when the first of failed_calls ended, if they are enough to say that its calls all fail
    failed_calls           BIGINT       NOT NULL DEFAULT 0,                  -- number of selects and batches that have failed since an item was last done
    library_version        VARCHAR(64)  NOT NULL DEFAULT '',                 -- version of Rota in the program
    labels                 TEXT         NOT NULL DEFAULT (''),               -- what it has, such as disk=ssd,zone=b
    hung_queues            MEDIUMTEXT   NULL,                                -- JSON list of the queues that it does not get, because calls of its process's former session are in flight for them, or NULL
    given_settings         TEXT         NULL,                                -- JSON object of the settings that the program sets itself, as text; NULL if unknown
    max_in_flight          BIGINT       NULL,                                -- most calls of Execute that it may have in flight, or NULL for no limit
    max_in_flight_target   BIGINT       NULL,                                -- what max_in_flight is to become, or NULL for no limit
    max_in_flight_version  BIGINT       NOT NULL DEFAULT 0,                  -- rises whenever a plan writes one of these two
    weight                 BIGINT       NOT NULL DEFAULT 1,                  -- part of the queues, in proportion to the weights of the others; 0 for none
    planner_version        BIGINT       NOT NULL DEFAULT 1,                  -- rules of the planner that its program knows
    witness                VARCHAR(160) NULL,                                -- lock file that its process holds: boot, name, device, inode; NULL for none
    name                   VARCHAR(100) NOT NULL DEFAULT '',                 -- name of its process, which a later process may have too; empty: none
    process                VARCHAR(150) NOT NULL DEFAULT '',                 -- id of its process, which has a server for each of its task types: host:pid:8 hexadecimal digits
    capabilities           VARCHAR(200) NOT NULL DEFAULT '',                 -- what its dealer offers that settings can contradict, such as Keyed,Cursored
    left_time              DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)), -- when the server left or was expired
    reason                 VARCHAR(20)  NOT NULL                             -- LEFT or EXPIRED
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The queues of a task type in an environment: the server that owns each, and the server that is to own it next.
CREATE TABLE IF NOT EXISTS schedule_queue (
    task_type       VARCHAR(100) NOT NULL,                            -- name of the task type
    own_sign        VARCHAR(50)  NOT NULL DEFAULT 'BASE',             -- environment
    queue_id        VARCHAR(150) NOT NULL,                            -- name of the queue: a number, or a text
    queue_index     BIGINT       NOT NULL,                            -- position in natural order, from 0
    queue_total     BIGINT       NULL,                                -- of a numbered queue: it has the items with mod(id, queue_total) = queue_index; NULL for a name
    cur_server      VARCHAR(150) NULL,                                -- server that owns the queue, or NULL
    req_server      VARCHAR(150) NULL,                                -- server that waits for the queue, or NULL
    epoch           BIGINT       NOT NULL DEFAULT 0,                  -- rises with each change of owner; the fence compares it
    plan_version    BIGINT       NOT NULL DEFAULT 0,                  -- plan_version of the lock row when cur_server or req_server was last written
    cur_since       DATETIME(6)  NULL,                                -- since when cur_server owns the queue
    req_since       DATETIME(6)  NULL,                                -- since when req_server waits
    queue_parameter TEXT         NOT NULL DEFAULT (''),               -- free text that each Select of this queue receives
    cursor_value    TEXT         NOT NULL DEFAULT (''),               -- how far a dealer with a cursor has read, in mode CONTINUOUS
    window_done_at  DATETIME(6)  NULL,                                -- start of the permit window in which the queue was found empty
    crash_count     BIGINT       NOT NULL DEFAULT 0,                  -- owners in a row that were expired before a page was executed
    failing_since   DATETIME(6)  NULL,                                -- since when all calls of the queue have failed, if that is long enough to be a problem; else NULL
    reserved_for    VARCHAR(100) NULL,                                -- name of the process that gets the queue back when it returns, or NULL
    reserved_until  DATETIME(6)  NULL,                                -- until when other servers do not get the queue
    waits_for       TEXT         NULL,                                -- why the queue has no owner, by the last plan: the rule that no server meets, or NULL
    division        VARCHAR(50)  NOT NULL DEFAULT '',                 -- which division of the items into queues the queue belongs to; another number of queues begins a new one
    gmt_created     DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)), -- when the row was inserted
    gmt_modified    DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)), -- when the row last changed
    CONSTRAINT ck_schedule_queue_queue_index CHECK (queue_index BETWEEN 0 AND 1000000000000),
    CONSTRAINT ck_schedule_queue_queue_total CHECK (queue_total BETWEEN 1 AND 1000000000),
    CONSTRAINT ck_schedule_queue_epoch CHECK (epoch BETWEEN 0 AND 1000000000000),
    CONSTRAINT ck_schedule_queue_plan_version CHECK (plan_version BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_queue_crash_count CHECK (crash_count BETWEEN 0 AND 1000000000000),
    CONSTRAINT ck_schedule_queue_cur_since CHECK (cur_since BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_queue_req_since CHECK (req_since BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_queue_reserved_until CHECK (reserved_until BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_queue_window_done_at CHECK (window_done_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_queue_failing_since CHECK (failing_since BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_queue_gmt_created CHECK (gmt_created BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_queue_gmt_modified CHECK (gmt_modified BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    PRIMARY KEY (task_type, own_sign, queue_id),
    INDEX idx_schedule_queue_cur_server (cur_server),                 -- the queues that a server owns
    INDEX idx_schedule_queue_req_server (req_server)                  -- the queues that a server waits for
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What operators set for single queues. It is not in the row of the queue, which the owner's transactions lock: an
-- operator who changes it would wait for these.
CREATE TABLE IF NOT EXISTS schedule_queue_setting (
    task_type       VARCHAR(100) NOT NULL,                -- name of the task type
    own_sign        VARCHAR(50)  NOT NULL DEFAULT 'BASE', -- environment
    queue_id        VARCHAR(150) NOT NULL,                -- the queue
    labels          TEXT         NOT NULL DEFAULT (''),   -- the labels that a server must have to own it, such as zone=b; empty: none
    rate_per_second DOUBLE       NULL,                    -- most items per second, 0 for no limit; NULL for queue_rate_per_second
    max_in_flight   BIGINT       NULL,                    -- most calls of Execute in flight, 0 for no limit; NULL for queue_max_in_flight
    weight          BIGINT       NULL,                    -- calls of Execute that it may start when it is its turn; NULL for 1
    CONSTRAINT ck_schedule_queue_setting_rate_per_second CHECK (rate_per_second BETWEEN 0 AND 1000000000),
    CONSTRAINT ck_schedule_queue_setting_max_in_flight CHECK (max_in_flight BETWEEN 0 AND 1000000),
    CONSTRAINT ck_schedule_queue_setting_weight CHECK (weight BETWEEN 1 AND 1000),
    PRIMARY KEY (task_type, own_sign, queue_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The databases apart from this one that hold the items of queues. The table rota_data of each has the same id, so that
-- a wrong database under the name of another one is refused.
CREATE TABLE IF NOT EXISTS schedule_data (
    own_sign    VARCHAR(50)  NOT NULL DEFAULT 'BASE',             -- environment
    name        VARCHAR(100) NOT NULL,                            -- name of the data database, as in schedule_task_type.data_database
    data_id     VARCHAR(50)  NOT NULL,                            -- id of the database, also in its table rota_data
    marked      BOOLEAN      NOT NULL DEFAULT FALSE,              -- the database has the id; from then on another one is refused
    address     TEXT         NOT NULL,                            -- URL without the password, of the worker that came first
    gmt_created DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)), -- when the row was inserted
    CONSTRAINT ck_schedule_data_marked CHECK (marked IN (0, 1)),
    CONSTRAINT ck_schedule_data_gmt_created CHECK (gmt_created BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    PRIMARY KEY (own_sign, name)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- How much work the queues have left, as their owners last counted it. No transaction of the roster touches it.
CREATE TABLE IF NOT EXISTS schedule_backlog (
    task_type   VARCHAR(100) NOT NULL,                -- name of the task type
    own_sign    VARCHAR(50)  NOT NULL DEFAULT 'BASE', -- environment
    queue_id    VARCHAR(150) NOT NULL,                -- the queue
    epoch       BIGINT       NOT NULL,                -- epoch of the owner that counted; a later one wins
    items       BIGINT       NOT NULL,                -- items that are left
    oldest_at   DATETIME(6)  NULL,                    -- time of the oldest of them, or NULL if there is none or the dealer does not tell
    measured_at DATETIME(6)  NOT NULL,                -- when they were counted
    took_ms     BIGINT       NOT NULL,                -- how long that took
    rate        DOUBLE       NULL,                    -- items per second by which they become more, or NULL if it was counted once
    trend       VARCHAR(20)  NOT NULL DEFAULT '',     -- EMPTY, DRAINING, STEADY, GROWING or STUCK; empty after one or two counts
    demand      DOUBLE       NULL,                    -- executors that the queue needs to keep up with what arrives, or NULL if no owner has counted it twice
    CONSTRAINT ck_schedule_backlog_epoch CHECK (epoch BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_backlog_items CHECK (items BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_backlog_took_ms CHECK (took_ms BETWEEN 0 AND 1000000000000),
    CONSTRAINT ck_schedule_backlog_rate CHECK (rate BETWEEN -1e18 AND 1e18),
    CONSTRAINT ck_schedule_backlog_demand CHECK (demand BETWEEN 0 AND 1e18),
    CONSTRAINT ck_schedule_backlog_oldest_at CHECK (oldest_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_backlog_measured_at CHECK (measured_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_backlog_trend CHECK (trend IN ('', 'EMPTY', 'DRAINING', 'STEADY', 'GROWING', 'STUCK')),
    PRIMARY KEY (task_type, own_sign, queue_id),
    INDEX idx_schedule_backlog_time (measured_at) -- retention
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The queues with the servers that own them and wait for them. Operators and the commands read it. Ages are in seconds.
-- SQL SECURITY INVOKER: the view must work after the account that migrated was dropped.
-- Servers are joined by their key alone: see the file for PostgreSQL.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW schedule_assignment AS
SELECT q.task_type, q.own_sign, q.queue_id, q.queue_index, q.queue_total,
       q.cur_server, c.host_name AS cur_host, c.pid AS cur_pid, c.state AS cur_state,
       ROUND(TIMESTAMPDIFF(MICROSECOND, c.heartbeat_time, UTC_TIMESTAMP(6)) / 1000000, 3) AS cur_heartbeat_age_s,
       q.req_server, r.host_name AS req_host,
       ROUND(TIMESTAMPDIFF(MICROSECOND, q.cur_since, UTC_TIMESTAMP(6)) / 1000000, 3) AS held_s,
       ROUND(TIMESTAMPDIFF(MICROSECOND, q.req_since, UTC_TIMESTAMP(6)) / 1000000, 3) AS requested_s,
       q.epoch, q.queue_parameter, q.cursor_value,
       CASE WHEN q.cur_server IS NULL AND q.reserved_until > UTC_TIMESTAMP(6) THEN 'RESERVED'
            WHEN q.cur_server IS NULL THEN 'UNASSIGNED'
            WHEN c.uuid IS NULL OR c.task_type <> q.task_type OR c.own_sign <> q.own_sign THEN 'ORPHAN'
            WHEN TIMESTAMPDIFF(MICROSECOND, c.heartbeat_time, UTC_TIMESTAMP(6)) / 1000 > c.judge_dead_interval_ms THEN 'OVERDUE'
            WHEN q.req_server IS NOT NULL THEN 'MOVING'
            ELSE 'HELD' END AS status,
       b.items AS backlog_items,
       ROUND(TIMESTAMPDIFF(MICROSECOND, b.oldest_at, UTC_TIMESTAMP(6)) / 1000000, 3) AS backlog_oldest_s,
       ROUND(TIMESTAMPDIFF(MICROSECOND, b.measured_at, UTC_TIMESTAMP(6)) / 1000000, 3) AS backlog_age_s,
       b.rate AS backlog_rate, b.trend AS backlog_trend,
       q.reserved_for, q.reserved_until, COALESCE(p.labels, '') AS pin,
       p.rate_per_second, p.max_in_flight, p.weight,
       CASE WHEN q.cur_server IS NULL THEN q.waits_for END AS waits_for,
       ROUND(TIMESTAMPDIFF(MICROSECOND, q.failing_since, UTC_TIMESTAMP(6)) / 1000000, 3) AS failing_s
  FROM schedule_queue q
  LEFT JOIN schedule_server c ON c.uuid = q.cur_server
  LEFT JOIN schedule_server r ON r.uuid = q.req_server
  LEFT JOIN schedule_queue_setting p ON p.task_type = q.task_type AND p.own_sign = q.own_sign AND p.queue_id = q.queue_id
  LEFT JOIN schedule_backlog b ON b.task_type = q.task_type AND b.own_sign = q.own_sign AND b.queue_id = q.queue_id;

-- The events: what happened to queues and servers, and what operators did. The transaction that changes something
-- also inserts the event.
CREATE TABLE IF NOT EXISTS schedule_event (
    event_id    BIGINT       NOT NULL AUTO_INCREMENT PRIMARY KEY,             -- rises; the order of the events
    event_time  DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)),             -- when it happened
    task_type   VARCHAR(100) NOT NULL,                                        -- name of the task type
    own_sign    VARCHAR(50)  NOT NULL DEFAULT 'BASE',                         -- environment
    queue_id    VARCHAR(150) NULL,                                            -- queue, or NULL if it concerns no single queue
    kind        VARCHAR(40)  NOT NULL,                                        -- such as GRANTED, TAKEN_OVER or EXPIRED
    from_server VARCHAR(150) NULL,                                            -- server that lost the queue, or that left or expired
    to_server   VARCHAR(150) NULL,                                            -- server that got the queue, or that joined
    epoch       BIGINT       NULL,                                            -- epoch of the queue after the event
    reason      TEXT         NOT NULL DEFAULT (''),                           -- why, for people
    actor       VARCHAR(255) NOT NULL DEFAULT '',                             -- server or operator that did it
    alert       VARCHAR(40)  NULL,                                            -- of an ALERT: the kind of the condition
    subject     VARCHAR(300) NULL,                                            -- of an ALERT: what it is about besides queue and server
    open_until  DATETIME(6)  NULL,                                            -- of an ALERT: when it has ended, if no server sees it again
    INDEX idx_schedule_event_queue (task_type, own_sign, queue_id, event_id), -- the events of one queue
    INDEX idx_schedule_event_time (event_time),                               -- retention
    INDEX idx_schedule_event_kind (kind, own_sign, event_id)                  -- lists of a rare kind
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The items that have failed and have not succeeded since. An item that never fails has no row.
CREATE TABLE IF NOT EXISTS schedule_failed_item (
    task_type         VARCHAR(100) NOT NULL,                            -- name of the task type
    own_sign          VARCHAR(50)  NOT NULL DEFAULT 'BASE',             -- environment
    item_hash         VARCHAR(64)  NOT NULL,                            -- SHA-256 of the key, in hexadecimal: it has one length
    item_key          MEDIUMTEXT   NOT NULL,                            -- key of the item, from the dealer
    order_key         MEDIUMTEXT   NOT NULL DEFAULT (''),               -- its order key, from the dealer; empty if it has none
    queue_id          VARCHAR(150) NOT NULL,                            -- queue that had the item when it last failed
    partition_version BIGINT       NOT NULL DEFAULT 0,                  -- the one of the lock row when this queue was granted
    state             VARCHAR(20)  NOT NULL DEFAULT 'RETRY',            -- RETRY, STARTED or DEAD
    attempts          BIGINT       NOT NULL DEFAULT 0,                  -- number of failures
    last_error        TEXT         NOT NULL DEFAULT (''),               -- last error
    first_failed_at   DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)), -- when it first failed
    next_attempt_at   DATETIME(6)  NULL,                                -- when it may be tried again; in state DEAD, when it died
    CONSTRAINT ck_schedule_failed_item_partition_version CHECK (partition_version BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_failed_item_attempts CHECK (attempts BETWEEN 0 AND 1000000000000),
    CONSTRAINT ck_schedule_failed_item_first_failed_at CHECK (first_failed_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_failed_item_next_attempt_at CHECK (next_attempt_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_failed_item_state CHECK (state IN ('RETRY', 'STARTED', 'DEAD')),
    PRIMARY KEY (task_type, own_sign, item_hash),
    INDEX idx_schedule_failed_item_queue (task_type, own_sign, partition_version, queue_id, state), -- the failed items of a queue
    INDEX idx_schedule_failed_item_time (next_attempt_at)                                -- retention
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The triggers, which start runs. A slot is a moment at which a trigger is due.
CREATE TABLE IF NOT EXISTS schedule_trigger (
    own_sign         VARCHAR(50)  NOT NULL DEFAULT 'BASE',           -- environment
    name             VARCHAR(150) NOT NULL,                          -- name of the trigger
    trigger_id       VARCHAR(36)  NOT NULL,                          -- derived from the name, so that a trigger that is created again fires no slot twice
    target           VARCHAR(100) NOT NULL,                          -- task type of mode RUN
    kind             VARCHAR(20)  NOT NULL,                          -- CRON, EVERY or ONCE
    expression       VARCHAR(255) NOT NULL,                          -- a cron expression with seconds, a duration such as 5m, or a time
    time_zone        VARCHAR(64)  NOT NULL DEFAULT 'UTC',            -- time zone of CRON
    start_at         DATETIME(6)  NULL,                              -- first permitted slot; EVERY counts from it
    end_at           DATETIME(6)  NULL,                              -- last permitted slot
    max_fires        BIGINT       NOT NULL DEFAULT 0,                -- slots to fire before it is DONE, 0 for no limit
    fires            BIGINT       NOT NULL DEFAULT 0,                -- slots that fired
    next_fire_at     DATETIME(6)  NULL,                              -- next slot, or NULL if there is none
    prev_fire_at     DATETIME(6)  NULL,                              -- last slot that fired
    status           VARCHAR(20)  NOT NULL DEFAULT 'ACTIVE',         -- ACTIVE, PAUSED, DONE or ERROR
    misfire          VARCHAR(20)  NOT NULL DEFAULT 'ONE',            -- late slots: ONE, SKIP or ALL
    misfire_after_ms BIGINT       NOT NULL DEFAULT 60000,            -- age from which a slot is late
    catchup_max      BIGINT       NOT NULL DEFAULT 100,              -- most late slots that ALL fires at once
    jitter_ms        BIGINT       NOT NULL DEFAULT 0,                -- it fires later than its slots by a constant time below this
    excluded_days    TEXT         NOT NULL DEFAULT (''),             -- days without slots of CRON, such as 2026-04-03,12-25
    overlap          VARCHAR(20)  NOT NULL DEFAULT 'SKIP',           -- while a run of it is open: SKIP or WAIT
    priority         BIGINT       NOT NULL DEFAULT 0,                -- priority of the runs, the highest first
    params           TEXT         NOT NULL DEFAULT (''),             -- parameters of the runs
    missed           BIGINT       NOT NULL DEFAULT 0,                -- slots that fired nothing and never will
    missed_at        DATETIME(6)  NULL,                              -- newest of these slots, or NULL if there is none or an operator has acknowledged them
    skipped          BIGINT       NOT NULL DEFAULT 0,                -- slots in a row whose runs are SKIPPED, since the last slot that fired
    skipped_since    DATETIME(6)  NULL,                              -- first of these slots, or NULL if there is none or an operator has acknowledged them
    message          TEXT         NOT NULL DEFAULT (''),             -- why it is in ERROR, for people
    version          BIGINT       NOT NULL DEFAULT 0,                -- rises with each change; a change compares it first
    CONSTRAINT ck_schedule_trigger_start_at CHECK (start_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_trigger_end_at CHECK (end_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_trigger_max_fires CHECK (max_fires BETWEEN 0 AND 1000000000000),
    CONSTRAINT ck_schedule_trigger_fires CHECK (fires BETWEEN 0 AND 1000000000000),
    CONSTRAINT ck_schedule_trigger_next_fire_at CHECK (next_fire_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_trigger_prev_fire_at CHECK (prev_fire_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_trigger_misfire_after_ms CHECK (misfire_after_ms BETWEEN 0 AND 315360000000),
    CONSTRAINT ck_schedule_trigger_jitter_ms CHECK (jitter_ms BETWEEN 0 AND 315360000000),
    CONSTRAINT ck_schedule_trigger_catchup_max CHECK (catchup_max BETWEEN 0 AND 1000000),
    CONSTRAINT ck_schedule_trigger_missed CHECK (missed BETWEEN 0 AND 1000000000000),
    CONSTRAINT ck_schedule_trigger_missed_at CHECK (missed_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_trigger_skipped CHECK (skipped BETWEEN 0 AND 1000000000000),
    CONSTRAINT ck_schedule_trigger_skipped_since CHECK (skipped_since BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_trigger_version CHECK (version BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_trigger_kind CHECK (kind IN ('CRON', 'EVERY', 'ONCE')),
    CONSTRAINT ck_schedule_trigger_status CHECK (status IN ('ACTIVE', 'PAUSED', 'DONE', 'ERROR')),
    CONSTRAINT ck_schedule_trigger_misfire CHECK (misfire IN ('ONE', 'SKIP', 'ALL')),
    CONSTRAINT ck_schedule_trigger_overlap CHECK (overlap IN ('SKIP', 'WAIT')),
    CONSTRAINT ck_schedule_trigger_priority CHECK (priority BETWEEN -1000000000000000000 AND 1000000000000000000),
    PRIMARY KEY (own_sign, name),
    INDEX idx_schedule_trigger_due (own_sign, status, next_fire_at)  -- the triggers that are due
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The static dependencies: runs of upstream create a run of task_type, which waits for them.
CREATE TABLE IF NOT EXISTS schedule_task_after (
    task_type VARCHAR(100) NOT NULL,                   -- task type that waits
    upstream  VARCHAR(100) NOT NULL,                   -- task type that it waits for
    rule      VARCHAR(20)  NOT NULL DEFAULT 'SUCCESS', -- SUCCESS or FINISHED
    any_of    BOOLEAN      NOT NULL DEFAULT FALSE,     -- each run of an upstream creates a run; otherwise all of one slot or key create one
    CONSTRAINT ck_schedule_task_after_rule CHECK (rule IN ('SUCCESS', 'FINISHED')),
    CONSTRAINT ck_schedule_task_after_any_of CHECK (any_of IN (0, 1)),
    PRIMARY KEY (task_type, upstream),
    INDEX idx_schedule_task_after_upstream (upstream)  -- the task types that wait for one
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The runs. A run is one sweep of all queues of a task type of mode RUN.
CREATE TABLE IF NOT EXISTS schedule_run (
    run_id           VARCHAR(36)  NOT NULL PRIMARY KEY,                      -- UUIDv7 by the database's clock: sorts by time
    task_type        VARCHAR(100) NOT NULL,                                  -- name of the task type
    own_sign         VARCHAR(50)  NOT NULL DEFAULT 'BASE',                   -- environment
    run_key          VARCHAR(255) NOT NULL,                                  -- a task type has one run per key
    root_run_id      VARCHAR(36)  NOT NULL,                                  -- run that this one was created with, or its own run_id
    graph_name       VARCHAR(150) NOT NULL DEFAULT '',                       -- name of its graph, or empty
    trigger_name     VARCHAR(150) NULL,                                      -- trigger that fired it or its root, or NULL
    backfill_id      VARCHAR(36)  NULL,                                      -- backfill that made it or its root, or NULL
    scheduled_at     DATETIME(6)  NOT NULL,                                  -- slot of the trigger, or when it was submitted
    slot_end_at      DATETIME(6)  NULL,                                      -- next slot of the trigger, or NULL
    time_zone        VARCHAR(64)  NOT NULL DEFAULT 'UTC',                    -- time zone of the trigger
    state            VARCHAR(20)  NOT NULL,                                  -- WAITING, READY, RUNNING, SUCCESS, FAILED, DEPENDENT_FAILED, CANCELLED or SKIPPED
    paused           BOOLEAN      NOT NULL DEFAULT FALSE,                    -- it is not opened, and its queues are not claimed
    cancel_requested BOOLEAN      NOT NULL DEFAULT FALSE,                    -- an operator has asked to cancel it
    priority         BIGINT       NOT NULL DEFAULT 0,                        -- the highest is opened first
    params           TEXT         NOT NULL DEFAULT (''),                     -- parameters that each Select receives
    trace_parent     VARCHAR(255) NOT NULL DEFAULT '',                       -- traceparent of the caller that submitted it or its root, by W3C Trace Context, or empty
    not_before       DATETIME(6)  NULL,                                      -- it is not opened before, or NULL
    end_before       DATETIME(6)  NULL,                                      -- it fails if it has not ended by then, or NULL
    max_attempts     BIGINT       NOT NULL DEFAULT 0,                        -- attempts of each of its queues, 0 for queue_max_attempts of the task type
    queue_total      BIGINT       NOT NULL DEFAULT 0,                        -- number of queues when it was opened
    items_done       BIGINT       NOT NULL DEFAULT 0,                        -- items that succeeded in all queues, once it has ended
    items_failed     BIGINT       NOT NULL DEFAULT 0,                        -- items that failed in all queues, once it has ended
    items_at_least   BOOLEAN      NOT NULL DEFAULT FALSE,                    -- items_done and items_failed are lower bounds
    message          TEXT         NOT NULL DEFAULT (''),                     -- why it is in its state, for people
    created_at       DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)),       -- when the row was inserted
    waiting_since    DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)),       -- when it was made, reopened, opened or resumed, or became READY, whichever is last
    started_at       DATETIME(6)  NULL,                                      -- when it was opened; newer rows of the user belong to the next run
    deadline_at      DATETIME(6)  NULL,                                      -- when it fails by itself because it has not started or ended; never NULL in state RUNNING
    finished_at      DATETIME(6)  NULL,                                      -- when it ended
    failed_at        DATETIME(6)  NULL,                                      -- when it last became FAILED or DEPENDENT_FAILED
    alerted_at       DATETIME(6)  NULL,                                      -- when a server raised the alert of that failure
    acked_at         DATETIME(6)  NULL,                                      -- when an operator acknowledged its failure
    acked_by         VARCHAR(255) NOT NULL DEFAULT '',                       -- operator who did
    version          BIGINT       NOT NULL DEFAULT 0,                        -- rises when a transaction locks the run
    CONSTRAINT ck_schedule_run_scheduled_at CHECK (scheduled_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_run_slot_end_at CHECK (slot_end_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_run_queue_total CHECK (queue_total BETWEEN 0 AND 100000),
    CONSTRAINT ck_schedule_run_created_at CHECK (created_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_run_waiting_since CHECK (waiting_since BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_run_started_at CHECK (started_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_run_deadline_at CHECK (deadline_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_run_finished_at CHECK (finished_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_run_not_before CHECK (not_before BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_run_end_before CHECK (end_before BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_run_max_attempts CHECK (max_attempts BETWEEN 0 AND 100000),
    CONSTRAINT ck_schedule_run_failed_at CHECK (failed_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_run_alerted_at CHECK (alerted_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_run_acked_at CHECK (acked_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_run_version CHECK (version BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_run_state CHECK (state IN ('WAITING', 'READY', 'RUNNING', 'SUCCESS', 'FAILED', 'DEPENDENT_FAILED', 'CANCELLED', 'SKIPPED')),
    CONSTRAINT ck_schedule_run_paused CHECK (paused IN (0, 1)),
    CONSTRAINT ck_schedule_run_cancel_requested CHECK (cancel_requested IN (0, 1)),
    CONSTRAINT ck_schedule_run_priority CHECK (priority BETWEEN -1000000000000000000 AND 1000000000000000000),
    CONSTRAINT ck_schedule_run_items_done CHECK (items_done BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_run_items_failed CHECK (items_failed BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_run_items_at_least CHECK (items_at_least IN (0, 1)),
    UNIQUE KEY uq_schedule_run_key (task_type, own_sign, run_key),           -- one run per key
    INDEX idx_schedule_run_state (task_type, own_sign, state, scheduled_at), -- the open runs of a task type
    INDEX idx_schedule_run_trigger (task_type, own_sign, trigger_name, state, scheduled_at), -- the successes of a trigger after a failure
    INDEX idx_schedule_run_backfill (backfill_id, state),                    -- the runs of a backfill
    INDEX idx_schedule_run_graph (graph_name, run_id)                        -- the newest run of the graphs with a name
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The queues that a run sweeps, as they were when the run was opened.
CREATE TABLE IF NOT EXISTS schedule_run_queue (
    run_id          VARCHAR(36)  NOT NULL,                     -- run
    queue_id        VARCHAR(150) NOT NULL,                     -- queue
    queue_total     BIGINT       NULL,                         -- queue_total of the queue when the run was opened
    state           VARCHAR(20)  NOT NULL DEFAULT 'PENDING',   -- PENDING, RUNNING, DONE, FAILED or CANCELLED
    server          VARCHAR(150) NULL,                         -- server that last claimed it
    epoch           BIGINT       NOT NULL DEFAULT 0,           -- epoch of the queue at that claim
    attempt         BIGINT       NOT NULL DEFAULT 0,           -- number of the sweep, from 1
    recoveries      BIGINT       NOT NULL DEFAULT 0,           -- take-overs in a row without progress
    next_attempt_at DATETIME(6)  NULL,                         -- when it may be claimed again after a failure
    cursor_value    TEXT         NOT NULL DEFAULT (''),        -- how far a dealer with a cursor has read in this run
    items_done      BIGINT       NOT NULL DEFAULT 0,           -- items that succeeded
    items_failed    BIGINT       NOT NULL DEFAULT 0,           -- items that failed
    items_at_least  BOOLEAN      NOT NULL DEFAULT FALSE,       -- items_done and items_failed are lower bounds
    last_error      TEXT         NOT NULL DEFAULT (''),        -- last error
    started_at      DATETIME(6)  NULL,                         -- when it was first claimed
    progress_at     DATETIME(6)  NULL,                         -- when its progress was last saved
    finished_at     DATETIME(6)  NULL,                         -- when it ended
    CONSTRAINT ck_schedule_run_queue_epoch CHECK (epoch BETWEEN 0 AND 1000000000000),
    CONSTRAINT ck_schedule_run_queue_queue_total CHECK (queue_total BETWEEN 1 AND 1000000000),
    CONSTRAINT ck_schedule_run_queue_attempt CHECK (attempt BETWEEN 0 AND 1000000000000),
    CONSTRAINT ck_schedule_run_queue_recoveries CHECK (recoveries BETWEEN 0 AND 1000000000000),
    CONSTRAINT ck_schedule_run_queue_next_attempt_at CHECK (next_attempt_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_run_queue_started_at CHECK (started_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_run_queue_progress_at CHECK (progress_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_run_queue_finished_at CHECK (finished_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_run_queue_state CHECK (state IN ('PENDING', 'RUNNING', 'DONE', 'FAILED', 'CANCELLED')),
    CONSTRAINT ck_schedule_run_queue_items_done CHECK (items_done BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_run_queue_items_failed CHECK (items_failed BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_run_queue_items_at_least CHECK (items_at_least IN (0, 1)),
    PRIMARY KEY (run_id, queue_id),
    INDEX idx_schedule_run_queue_due (state, next_attempt_at)  -- the queues to claim
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The items that failed in the sweep of a queue of a run, at most 100 per queue.
CREATE TABLE IF NOT EXISTS schedule_run_item (
    run_id     VARCHAR(36)  NOT NULL,              -- run
    queue_id   VARCHAR(150) NOT NULL,              -- queue
    item_no    BIGINT       NOT NULL,              -- order of the failures of the queue
    item_key   VARCHAR(255) NOT NULL,              -- key of the item, from the dealer, cut to 255 characters
    attempt    BIGINT       NOT NULL,              -- attempt of the queue in which it failed last; 0 before the last rerun
    last_error TEXT         NOT NULL DEFAULT (''), -- last error
    failed_at  DATETIME(6)  NOT NULL,              -- when it failed last
    CONSTRAINT ck_schedule_run_item_item_no CHECK (item_no BETWEEN 0 AND 1000000000000),
    CONSTRAINT ck_schedule_run_item_attempt CHECK (attempt BETWEEN 0 AND 1000000000000),
    CONSTRAINT ck_schedule_run_item_failed_at CHECK (failed_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    PRIMARY KEY (run_id, queue_id, item_no)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The runs that a run waits for, as they were when the run was created.
CREATE TABLE IF NOT EXISTS schedule_run_dep (
    run_id          VARCHAR(36) NOT NULL,                   -- run that waits
    upstream_run_id VARCHAR(36) NOT NULL,                   -- run that it waits for
    rule            VARCHAR(20) NOT NULL DEFAULT 'SUCCESS', -- SUCCESS or FINISHED
    CONSTRAINT ck_schedule_run_dep_rule CHECK (rule IN ('SUCCESS', 'FINISHED')),
    PRIMARY KEY (run_id, upstream_run_id),
    INDEX idx_schedule_run_dep_upstream (upstream_run_id)   -- the runs that wait for one
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The runs that transactions of users have submitted, until a tick makes them.
CREATE TABLE IF NOT EXISTS schedule_submission (
    task_type VARCHAR(100) NOT NULL,                -- name of the task type
    own_sign  VARCHAR(50)  NOT NULL DEFAULT 'BASE', -- environment
    run_key   VARCHAR(255) NOT NULL,                -- key of the run
    run_id    VARCHAR(36)  NOT NULL,                -- id that the run gets
    request   MEDIUMTEXT   NOT NULL,                -- JSON object: parameters, priority, limits and upstreams of the run
    PRIMARY KEY (task_type, own_sign, run_key)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The backfills. A backfill makes a run for each slot of a trigger in a range of time.
CREATE TABLE IF NOT EXISTS schedule_backfill (
    backfill_id   VARCHAR(36)  NOT NULL PRIMARY KEY,                -- UUIDv7 by the database's clock: sorts by time
    task_type     VARCHAR(100) NOT NULL,                            -- name of the task type
    own_sign      VARCHAR(50)  NOT NULL DEFAULT 'BASE',             -- environment
    trigger_name  VARCHAR(150) NOT NULL,                            -- trigger whose slots get runs
    kind          VARCHAR(20)  NOT NULL,                            -- of the trigger at the start: CRON or EVERY
    expression    VARCHAR(255) NOT NULL,                            -- a cron expression with seconds, or a duration such as 5m
    time_zone     VARCHAR(64)  NOT NULL DEFAULT 'UTC',              -- time zone of CRON
    start_at      DATETIME(6)  NULL,                                -- first permitted slot; EVERY counts from it
    excluded_days TEXT         NOT NULL DEFAULT (''),               -- days without slots of CRON, such as 2026-04-03,12-25
    params        TEXT         NOT NULL DEFAULT (''),               -- parameters of the runs
    priority      BIGINT       NOT NULL DEFAULT 0,                  -- priority of the runs, the highest first
    from_at       DATETIME(6)  NOT NULL,                            -- no slot is earlier
    to_at         DATETIME(6)  NOT NULL,                            -- all slots are earlier
    parallel      BIGINT       NOT NULL DEFAULT 1,                  -- most slots whose runs are open at a time
    rerun_failed  BOOLEAN      NOT NULL DEFAULT FALSE,              -- failed and cancelled runs of slots are rerun
    dependants    BOOLEAN      NOT NULL DEFAULT TRUE,               -- the runs have dependants
    newest_first  BOOLEAN      NOT NULL DEFAULT FALSE,              -- the newest slot comes first
    state         VARCHAR(20)  NOT NULL DEFAULT 'RUNNING',          -- RUNNING, SUCCESS, FAILED or CANCELLED
    paused        BOOLEAN      NOT NULL DEFAULT FALSE,              -- no further slot gets a run
    next_slot_at  DATETIME(6)  NULL,                                -- next slot to look at, or NULL if there is none
    slots_total   BIGINT       NOT NULL DEFAULT 0,                  -- slots in the range
    slots_made    BIGINT       NOT NULL DEFAULT 0,                  -- slots whose run it has made or reopened
    slots_kept    BIGINT       NOT NULL DEFAULT 0,                  -- slots whose run it has left alone
    message       TEXT         NOT NULL DEFAULT (''),               -- why it is in its state, for people
    actor         VARCHAR(255) NOT NULL DEFAULT '',                 -- operator that started it
    created_at    DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)), -- when it was started
    ended_at      DATETIME(6)  NULL,                                -- when it ended
    version       BIGINT       NOT NULL DEFAULT 0,                  -- rises with each change; a change compares it first
    CONSTRAINT ck_schedule_backfill_start_at CHECK (start_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_backfill_from_at CHECK (from_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_backfill_to_at CHECK (to_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_backfill_parallel CHECK (parallel BETWEEN 1 AND 100),
    CONSTRAINT ck_schedule_backfill_next_slot_at CHECK (next_slot_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_backfill_slots_total CHECK (slots_total BETWEEN 0 AND 1000000),
    CONSTRAINT ck_schedule_backfill_slots_made CHECK (slots_made BETWEEN 0 AND 1000000),
    CONSTRAINT ck_schedule_backfill_slots_kept CHECK (slots_kept BETWEEN 0 AND 1000000),
    CONSTRAINT ck_schedule_backfill_created_at CHECK (created_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_backfill_ended_at CHECK (ended_at BETWEEN '1000-01-01' AND '9999-12-31 23:59:59.999999'),
    CONSTRAINT ck_schedule_backfill_version CHECK (version BETWEEN 0 AND 1000000000000000000),
    CONSTRAINT ck_schedule_backfill_kind CHECK (kind IN ('CRON', 'EVERY')),
    CONSTRAINT ck_schedule_backfill_priority CHECK (priority BETWEEN -1000000000000000000 AND 1000000000000000000),
    CONSTRAINT ck_schedule_backfill_rerun_failed CHECK (rerun_failed IN (0, 1)),
    CONSTRAINT ck_schedule_backfill_dependants CHECK (dependants IN (0, 1)),
    CONSTRAINT ck_schedule_backfill_newest_first CHECK (newest_first IN (0, 1)),
    CONSTRAINT ck_schedule_backfill_state CHECK (state IN ('RUNNING', 'SUCCESS', 'FAILED', 'CANCELLED')),
    CONSTRAINT ck_schedule_backfill_paused CHECK (paused IN (0, 1)),
    INDEX idx_schedule_backfill_state (task_type, own_sign, state) -- the open backfills of a task type
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
