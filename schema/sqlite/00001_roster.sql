-- The roster: task types, their lock rows, servers, queues, events and failed items.
-- Oldest companion: the library version that brings this migration is the first.
--
-- Identifiers are compared byte by byte (BINARY is the default), here as in every other dialect.
-- Times are UTC as text, 'YYYY-MM-DD HH:MM:SS.ffffff': always six digits, so that their order as text is
-- their order in time. *_ms are milliseconds.
-- NULL means that there is none (no owner, no such moment yet), never "empty".

-- +goose Up
CREATE TABLE schedule_task_type (
    task_type                   TEXT   NOT NULL PRIMARY KEY,
    mode                        TEXT   NOT NULL DEFAULT 'CONTINUOUS', -- or RUN
    processor_type              TEXT   NOT NULL DEFAULT 'SLEEP',      -- or NOTSLEEP
    heartbeat_interval_ms       BIGINT NOT NULL DEFAULT 2000,
    judge_dead_interval_ms      BIGINT NOT NULL DEFAULT 10000,
    thread_number               BIGINT NOT NULL DEFAULT 5,
    fetch_number                BIGINT NOT NULL DEFAULT 500,
    execute_number              BIGINT NOT NULL DEFAULT 1,
    sleep_time_nodata_ms        BIGINT NOT NULL DEFAULT 500,
    sleep_time_interval_ms      BIGINT NOT NULL DEFAULT 0,
    permit_run_start_time       TEXT   NOT NULL DEFAULT '',
    permit_run_end_time         TEXT   NOT NULL DEFAULT '',
    time_zone                   TEXT   NOT NULL DEFAULT 'UTC',
    task_parameter              TEXT   NOT NULL DEFAULT '',
    max_queues_per_server       BIGINT NOT NULL DEFAULT 0,            -- 0: no cap
    rate_per_second             DOUBLE NOT NULL DEFAULT 0,            -- 0: no limit
    batch_timeout_ms            BIGINT NOT NULL DEFAULT 0,            -- 0: none
    drain_timeout_ms            BIGINT NOT NULL DEFAULT 30000,
    stall_after_ms              BIGINT NOT NULL DEFAULT 300000,
    item_max_attempts           BIGINT NOT NULL DEFAULT 25,
    item_retry_ms               BIGINT NOT NULL DEFAULT 1000,
    item_retry_max_ms           BIGINT NOT NULL DEFAULT 300000,
    queue_max_attempts          BIGINT NOT NULL DEFAULT 3,
    queue_retry_ms              BIGINT NOT NULL DEFAULT 30000,
    max_recoveries              BIGINT NOT NULL DEFAULT 5,
    run_timeout_ms              BIGINT NOT NULL DEFAULT 86400000,
    expire_own_sign_interval_ms BIGINT NOT NULL DEFAULT 86400000,
    version                     BIGINT NOT NULL DEFAULT 0,
    gmt_created                 TEXT   NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    gmt_modified                TEXT   NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000')
);

-- The lock row of a task type and own_sign. Written by every change of ownership, never deleted.
CREATE TABLE schedule_task_running (
    task_type          TEXT    NOT NULL,
    own_sign           TEXT    NOT NULL DEFAULT 'BASE',
    paused             BOOLEAN NOT NULL DEFAULT FALSE,
    queue_total        BIGINT  NOT NULL DEFAULT 0,
    requested_total    BIGINT, -- another number of queues that waits for everybody's drain
    partition_version  BIGINT  NOT NULL DEFAULT 0,
    membership_version BIGINT  NOT NULL DEFAULT 0,
    planned_version    BIGINT  NOT NULL DEFAULT 0,
    plan_version       BIGINT  NOT NULL DEFAULT 0,
    epoch_high         BIGINT  NOT NULL DEFAULT 0, -- no epoch above it was ever used
    watching_since     TEXT,
    audited_at         TEXT,
    last_assign_time   TEXT,
    last_assign_server TEXT,
    version            BIGINT  NOT NULL DEFAULT 0,
    PRIMARY KEY (task_type, own_sign)
);

