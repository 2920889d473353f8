-- A synthetic migration: what a later version may do to the tables.
-- Oldest companion: that of the version before. It leaves the new columns at their defaults.

-- +goose Up
CREATE TABLE schedule_later (
    id bigint NOT NULL PRIMARY KEY,
    CONSTRAINT ck_schedule_later_id CHECK (id BETWEEN 0 AND 1000)
);
ALTER TABLE schedule_server
    ADD COLUMN later bigint NOT NULL DEFAULT 0,
    ADD CONSTRAINT ck_schedule_server_later CHECK (later BETWEEN 0 AND 1000);
ALTER TABLE schedule_queue
    ADD COLUMN later bigint NOT NULL DEFAULT 0,
    ADD CONSTRAINT ck_schedule_queue_later CHECK (later BETWEEN 0 AND 1000);
ALTER TABLE schedule_task_running
    DROP CONSTRAINT ck_schedule_task_running_queue_total,
    ADD CONSTRAINT ck_schedule_task_running_queue_total CHECK (queue_total BETWEEN 0 AND 200000);
CREATE INDEX idx_schedule_later ON schedule_queue (later, queue_id);
