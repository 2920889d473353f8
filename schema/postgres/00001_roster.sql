-- The roster: task types, their lock rows, servers, queues, events and failed items.
-- Oldest companion: the library version that brings this migration is the first.
--
-- Identifiers are COLLATE "C": their order is the order of their bytes, here as in every other dialect,
-- and with it the order in which rows are locked. Times are UTC with microseconds, *_ms are milliseconds.
-- NULL means that there is none (no owner, no such moment yet), never "empty".

-- +goose Up
CREATE TABLE schedule_task_type (
    task_type                   text COLLATE "C"  NOT NULL PRIMARY KEY,
    mode                        text              NOT NULL DEFAULT 'CONTINUOUS', -- or RUN
    processor_type              text              NOT NULL DEFAULT 'SLEEP',      -- or NOTSLEEP
    heartbeat_interval_ms       bigint            NOT NULL DEFAULT 2000,
    judge_dead_interval_ms      bigint            NOT NULL DEFAULT 10000,
    thread_number               bigint            NOT NULL DEFAULT 5,
    fetch_number                bigint            NOT NULL DEFAULT 500,
    execute_number              bigint            NOT NULL DEFAULT 1,
    sleep_time_nodata_ms        bigint            NOT NULL DEFAULT 500,
    sleep_time_interval_ms      bigint            NOT NULL DEFAULT 0,
    permit_run_start_time       text              NOT NULL DEFAULT '',
    permit_run_end_time         text              NOT NULL DEFAULT '',
    time_zone                   text              NOT NULL DEFAULT 'UTC',
    task_parameter              text              NOT NULL DEFAULT '',
    max_queues_per_server       bigint            NOT NULL DEFAULT 0,            -- 0: no cap
    rate_per_second             double precision  NOT NULL DEFAULT 0,            -- 0: no limit
    batch_timeout_ms            bigint            NOT NULL DEFAULT 0,            -- 0: none
    drain_timeout_ms            bigint            NOT NULL DEFAULT 30000,
    stall_after_ms              bigint            NOT NULL DEFAULT 300000,
    item_max_attempts           bigint            NOT NULL DEFAULT 25,
    item_retry_ms               bigint            NOT NULL DEFAULT 1000,
    item_retry_max_ms           bigint            NOT NULL DEFAULT 300000,
    queue_max_attempts          bigint            NOT NULL DEFAULT 3,
    queue_retry_ms              bigint            NOT NULL DEFAULT 30000,
    max_recoveries              bigint            NOT NULL DEFAULT 5,
    run_timeout_ms              bigint            NOT NULL DEFAULT 86400000,
    expire_own_sign_interval_ms bigint            NOT NULL DEFAULT 86400000,
    version                     bigint            NOT NULL DEFAULT 0,
    gmt_created                 timestamptz(6)    NOT NULL DEFAULT clock_timestamp(),
    gmt_modified                timestamptz(6)    NOT NULL DEFAULT clock_timestamp()
);

-- The lock row of a task type and own_sign. Written by every change of ownership, never deleted.
CREATE TABLE schedule_task_running (
    task_type          text COLLATE "C" NOT NULL,
    own_sign           text COLLATE "C" NOT NULL DEFAULT 'BASE',
    paused             boolean          NOT NULL DEFAULT FALSE,
    queue_total        bigint           NOT NULL DEFAULT 0,
    requested_total    bigint, -- another number of queues that waits for everybody's drain
    partition_version  bigint           NOT NULL DEFAULT 0,
    membership_version bigint           NOT NULL DEFAULT 0,
    planned_version    bigint           NOT NULL DEFAULT 0,
    plan_version       bigint           NOT NULL DEFAULT 0,
    epoch_high         bigint           NOT NULL DEFAULT 0, -- no epoch above it was ever used
    watching_since     timestamptz(6),
    audited_at         timestamptz(6),
    last_assign_time   timestamptz(6),
    last_assign_server text COLLATE "C",
    version            bigint           NOT NULL DEFAULT 0,
    PRIMARY KEY (task_type, own_sign)
) WITH (fillfactor = 50);