-- heartbeat_time has no index on purpose: every heartbeat would have to keep it up. A task type has few servers.
CREATE TABLE schedule_server (
    uuid                   TEXT   NOT NULL PRIMARY KEY, -- host:pid:8hex
    task_type              TEXT   NOT NULL,
    own_sign               TEXT   NOT NULL DEFAULT 'BASE',
    ip                     TEXT   NOT NULL DEFAULT '',
    host_name              TEXT   NOT NULL DEFAULT '',
    pid                    BIGINT NOT NULL DEFAULT 0,
    thread_number          BIGINT NOT NULL DEFAULT 0,
    state                  TEXT   NOT NULL DEFAULT 'SERVING', -- STANDBY, PAUSED, DRAINING
    register_time          TEXT   NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    heartbeat_time         TEXT   NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    beat_token             TEXT   NOT NULL DEFAULT '',
    beat_count             BIGINT NOT NULL DEFAULT 0,
    judge_dead_interval_ms BIGINT NOT NULL DEFAULT 10000,
    watching_since         TEXT,
    drained_partition      BIGINT           NOT NULL DEFAULT 0,
    last_fetch_time        TEXT,
    next_run_start_time    TEXT,
    next_run_end_time      TEXT,
    fetch_count            BIGINT NOT NULL DEFAULT 0,
    fetch_item_count       BIGINT NOT NULL DEFAULT 0,
    success_count          BIGINT NOT NULL DEFAULT 0,
    failure_count          BIGINT NOT NULL DEFAULT 0,
    skip_count             BIGINT NOT NULL DEFAULT 0,
    execute_ms             BIGINT NOT NULL DEFAULT 0,
    in_hand                BIGINT NOT NULL DEFAULT 0,
    oldest_in_hand_since   TEXT,
    dealinfo_desc          TEXT   NOT NULL DEFAULT '',
    last_error             TEXT   NOT NULL DEFAULT '',
    library_version        TEXT   NOT NULL DEFAULT '',
    labels                 TEXT   NOT NULL DEFAULT ''
);
CREATE INDEX idx_schedule_server_task ON schedule_server (task_type, own_sign);

-- A uuid lives once, so it is gone once.
CREATE TABLE schedule_server_history (
    uuid                   TEXT   NOT NULL PRIMARY KEY,
    task_type              TEXT   NOT NULL,
    own_sign               TEXT   NOT NULL DEFAULT 'BASE',
    ip                     TEXT   NOT NULL DEFAULT '',
    host_name              TEXT   NOT NULL DEFAULT '',
    pid                    BIGINT NOT NULL DEFAULT 0,
    thread_number          BIGINT NOT NULL DEFAULT 0,
    state                  TEXT   NOT NULL DEFAULT 'SERVING', -- its last
    register_time          TEXT   NOT NULL,
    heartbeat_time         TEXT   NOT NULL,
    beat_token             TEXT   NOT NULL DEFAULT '',
    beat_count             BIGINT NOT NULL DEFAULT 0,
    judge_dead_interval_ms BIGINT NOT NULL DEFAULT 10000,
    watching_since         TEXT,
    drained_partition      BIGINT           NOT NULL DEFAULT 0,
    last_fetch_time        TEXT,
    next_run_start_time    TEXT,
    next_run_end_time      TEXT,
    fetch_count            BIGINT NOT NULL DEFAULT 0,
    fetch_item_count       BIGINT NOT NULL DEFAULT 0,
    success_count          BIGINT NOT NULL DEFAULT 0,
    failure_count          BIGINT NOT NULL DEFAULT 0,
    skip_count             BIGINT NOT NULL DEFAULT 0,
    execute_ms             BIGINT NOT NULL DEFAULT 0,
    in_hand                BIGINT NOT NULL DEFAULT 0,
    oldest_in_hand_since   TEXT,
    dealinfo_desc          TEXT   NOT NULL DEFAULT '',
    last_error             TEXT   NOT NULL DEFAULT '',
    library_version        TEXT   NOT NULL DEFAULT '',
    labels                 TEXT   NOT NULL DEFAULT '',
    left_time              TEXT   NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    reason                 TEXT   NOT NULL -- LEFT, EXPIRED, FENCED
);

