-- The plan that last changed the owner or the requester of a queue, so that a server need not read its queues anew
-- when others' have changed.
-- Oldest companion: the library version that brings migration 2. It works beside this one: it leaves the new column as it
-- is, and servers of this version then notice what it changed by the number of their queues and the sum of their epochs.

-- +goose Up
ALTER TABLE schedule_queue ADD COLUMN plan_version bigint NOT NULL DEFAULT 0; -- that of schedule_task_running when cur_server or req_server was last written
