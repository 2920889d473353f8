-- Runs: triggers, static dependencies, runs, their queues and the snapshot of what they wait for.
-- Oldest companion: the library version that brings migration 2. It works beside this one: the tables are new, and a
-- task type whose mode is RUN must not be served by it, because it does not know the mode.

-- +goose Up
-- When runs begin by themselves. A slot is an instant at which a trigger is due.
CREATE TABLE schedule_trigger (
    own_sign         text COLLATE "C" NOT NULL DEFAULT 'BASE',
    name             text COLLATE "C" NOT NULL,
    trigger_id       text COLLATE "C" NOT NULL, -- the same for the same name: a trigger that is made again fires no slot twice
    target           text COLLATE "C" NOT NULL, -- a task type of mode RUN
    kind             text             NOT NULL, -- CRON, EVERY, ONCE
    expression       text             NOT NULL,
    time_zone        text             NOT NULL DEFAULT 'UTC',
    start_at         timestamptz(6),
    end_at           timestamptz(6),
    max_fires        bigint           NOT NULL DEFAULT 0, -- 0: no bound
    fires            bigint           NOT NULL DEFAULT 0,
    next_fire_at     timestamptz(6),
    prev_fire_at     timestamptz(6),
    status           text             NOT NULL DEFAULT 'ACTIVE', -- PAUSED, DONE, ERROR
    misfire          text             NOT NULL DEFAULT 'ONE', -- SKIP, ALL
    misfire_after_ms bigint           NOT NULL DEFAULT 60000,
    catchup_max      bigint           NOT NULL DEFAULT 100,
    overlap          text             NOT NULL DEFAULT 'SKIP', -- or WAIT
    priority         bigint           NOT NULL DEFAULT 0, -- the highest first
    params           text             NOT NULL DEFAULT '',
    missed           bigint           NOT NULL DEFAULT 0, -- slots that fired nothing
    message          text             NOT NULL DEFAULT '',
    version          bigint           NOT NULL DEFAULT 0,
    PRIMARY KEY (own_sign, name)
) WITH (fillfactor = 70);
CREATE INDEX idx_schedule_trigger_due ON schedule_trigger (own_sign, status, next_fire_at);

-- A run of upstream makes a run of task_type, which waits for it.
CREATE TABLE schedule_task_after (
    task_type text COLLATE "C" NOT NULL,
    upstream  text COLLATE "C" NOT NULL,
    rule      text             NOT NULL DEFAULT 'SUCCESS', -- or FINISHED
    PRIMARY KEY (task_type, upstream)
);
CREATE INDEX idx_schedule_task_after_upstream ON schedule_task_after (upstream);

-- A run is one sweep of all queues of a task type.
CREATE TABLE schedule_run (
    run_id           text COLLATE "C" NOT NULL, -- UUIDv7, of the database's clock: sorts by time
    task_type        text COLLATE "C" NOT NULL,
    own_sign         text COLLATE "C" NOT NULL DEFAULT 'BASE',
    run_key          text COLLATE "C" NOT NULL,
    root_run_id      text COLLATE "C" NOT NULL, -- the run that this one was made with, or itself
    trigger_name     text COLLATE "C",
    scheduled_at     timestamptz(6)   NOT NULL,
    state            text             NOT NULL, -- WAITING, READY, RUNNING, SUCCESS, FAILED, DEPENDENT_FAILED, CANCELLED, SKIPPED
    paused           boolean          NOT NULL DEFAULT FALSE,
    cancel_requested boolean          NOT NULL DEFAULT FALSE,
    priority         bigint           NOT NULL DEFAULT 0,
    params           text             NOT NULL DEFAULT '',
    queue_total      bigint           NOT NULL DEFAULT 0, -- the number of queues when it was opened
    items_done       bigint           NOT NULL DEFAULT 0, -- of all queues, when it has ended
    items_failed     bigint           NOT NULL DEFAULT 0,
    message          text             NOT NULL DEFAULT '',
    created_at       timestamptz(6)   NOT NULL DEFAULT clock_timestamp(),
    started_at       timestamptz(6), -- when it was opened: rows that are newer belong to the next run
    deadline_at      timestamptz(6), -- never NULL while it is RUNNING
    finished_at      timestamptz(6),
    version          bigint           NOT NULL DEFAULT 0,
    PRIMARY KEY (run_id),
    CONSTRAINT uq_schedule_run_key UNIQUE (task_type, own_sign, run_key)
);
CREATE INDEX idx_schedule_run_state ON schedule_run (task_type, own_sign, state, scheduled_at);

-- The queues that a run sweeps: a snapshot of when it was opened.
CREATE TABLE schedule_run_queue (
    run_id          text COLLATE "C" NOT NULL,
    queue_id        text COLLATE "C" NOT NULL,
    state           text             NOT NULL DEFAULT 'PENDING', -- RUNNING, DONE, FAILED, CANCELLED
    server          text COLLATE "C", -- who has claimed it last
    epoch           bigint           NOT NULL DEFAULT 0, -- under which
    attempt         bigint           NOT NULL DEFAULT 0,
    recoveries      bigint           NOT NULL DEFAULT 0, -- take-overs without progress since
    next_attempt_at timestamptz(6),
    cursor_value    text             NOT NULL DEFAULT '',
    items_done      bigint           NOT NULL DEFAULT 0,
    items_failed    bigint           NOT NULL DEFAULT 0,
    last_error      text             NOT NULL DEFAULT '',
    started_at      timestamptz(6),
    progress_at     timestamptz(6),
    finished_at     timestamptz(6),
    PRIMARY KEY (run_id, queue_id)
) WITH (fillfactor = 70);
CREATE INDEX idx_schedule_run_queue_due ON schedule_run_queue (state, next_attempt_at);

-- What a run waits for, as it was when the run was made.
CREATE TABLE schedule_run_dep (
    run_id          text COLLATE "C" NOT NULL,
    upstream_run_id text COLLATE "C" NOT NULL,
    rule            text             NOT NULL DEFAULT 'SUCCESS', -- or FINISHED
    PRIMARY KEY (run_id, upstream_run_id)
);
CREATE INDEX idx_schedule_run_dep_upstream ON schedule_run_dep (upstream_run_id);
