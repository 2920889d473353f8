-- A database with the items of queues whose roster is another database. docs/data.md describes the tables.

-- Which data database of a roster this is, by its environments.
CREATE TABLE IF NOT EXISTS rota_data (
    own_sign    text COLLATE "C" NOT NULL PRIMARY KEY,               -- environment
    name        text COLLATE "C" NOT NULL,                           -- name of this database in the roster
    data_id     text COLLATE "C" NOT NULL,                           -- id of this database, also in schedule_data of the roster
    gmt_created timestamptz(6)   NOT NULL DEFAULT clock_timestamp()  -- when the row was inserted
);

-- Under which epoch the owner of a queue works here. The row without a queue_id has the least epoch of the present
-- number of queues.
CREATE TABLE IF NOT EXISTS rota_fence (
    task_type    text COLLATE "C" NOT NULL,                           -- name of the task type
    own_sign     text COLLATE "C" NOT NULL,                           -- environment
    queue_id     text COLLATE "C" NOT NULL,                           -- the queue
    cur_server   text COLLATE "C" NOT NULL,                           -- server that works the queue here
    epoch        bigint           NOT NULL,                           -- its epoch; lower ones are rejected
    cursor_value text             NOT NULL,                           -- how far a dealer with a cursor has read
    raised_at    timestamptz(6)   NOT NULL,                           -- when the epoch last rose
    gmt_modified timestamptz(6)   NOT NULL,                           -- when the row last changed
    CONSTRAINT ck_rota_fence_epoch CHECK (epoch BETWEEN 0 AND 1000000000000),
    PRIMARY KEY (task_type, own_sign, queue_id)
) WITH (fillfactor = 50);
