-- What operating a roster needs: queues that are being removed, permit windows that end when a queue is
-- empty, failed items that an operator has changed.
-- Oldest companion: the library version that brings migration 1. It works beside this one, but does not drain
-- a queue that is being removed: that waits until such workers are gone.

-- +goose Up
ALTER TABLE schedule_queue ADD COLUMN window_done_at TEXT; -- found empty in the permit window that began then
ALTER TABLE schedule_task_running ADD COLUMN removing TEXT; -- JSON list of queues that are not dealt any more, and go when they are drained
ALTER TABLE schedule_task_running ADD COLUMN item_version BIGINT NOT NULL DEFAULT 0; -- failed items were changed by hand
ALTER TABLE schedule_schema_lock ADD COLUMN oldest_companion BIGINT NOT NULL DEFAULT 1; -- the oldest schema whose programs may still run here: a migration that they cannot bear raises it
