-- The roster: task types, their lock rows, servers, queues, events and failed items.
-- Oldest companion: the library version that brings this migration is the first.
--
-- DDL commits by itself in MySQL, so a migration that was killed half way has done a part of its work:
-- every statement can be run again. Indexes stand inside CREATE TABLE, because there is no CREATE INDEX IF NOT EXISTS.
-- Identifiers are utf8mb4_bin (the tables' default): their order is the order of their bytes, here as in every
-- other dialect, and with it the order in which rows are locked. It ignores trailing spaces, so ids must not have any.
-- Times are UTC with microseconds, *_ms are milliseconds.
-- NULL means that there is none (no owner, no such moment yet), never "empty".

-- +goose Up
CREATE TABLE IF NOT EXISTS schedule_task_type (
    task_type                   VARCHAR(100) NOT NULL PRIMARY KEY,
    mode                        VARCHAR(20)  NOT NULL DEFAULT 'CONTINUOUS', -- or RUN
    processor_type              VARCHAR(20)  NOT NULL DEFAULT 'SLEEP',      -- or NOTSLEEP
    heartbeat_interval_ms       BIGINT       NOT NULL DEFAULT 2000,
    judge_dead_interval_ms      BIGINT       NOT NULL DEFAULT 10000,
    thread_number               BIGINT       NOT NULL DEFAULT 5,
    fetch_number                BIGINT       NOT NULL DEFAULT 500,
    execute_number              BIGINT       NOT NULL DEFAULT 1,
    sleep_time_nodata_ms        BIGINT       NOT NULL DEFAULT 500,
    sleep_time_interval_ms      BIGINT       NOT NULL DEFAULT 0,
    permit_run_start_time       VARCHAR(255) NOT NULL DEFAULT '',
    permit_run_end_time         VARCHAR(255) NOT NULL DEFAULT '',
    time_zone                   VARCHAR(64)  NOT NULL DEFAULT 'UTC',
    task_parameter              TEXT         NOT NULL DEFAULT (''),
    max_queues_per_server       BIGINT       NOT NULL DEFAULT 0,            -- 0: no cap
    rate_per_second             DOUBLE       NOT NULL DEFAULT 0,            -- 0: no limit
    batch_timeout_ms            BIGINT       NOT NULL DEFAULT 0,            -- 0: none
    drain_timeout_ms            BIGINT       NOT NULL DEFAULT 30000,
    stall_after_ms              BIGINT       NOT NULL DEFAULT 300000,
    item_max_attempts           BIGINT       NOT NULL DEFAULT 25,
    item_retry_ms               BIGINT       NOT NULL DEFAULT 1000,
    item_retry_max_ms           BIGINT       NOT NULL DEFAULT 300000,
    queue_max_attempts          BIGINT       NOT NULL DEFAULT 3,
    queue_retry_ms              BIGINT       NOT NULL DEFAULT 30000,
    max_recoveries              BIGINT       NOT NULL DEFAULT 5,
    run_timeout_ms              BIGINT       NOT NULL DEFAULT 86400000,
    expire_own_sign_interval_ms BIGINT       NOT NULL DEFAULT 86400000,
    version                     BIGINT       NOT NULL DEFAULT 0,
    gmt_created                 DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    gmt_modified                DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The lock row of a task type and own_sign. Written by every change of ownership, never deleted.
CREATE TABLE IF NOT EXISTS schedule_task_running (
    task_type          VARCHAR(100) NOT NULL,
    own_sign           VARCHAR(50)  NOT NULL DEFAULT 'BASE',
    paused             BOOLEAN      NOT NULL DEFAULT FALSE,
    queue_total        BIGINT       NOT NULL DEFAULT 0,
    requested_total    BIGINT, -- another number of queues that waits for everybody's drain
    partition_version  BIGINT       NOT NULL DEFAULT 0,
    membership_version BIGINT       NOT NULL DEFAULT 0,
    planned_version    BIGINT       NOT NULL DEFAULT 0,
    plan_version       BIGINT       NOT NULL DEFAULT 0,
    epoch_high         BIGINT       NOT NULL DEFAULT 0, -- no epoch above it was ever used
    watching_since     DATETIME(6)  NULL,
    audited_at         DATETIME(6)  NULL,
    last_assign_time   DATETIME(6)  NULL,
    last_assign_server VARCHAR(150),
    version            BIGINT       NOT NULL DEFAULT 0,
    PRIMARY KEY (task_type, own_sign)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- heartbeat_time has no index on purpose: every heartbeat would have to keep it up. A task type has few servers.
CREATE TABLE IF NOT EXISTS schedule_server (
    uuid                   VARCHAR(150) NOT NULL PRIMARY KEY, -- host:pid:8hex
    task_type              VARCHAR(100) NOT NULL,
    own_sign               VARCHAR(50)  NOT NULL DEFAULT 'BASE',
    ip                     VARCHAR(64)  NOT NULL DEFAULT '',
    host_name              VARCHAR(255) NOT NULL DEFAULT '',
    pid                    BIGINT       NOT NULL DEFAULT 0,
    thread_number          BIGINT       NOT NULL DEFAULT 0,
    state                  VARCHAR(20)  NOT NULL DEFAULT 'SERVING', -- STANDBY, PAUSED, DRAINING
    register_time          DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    heartbeat_time         DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    beat_token             VARCHAR(64)  NOT NULL DEFAULT '',
    beat_count             BIGINT       NOT NULL DEFAULT 0,
    judge_dead_interval_ms BIGINT       NOT NULL DEFAULT 10000,
    watching_since         DATETIME(6),
    drained_partition      BIGINT           NOT NULL DEFAULT 0,
    last_fetch_time        DATETIME(6)  NULL,
    next_run_start_time    DATETIME(6)  NULL,
    next_run_end_time      DATETIME(6)  NULL,
    fetch_count            BIGINT       NOT NULL DEFAULT 0,
    fetch_item_count       BIGINT       NOT NULL DEFAULT 0,
    success_count          BIGINT       NOT NULL DEFAULT 0,
    failure_count          BIGINT       NOT NULL DEFAULT 0,
    skip_count             BIGINT       NOT NULL DEFAULT 0,
    execute_ms             BIGINT       NOT NULL DEFAULT 0,
    in_hand                BIGINT       NOT NULL DEFAULT 0,
    oldest_in_hand_since   DATETIME(6)  NULL,
    dealinfo_desc          TEXT         NOT NULL DEFAULT (''),
    last_error             TEXT         NOT NULL DEFAULT (''),
    library_version        VARCHAR(64)  NOT NULL DEFAULT '',
    labels                 TEXT         NOT NULL DEFAULT (''),
    INDEX idx_schedule_server_task (task_type, own_sign)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- A uuid lives once, so it is gone once.
CREATE TABLE IF NOT EXISTS schedule_server_history (
    uuid                   VARCHAR(150) NOT NULL PRIMARY KEY,
    task_type              VARCHAR(100) NOT NULL,
    own_sign               VARCHAR(50)  NOT NULL DEFAULT 'BASE',
    ip                     VARCHAR(64)  NOT NULL DEFAULT '',
    host_name              VARCHAR(255) NOT NULL DEFAULT '',
    pid                    BIGINT       NOT NULL DEFAULT 0,
    thread_number          BIGINT       NOT NULL DEFAULT 0,
    state                  VARCHAR(20)  NOT NULL DEFAULT 'SERVING', -- its last
    register_time          DATETIME(6)  NOT NULL,
    heartbeat_time         DATETIME(6)  NOT NULL,
    beat_token             VARCHAR(64)  NOT NULL DEFAULT '',
    beat_count             BIGINT       NOT NULL DEFAULT 0,
    judge_dead_interval_ms BIGINT       NOT NULL DEFAULT 10000,
    watching_since         DATETIME(6),
    drained_partition      BIGINT           NOT NULL DEFAULT 0,
    last_fetch_time        DATETIME(6)  NULL,
    next_run_start_time    DATETIME(6)  NULL,
    next_run_end_time      DATETIME(6)  NULL,
    fetch_count            BIGINT       NOT NULL DEFAULT 0,
    fetch_item_count       BIGINT       NOT NULL DEFAULT 0,
    success_count          BIGINT       NOT NULL DEFAULT 0,
    failure_count          BIGINT       NOT NULL DEFAULT 0,
    skip_count             BIGINT       NOT NULL DEFAULT 0,
    execute_ms             BIGINT       NOT NULL DEFAULT 0,
    in_hand                BIGINT       NOT NULL DEFAULT 0,
    oldest_in_hand_since   DATETIME(6)  NULL,
    dealinfo_desc          TEXT         NOT NULL DEFAULT (''),
    last_error             TEXT         NOT NULL DEFAULT (''),
    library_version        VARCHAR(64)  NOT NULL DEFAULT '',
    labels                 TEXT         NOT NULL DEFAULT (''),
    left_time              DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    reason                 VARCHAR(20)  NOT NULL -- LEFT, EXPIRED, FENCED
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS schedule_queue (
    task_type       VARCHAR(100) NOT NULL,
    own_sign        VARCHAR(50)  NOT NULL DEFAULT 'BASE',
    queue_id        VARCHAR(150) NOT NULL,
    queue_index     BIGINT       NOT NULL,
    cur_server      VARCHAR(150),
    req_server      VARCHAR(150),
    epoch           BIGINT       NOT NULL DEFAULT 0,
    cur_since       DATETIME(6)  NULL,
    req_since       DATETIME(6)  NULL,
    queue_parameter TEXT         NOT NULL DEFAULT (''),
    cursor_value    TEXT         NOT NULL DEFAULT (''),
    gmt_created     DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    gmt_modified    DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    PRIMARY KEY (task_type, own_sign, queue_id),
    INDEX idx_schedule_queue_cur_server (cur_server),
    INDEX idx_schedule_queue_req_server (req_server)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS schedule_event (
    event_id    BIGINT       NOT NULL AUTO_INCREMENT PRIMARY KEY,
    event_time  DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    task_type   VARCHAR(100) NOT NULL,
    own_sign    VARCHAR(50)  NOT NULL DEFAULT 'BASE',
    queue_id    VARCHAR(150),
    kind        VARCHAR(40)  NOT NULL,
    from_server VARCHAR(150),
    to_server   VARCHAR(150),
    epoch       BIGINT,
    reason      TEXT         NOT NULL DEFAULT (''),
    actor       VARCHAR(255) NOT NULL DEFAULT '',
    INDEX idx_schedule_event_queue (task_type, own_sign, queue_id, event_id),
    INDEX idx_schedule_event_time (event_time)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS schedule_failed_item (
    task_type       VARCHAR(100) NOT NULL,
    own_sign        VARCHAR(50)  NOT NULL DEFAULT 'BASE',
    item_key        VARCHAR(255) NOT NULL,
    queue_id        VARCHAR(150) NOT NULL,
    state           VARCHAR(20)  NOT NULL DEFAULT 'RETRY', -- or DEAD
    attempts        BIGINT       NOT NULL DEFAULT 0,
    last_error      TEXT         NOT NULL DEFAULT (''),
    first_failed_at DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    next_attempt_at DATETIME(6)  NULL,
    PRIMARY KEY (task_type, own_sign, item_key),
    INDEX idx_schedule_failed_item_due (task_type, own_sign, queue_id, next_attempt_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- INVOKER: the view must outlive the account that migrated.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW schedule_assignment AS
SELECT q.task_type, q.own_sign, q.queue_id,
       q.cur_server, c.host_name AS cur_host, c.pid AS cur_pid, c.state AS cur_state,
       ROUND(TIMESTAMPDIFF(MICROSECOND, c.heartbeat_time, UTC_TIMESTAMP(6)) / 1000000, 3) AS cur_heartbeat_age_s,
       q.req_server, r.host_name AS req_host,
       ROUND(TIMESTAMPDIFF(MICROSECOND, q.cur_since, UTC_TIMESTAMP(6)) / 1000000, 3) AS held_s,
       ROUND(TIMESTAMPDIFF(MICROSECOND, q.req_since, UTC_TIMESTAMP(6)) / 1000000, 3) AS requested_s,
       q.epoch, q.cursor_value,
       CASE WHEN q.cur_server IS NULL THEN 'UNASSIGNED'
            WHEN c.uuid IS NULL THEN 'ORPHAN'
            WHEN TIMESTAMPDIFF(MICROSECOND, c.heartbeat_time, UTC_TIMESTAMP(6)) > c.judge_dead_interval_ms * 1000 THEN 'OVERDUE'
            WHEN q.req_server IS NOT NULL THEN 'MOVING'
            ELSE 'HELD' END AS status
  FROM schedule_queue q
  LEFT JOIN schedule_server c ON c.uuid = q.cur_server AND c.task_type = q.task_type AND c.own_sign = q.own_sign
  LEFT JOIN schedule_server r ON r.uuid = q.req_server AND r.task_type = q.task_type AND r.own_sign = q.own_sign;