-- heartbeat_time has no index on purpose: a heartbeat that changes no indexed column, on a page with room,
-- is a HOT update, which leaves the indexes alone and needs no vacuum. A task type has few servers.
CREATE TABLE schedule_server (
    uuid                   text COLLATE "C" NOT NULL PRIMARY KEY, -- host:pid:8hex
    task_type              text COLLATE "C" NOT NULL,
    own_sign               text COLLATE "C" NOT NULL DEFAULT 'BASE',
    ip                     text             NOT NULL DEFAULT '',
    host_name              text             NOT NULL DEFAULT '',
    pid                    bigint           NOT NULL DEFAULT 0,
    thread_number          bigint           NOT NULL DEFAULT 0,
    state                  text             NOT NULL DEFAULT 'SERVING', -- STANDBY, PAUSED, DRAINING
    register_time          timestamptz(6)   NOT NULL DEFAULT clock_timestamp(),
    heartbeat_time         timestamptz(6)   NOT NULL DEFAULT clock_timestamp(),
    beat_token             text COLLATE "C" NOT NULL DEFAULT '',
    beat_count             bigint           NOT NULL DEFAULT 0,
    judge_dead_interval_ms bigint           NOT NULL DEFAULT 10000,
    watching_since         timestamptz(6),
    drained_partition      bigint           NOT NULL DEFAULT 0,
    last_fetch_time        timestamptz(6),
    next_run_start_time    timestamptz(6),
    next_run_end_time      timestamptz(6),
    fetch_count            bigint           NOT NULL DEFAULT 0,
    fetch_item_count       bigint           NOT NULL DEFAULT 0,
    success_count          bigint           NOT NULL DEFAULT 0,
    failure_count          bigint           NOT NULL DEFAULT 0,
    skip_count             bigint           NOT NULL DEFAULT 0,
    execute_ms             bigint           NOT NULL DEFAULT 0,
    in_hand                bigint           NOT NULL DEFAULT 0,
    oldest_in_hand_since   timestamptz(6),
    dealinfo_desc          text             NOT NULL DEFAULT '',
    last_error             text             NOT NULL DEFAULT '',
    library_version        text             NOT NULL DEFAULT '',
    labels                 text             NOT NULL DEFAULT ''
) WITH (fillfactor = 50);
CREATE INDEX idx_schedule_server_task ON schedule_server (task_type, own_sign);

-- A uuid lives once, so it is gone once.
CREATE TABLE schedule_server_history (
    uuid                   text COLLATE "C" NOT NULL PRIMARY KEY,
    task_type              text COLLATE "C" NOT NULL,
    own_sign               text COLLATE "C" NOT NULL DEFAULT 'BASE',
    ip                     text             NOT NULL DEFAULT '',
    host_name              text             NOT NULL DEFAULT '',
    pid                    bigint           NOT NULL DEFAULT 0,
    thread_number          bigint           NOT NULL DEFAULT 0,
    state                  text             NOT NULL DEFAULT 'SERVING', -- its last
    register_time          timestamptz(6)   NOT NULL,
    heartbeat_time         timestamptz(6)   NOT NULL,
    beat_token             text COLLATE "C" NOT NULL DEFAULT '',
    beat_count             bigint           NOT NULL DEFAULT 0,
    judge_dead_interval_ms bigint           NOT NULL DEFAULT 10000,
    watching_since         timestamptz(6),
    drained_partition      bigint           NOT NULL DEFAULT 0,
    last_fetch_time        timestamptz(6),
    next_run_start_time    timestamptz(6),
    next_run_end_time      timestamptz(6),
    fetch_count            bigint           NOT NULL DEFAULT 0,
    fetch_item_count       bigint           NOT NULL DEFAULT 0,
    success_count          bigint           NOT NULL DEFAULT 0,
    failure_count          bigint           NOT NULL DEFAULT 0,
    skip_count             bigint           NOT NULL DEFAULT 0,
    execute_ms             bigint           NOT NULL DEFAULT 0,
    in_hand                bigint           NOT NULL DEFAULT 0,
    oldest_in_hand_since   timestamptz(6),
    dealinfo_desc          text             NOT NULL DEFAULT '',
    last_error             text             NOT NULL DEFAULT '',
    library_version        text             NOT NULL DEFAULT '',
    labels                 text             NOT NULL DEFAULT '',
    left_time              timestamptz(6)   NOT NULL DEFAULT clock_timestamp(),
    reason                 text             NOT NULL -- LEFT, EXPIRED, FENCED
);

