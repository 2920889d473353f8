-- Runs: triggers, static dependencies, runs, their queues and the snapshot of what they wait for.
-- Oldest companion: the library version that brings migration 2. It works beside this one: the tables are new, and a
-- task type whose mode is RUN must not be served by it, because it does not know the mode.

-- +goose Up
-- When runs begin by themselves. A slot is an instant at which a trigger is due.
CREATE TABLE schedule_trigger (
    own_sign         TEXT   NOT NULL DEFAULT 'BASE',
    name             TEXT   NOT NULL,
    trigger_id       TEXT   NOT NULL, -- the same for the same name: a trigger that is made again fires no slot twice
    target           TEXT   NOT NULL, -- a task type of mode RUN
    kind             TEXT   NOT NULL, -- CRON, EVERY, ONCE
    expression       TEXT   NOT NULL,
    time_zone        TEXT   NOT NULL DEFAULT 'UTC',
    start_at         TEXT,
    end_at           TEXT,
    max_fires        BIGINT NOT NULL DEFAULT 0, -- 0: no bound
    fires            BIGINT NOT NULL DEFAULT 0,
    next_fire_at     TEXT,
    prev_fire_at     TEXT,
    status           TEXT   NOT NULL DEFAULT 'ACTIVE', -- PAUSED, DONE, ERROR
    misfire          TEXT   NOT NULL DEFAULT 'ONE', -- SKIP, ALL
    misfire_after_ms BIGINT NOT NULL DEFAULT 60000,
    catchup_max      BIGINT NOT NULL DEFAULT 100,
    overlap          TEXT   NOT NULL DEFAULT 'SKIP', -- or WAIT
    priority         BIGINT NOT NULL DEFAULT 0, -- the highest first
    params           TEXT   NOT NULL DEFAULT '',
    missed           BIGINT NOT NULL DEFAULT 0, -- slots that fired nothing
    message          TEXT   NOT NULL DEFAULT '',
    version          BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (own_sign, name)
);
CREATE INDEX idx_schedule_trigger_due ON schedule_trigger (own_sign, status, next_fire_at);

-- A run of upstream makes a run of task_type, which waits for it.
CREATE TABLE schedule_task_after (
    task_type TEXT NOT NULL,
    upstream  TEXT NOT NULL,
    rule      TEXT NOT NULL DEFAULT 'SUCCESS', -- or FINISHED
    PRIMARY KEY (task_type, upstream)
);
CREATE INDEX idx_schedule_task_after_upstream ON schedule_task_after (upstream);

-- A run is one sweep of all queues of a task type.
CREATE TABLE schedule_run (
    run_id           TEXT    NOT NULL, -- UUIDv7, of the database's clock: sorts by time
    task_type        TEXT    NOT NULL,
    own_sign         TEXT    NOT NULL DEFAULT 'BASE',
    run_key          TEXT    NOT NULL,
    root_run_id      TEXT    NOT NULL, -- the run that this one was made with, or itself
    trigger_name     TEXT,
    scheduled_at     TEXT    NOT NULL,
    state            TEXT    NOT NULL, -- WAITING, READY, RUNNING, SUCCESS, FAILED, DEPENDENT_FAILED, CANCELLED, SKIPPED
    paused           BOOLEAN NOT NULL DEFAULT FALSE,
    cancel_requested BOOLEAN NOT NULL DEFAULT FALSE,
    priority         BIGINT  NOT NULL DEFAULT 0,
    params           TEXT    NOT NULL DEFAULT '',
    queue_total      BIGINT  NOT NULL DEFAULT 0, -- the number of queues when it was opened
    items_done       BIGINT  NOT NULL DEFAULT 0, -- of all queues, when it has ended
    items_failed     BIGINT  NOT NULL DEFAULT 0,
    message          TEXT    NOT NULL DEFAULT '',
    created_at       TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'),
    started_at       TEXT, -- when it was opened: rows that are newer belong to the next run
    deadline_at      TEXT, -- never NULL while it is RUNNING
    finished_at      TEXT,
    version          BIGINT  NOT NULL DEFAULT 0,
    PRIMARY KEY (run_id),
    CONSTRAINT uq_schedule_run_key UNIQUE (task_type, own_sign, run_key)
);
CREATE INDEX idx_schedule_run_state ON schedule_run (task_type, own_sign, state, scheduled_at);

-- The queues that a run sweeps: a snapshot of when it was opened.
CREATE TABLE schedule_run_queue (
    run_id          TEXT   NOT NULL,
    queue_id        TEXT   NOT NULL,
    state           TEXT   NOT NULL DEFAULT 'PENDING', -- RUNNING, DONE, FAILED, CANCELLED
    server          TEXT, -- who has claimed it last
    epoch           BIGINT NOT NULL DEFAULT 0, -- under which
    attempt         BIGINT NOT NULL DEFAULT 0,
    recoveries      BIGINT NOT NULL DEFAULT 0, -- take-overs without progress since
    next_attempt_at TEXT,
    cursor_value    TEXT   NOT NULL DEFAULT '',
    items_done      BIGINT NOT NULL DEFAULT 0,
    items_failed    BIGINT NOT NULL DEFAULT 0,
    last_error      TEXT   NOT NULL DEFAULT '',
    started_at      TEXT,
    progress_at     TEXT,
    finished_at     TEXT,
    PRIMARY KEY (run_id, queue_id)
);
CREATE INDEX idx_schedule_run_queue_due ON schedule_run_queue (state, next_attempt_at);

-- What a run waits for, as it was when the run was made.
CREATE TABLE schedule_run_dep (
    run_id          TEXT NOT NULL,
    upstream_run_id TEXT NOT NULL,
    rule            TEXT NOT NULL DEFAULT 'SUCCESS', -- or FINISHED
    PRIMARY KEY (run_id, upstream_run_id)
);
CREATE INDEX idx_schedule_run_dep_upstream ON schedule_run_dep (upstream_run_id);