CREATE TABLE schedule_queue (
    task_type       TEXT   NOT NULL,
    own_sign        TEXT   NOT NULL DEFAULT 'BASE',
    queue_id        TEXT   NOT NULL,
    queue_index     BIGINT NOT NULL,
    cur_server      TEXT,
    req_server      TEXT,
    epoch           BIGINT NOT NULL DEFAULT 0,
    cur_since       TEXT,
    req_since       TEXT,
    queue_parameter TEXT   NOT NULL DEFAULT '',
    cursor_value    TEXT   NOT NULL DEFAULT '',
    gmt_created     TEXT   NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    gmt_modified    TEXT   NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    PRIMARY KEY (task_type, own_sign, queue_id)
);
CREATE INDEX idx_schedule_queue_cur_server ON schedule_queue (cur_server);
CREATE INDEX idx_schedule_queue_req_server ON schedule_queue (req_server);

CREATE TABLE schedule_event (
    event_id    INTEGER PRIMARY KEY AUTOINCREMENT,
    event_time  TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    task_type   TEXT    NOT NULL,
    own_sign    TEXT    NOT NULL DEFAULT 'BASE',
    queue_id    TEXT,
    kind        TEXT    NOT NULL,
    from_server TEXT,
    to_server   TEXT,
    epoch       BIGINT,
    reason      TEXT    NOT NULL DEFAULT '',
    actor       TEXT    NOT NULL DEFAULT ''
);
CREATE INDEX idx_schedule_event_queue ON schedule_event (task_type, own_sign, queue_id, event_id);
CREATE INDEX idx_schedule_event_time ON schedule_event (event_time);

CREATE TABLE schedule_failed_item (
    task_type       TEXT   NOT NULL,
    own_sign        TEXT   NOT NULL DEFAULT 'BASE',
    item_key        TEXT   NOT NULL,
    queue_id        TEXT   NOT NULL,
    state           TEXT   NOT NULL DEFAULT 'RETRY', -- or DEAD
    attempts        BIGINT NOT NULL DEFAULT 0,
    last_error      TEXT   NOT NULL DEFAULT '',
    first_failed_at TEXT   NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    next_attempt_at TEXT,
    PRIMARY KEY (task_type, own_sign, item_key)
);
CREATE INDEX idx_schedule_failed_item_due ON schedule_failed_item (task_type, own_sign, queue_id, next_attempt_at);

-- SQLite reads 'now' once per statement, so all rows of a SELECT are of one instant.
CREATE VIEW schedule_assignment AS
SELECT q.task_type, q.own_sign, q.queue_id,
       q.cur_server, c.host_name AS cur_host, c.pid AS cur_pid, c.state AS cur_state,
       round((julianday('now') - julianday(c.heartbeat_time)) * 86400, 3) AS cur_heartbeat_age_s,
       q.req_server, r.host_name AS req_host,
       round((julianday('now') - julianday(q.cur_since)) * 86400, 3) AS held_s,
       round((julianday('now') - julianday(q.req_since)) * 86400, 3) AS requested_s,
       q.epoch, q.cursor_value,
       CASE WHEN q.cur_server IS NULL THEN 'UNASSIGNED'
            WHEN c.uuid IS NULL THEN 'ORPHAN'
            WHEN (julianday('now') - julianday(c.heartbeat_time)) * 86400000 > c.judge_dead_interval_ms THEN 'OVERDUE'
            WHEN q.req_server IS NOT NULL THEN 'MOVING'
            ELSE 'HELD' END AS status
  FROM schedule_queue q
  LEFT JOIN schedule_server c ON c.uuid = q.cur_server AND c.task_type = q.task_type AND c.own_sign = q.own_sign
  LEFT JOIN schedule_server r ON r.uuid = q.req_server AND r.task_type = q.task_type AND r.own_sign = q.own_sign;