CREATE TABLE schedule_queue (
    task_type       text COLLATE "C" NOT NULL,
    own_sign        text COLLATE "C" NOT NULL DEFAULT 'BASE',
    queue_id        text COLLATE "C" NOT NULL,
    queue_index     bigint           NOT NULL,
    cur_server      text COLLATE "C",
    req_server      text COLLATE "C",
    epoch           bigint           NOT NULL DEFAULT 0,
    cur_since       timestamptz(6),
    req_since       timestamptz(6),
    queue_parameter text             NOT NULL DEFAULT '',
    cursor_value    text             NOT NULL DEFAULT '',
    gmt_created     timestamptz(6)   NOT NULL DEFAULT clock_timestamp(),
    gmt_modified    timestamptz(6)   NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (task_type, own_sign, queue_id)
);
CREATE INDEX idx_schedule_queue_cur_server ON schedule_queue (cur_server);
CREATE INDEX idx_schedule_queue_req_server ON schedule_queue (req_server);

CREATE TABLE schedule_event (
    event_id    bigint           GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    event_time  timestamptz(6)   NOT NULL DEFAULT clock_timestamp(),
    task_type   text COLLATE "C" NOT NULL,
    own_sign    text COLLATE "C" NOT NULL DEFAULT 'BASE',
    queue_id    text COLLATE "C",
    kind        text             NOT NULL,
    from_server text COLLATE "C",
    to_server   text COLLATE "C",
    epoch       bigint,
    reason      text             NOT NULL DEFAULT '',
    actor       text             NOT NULL DEFAULT ''
);
CREATE INDEX idx_schedule_event_queue ON schedule_event (task_type, own_sign, queue_id, event_id);
CREATE INDEX idx_schedule_event_time ON schedule_event (event_time);

CREATE TABLE schedule_failed_item (
    task_type       text COLLATE "C" NOT NULL,
    own_sign        text COLLATE "C" NOT NULL DEFAULT 'BASE',
    item_key        text COLLATE "C" NOT NULL,
    queue_id        text COLLATE "C" NOT NULL,
    state           text             NOT NULL DEFAULT 'RETRY', -- or DEAD
    attempts        bigint           NOT NULL DEFAULT 0,
    last_error      text             NOT NULL DEFAULT '',
    first_failed_at timestamptz(6)   NOT NULL DEFAULT clock_timestamp(),
    next_attempt_at timestamptz(6),
    PRIMARY KEY (task_type, own_sign, item_key)
);
CREATE INDEX idx_schedule_failed_item_due ON schedule_failed_item (task_type, own_sign, queue_id, next_attempt_at);

-- statement_timestamp: one instant for all rows of a SELECT, where now() would be the start of its transaction.
CREATE VIEW schedule_assignment AS
SELECT q.task_type, q.own_sign, q.queue_id,
       q.cur_server, c.host_name AS cur_host, c.pid AS cur_pid, c.state AS cur_state,
       round(extract(epoch FROM statement_timestamp() - c.heartbeat_time), 3) AS cur_heartbeat_age_s,
       q.req_server, r.host_name AS req_host,
       round(extract(epoch FROM statement_timestamp() - q.cur_since), 3) AS held_s,
       round(extract(epoch FROM statement_timestamp() - q.req_since), 3) AS requested_s,
       q.epoch, q.cursor_value,
       CASE WHEN q.cur_server IS NULL THEN 'UNASSIGNED'
            WHEN c.uuid IS NULL THEN 'ORPHAN'
            WHEN c.heartbeat_time < statement_timestamp() - c.judge_dead_interval_ms * interval '1 millisecond' THEN 'OVERDUE'
            WHEN q.req_server IS NOT NULL THEN 'MOVING'
            ELSE 'HELD' END AS status
  FROM schedule_queue q
  LEFT JOIN schedule_server c ON c.uuid = q.cur_server AND c.task_type = q.task_type AND c.own_sign = q.own_sign
  LEFT JOIN schedule_server r ON r.uuid = q.req_server AND r.task_type = q.task_type AND r.own_sign = q.own_sign;
