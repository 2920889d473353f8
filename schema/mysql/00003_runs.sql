-- Runs: triggers, static dependencies, runs, their queues and the snapshot of what they wait for.
-- Oldest companion: the library version that brings migration 2. It works beside this one: the tables are new, and a
-- task type whose mode is RUN must not be served by it, because it does not know the mode.
--
-- DDL commits by itself in MySQL, so a migration that was killed half way has done a part of its work:
-- every statement can be run again.

-- +goose Up
-- When runs begin by themselves. A slot is an instant at which a trigger is due.
CREATE TABLE IF NOT EXISTS schedule_trigger (
    own_sign         VARCHAR(50)  NOT NULL DEFAULT 'BASE',
    name             VARCHAR(150) NOT NULL,
    trigger_id       VARCHAR(36)  NOT NULL, -- the same for the same name: a trigger that is made again fires no slot twice
    target           VARCHAR(100) NOT NULL, -- a task type of mode RUN
    kind             VARCHAR(20)  NOT NULL, -- CRON, EVERY, ONCE
    expression       VARCHAR(255) NOT NULL,
    time_zone        VARCHAR(64)  NOT NULL DEFAULT 'UTC',
    start_at         DATETIME(6)  NULL,
    end_at           DATETIME(6)  NULL,
    max_fires        BIGINT       NOT NULL DEFAULT 0, -- 0: no bound
    fires            BIGINT       NOT NULL DEFAULT 0,
    next_fire_at     DATETIME(6)  NULL,
    prev_fire_at     DATETIME(6)  NULL,
    status           VARCHAR(20)  NOT NULL DEFAULT 'ACTIVE', -- PAUSED, DONE, ERROR
    misfire          VARCHAR(20)  NOT NULL DEFAULT 'ONE', -- SKIP, ALL
    misfire_after_ms BIGINT       NOT NULL DEFAULT 60000,
    catchup_max      BIGINT       NOT NULL DEFAULT 100,
    overlap          VARCHAR(20)  NOT NULL DEFAULT 'SKIP', -- or WAIT
    priority         BIGINT       NOT NULL DEFAULT 0, -- the highest first
    params           TEXT         NOT NULL DEFAULT (''),
    missed           BIGINT       NOT NULL DEFAULT 0, -- slots that fired nothing
    message          TEXT         NOT NULL DEFAULT (''),
    version          BIGINT       NOT NULL DEFAULT 0,
    PRIMARY KEY (own_sign, name),
    INDEX idx_schedule_trigger_due (own_sign, status, next_fire_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- A run of upstream makes a run of task_type, which waits for it.
CREATE TABLE IF NOT EXISTS schedule_task_after (
    task_type VARCHAR(100) NOT NULL,
    upstream  VARCHAR(100) NOT NULL,
    rule      VARCHAR(20)  NOT NULL DEFAULT 'SUCCESS', -- or FINISHED
    PRIMARY KEY (task_type, upstream),
    INDEX idx_schedule_task_after_upstream (upstream)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- A run is one sweep of all queues of a task type.
CREATE TABLE IF NOT EXISTS schedule_run (
    run_id           VARCHAR(36)  NOT NULL, -- UUIDv7, of the database's clock: sorts by time
    task_type        VARCHAR(100) NOT NULL,
    own_sign         VARCHAR(50)  NOT NULL DEFAULT 'BASE',
    run_key          VARCHAR(255) NOT NULL,
    root_run_id      VARCHAR(36)  NOT NULL, -- the run that this one was made with, or itself
    trigger_name     VARCHAR(150),
    scheduled_at     DATETIME(6)  NOT NULL,
    state            VARCHAR(20)  NOT NULL, -- WAITING, READY, RUNNING, SUCCESS, FAILED, DEPENDENT_FAILED, CANCELLED, SKIPPED
    paused           BOOLEAN      NOT NULL DEFAULT FALSE,
    cancel_requested BOOLEAN      NOT NULL DEFAULT FALSE,
    priority         BIGINT       NOT NULL DEFAULT 0,
    params           TEXT         NOT NULL DEFAULT (''),
    queue_total      BIGINT       NOT NULL DEFAULT 0, -- the number of queues when it was opened
    items_done       BIGINT       NOT NULL DEFAULT 0, -- of all queues, when it has ended
    items_failed     BIGINT       NOT NULL DEFAULT 0,
    message          TEXT         NOT NULL DEFAULT (''),
    created_at       DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    started_at       DATETIME(6)  NULL, -- when it was opened: rows that are newer belong to the next run
    deadline_at      DATETIME(6)  NULL, -- never NULL while it is RUNNING
    finished_at      DATETIME(6)  NULL,
    version          BIGINT       NOT NULL DEFAULT 0,
    PRIMARY KEY (run_id),
    UNIQUE KEY uq_schedule_run_key (task_type, own_sign, run_key),
    INDEX idx_schedule_run_state (task_type, own_sign, state, scheduled_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The queues that a run sweeps: a snapshot of when it was opened.
CREATE TABLE IF NOT EXISTS schedule_run_queue (
    run_id          VARCHAR(36)  NOT NULL,
    queue_id        VARCHAR(150) NOT NULL,
    state           VARCHAR(20)  NOT NULL DEFAULT 'PENDING', -- RUNNING, DONE, FAILED, CANCELLED
    server          VARCHAR(150), -- who has claimed it last
    epoch           BIGINT       NOT NULL DEFAULT 0, -- under which
    attempt         BIGINT       NOT NULL DEFAULT 0,
    recoveries      BIGINT       NOT NULL DEFAULT 0, -- take-overs without progress since
    next_attempt_at DATETIME(6)  NULL,
    cursor_value    TEXT         NOT NULL DEFAULT (''),
    items_done      BIGINT       NOT NULL DEFAULT 0,
    items_failed    BIGINT       NOT NULL DEFAULT 0,
    last_error      TEXT         NOT NULL DEFAULT (''),
    started_at      DATETIME(6)  NULL,
    progress_at     DATETIME(6)  NULL,
    finished_at     DATETIME(6)  NULL,
    PRIMARY KEY (run_id, queue_id),
    INDEX idx_schedule_run_queue_due (state, next_attempt_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What a run waits for, as it was when the run was made.
CREATE TABLE IF NOT EXISTS schedule_run_dep (
    run_id          VARCHAR(36) NOT NULL,
    upstream_run_id VARCHAR(36) NOT NULL,
    rule            VARCHAR(20) NOT NULL DEFAULT 'SUCCESS', -- or FINISHED
    PRIMARY KEY (run_id, upstream_run_id),
    INDEX idx_schedule_run_dep_upstream (upstream_run_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
