-- The plan that last changed the owner or the requester of a queue, so that a server need not read its queues anew
-- when others' have changed.
-- Oldest companion: the library version that brings migration 2. It works beside this one: it leaves the new column as it
-- is, and servers of this version then notice what it changed by the number of their queues and the sum of their epochs.
--
-- The column is looked for first, as in migration 2, so that a migration that was killed half way can be run again.

-- +goose Up
-- plan_version: that of schedule_task_running when cur_server or req_server was last written
SET @ddl = IF((SELECT COUNT(*) FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'schedule_queue' AND column_name = 'plan_version') > 0,
    'DO 0', 'ALTER TABLE schedule_queue ADD COLUMN plan_version BIGINT NOT NULL DEFAULT 0');
PREPARE ddl FROM @ddl;
EXECUTE ddl;
DEALLOCATE PREPARE ddl;
