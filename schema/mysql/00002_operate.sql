-- What operating a roster needs: queues that are being removed, permit windows that end when a queue is
-- empty, failed items that an operator has changed.
-- Oldest companion: the library version that brings migration 1. It works beside this one, but does not drain
-- a queue that is being removed: that waits until such workers are gone.
--
-- DDL commits by itself in MySQL, which has no ADD COLUMN IF NOT EXISTS: each column is looked for first, so
-- that a migration that was killed half way can be run again.

-- +goose Up
-- window_done_at: found empty in the permit window that began then
SET @ddl = IF((SELECT COUNT(*) FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'schedule_queue' AND column_name = 'window_done_at') > 0,
    'DO 0', 'ALTER TABLE schedule_queue ADD COLUMN window_done_at DATETIME(6) NULL');
PREPARE ddl FROM @ddl;
EXECUTE ddl;
DEALLOCATE PREPARE ddl;
-- removing: JSON list of queues that are not dealt any more, and go when they are drained
SET @ddl = IF((SELECT COUNT(*) FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'schedule_task_running' AND column_name = 'removing') > 0,
    'DO 0', 'ALTER TABLE schedule_task_running ADD COLUMN removing TEXT NULL');
PREPARE ddl FROM @ddl;
EXECUTE ddl;
DEALLOCATE PREPARE ddl;
-- item_version: failed items were changed by hand
SET @ddl = IF((SELECT COUNT(*) FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'schedule_task_running' AND column_name = 'item_version') > 0,
    'DO 0', 'ALTER TABLE schedule_task_running ADD COLUMN item_version BIGINT NOT NULL DEFAULT 0');
PREPARE ddl FROM @ddl;
EXECUTE ddl;
DEALLOCATE PREPARE ddl;
-- oldest_companion: the oldest schema whose programs may still run here: a migration that they cannot bear raises it
SET @ddl = IF((SELECT COUNT(*) FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'schedule_schema_lock' AND column_name = 'oldest_companion') > 0,
    'DO 0', 'ALTER TABLE schedule_schema_lock ADD COLUMN oldest_companion BIGINT NOT NULL DEFAULT 1');
PREPARE ddl FROM @ddl;
EXECUTE ddl;
DEALLOCATE PREPARE ddl;
