-- A database with the items of queues whose roster is another database. docs/data.md describes the tables.

-- Which data database of a roster this is, by its environments.
CREATE TABLE IF NOT EXISTS rota_data (
    own_sign    TEXT NOT NULL PRIMARY KEY, -- environment
    name        TEXT NOT NULL,             -- name of this database in the roster
    data_id     TEXT NOT NULL,             -- id of this database, also in schedule_data of the roster
    gmt_created TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000') -- when the row was inserted
);

-- Under which epoch the owner of a queue works here, and which items the queue has. The row without a queue_id is the
-- lock of those that change which queues have the items of the task type.
CREATE TABLE IF NOT EXISTS rota_fence (
    task_type    TEXT   NOT NULL, -- name of the task type
    own_sign     TEXT   NOT NULL, -- environment
    queue_id     TEXT   NOT NULL, -- the queue
    cur_server   TEXT   NOT NULL, -- server that works the queue here
    epoch        BIGINT NOT NULL, -- its epoch; lower ones are rejected
    division     TEXT   NULL,     -- the division of the items that the queue belongs to; NULL: other queues have its items now
    queue_index  BIGINT NOT NULL, -- of a numbered queue: it has the items with mod(id, queue_total) = queue_index
    queue_total  BIGINT NOT NULL, -- likewise; 0 for a name
    cursor_value TEXT   NOT NULL, -- how far a dealer with a cursor has read
    raised_at    TEXT   NOT NULL, -- when the epoch last rose
    gmt_modified TEXT   NOT NULL, -- when the row last changed
    CONSTRAINT ck_rota_fence_epoch CHECK (epoch BETWEEN 0 AND 1000000000000 AND epoch = CAST(epoch AS INTEGER)),
    PRIMARY KEY (task_type, own_sign, queue_id)
);
