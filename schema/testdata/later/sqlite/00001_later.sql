-- A synthetic migration: what a later version may do to the tables.
-- Oldest companion: that of the version before. It leaves the new columns at their defaults.

-- +goose Up
CREATE TABLE schedule_later (
    id BIGINT NOT NULL PRIMARY KEY,
    CONSTRAINT ck_schedule_later_id CHECK (id BETWEEN 0 AND 1000 AND id = CAST(id AS INTEGER))
);
ALTER TABLE schedule_server
    ADD COLUMN later BIGINT NOT NULL DEFAULT 0;
ALTER TABLE schedule_server
    ADD CONSTRAINT ck_schedule_server_later CHECK (later BETWEEN 0 AND 1000 AND later = CAST(later AS INTEGER));
ALTER TABLE schedule_queue
    ADD COLUMN later BIGINT NOT NULL DEFAULT 0;
ALTER TABLE schedule_queue
    ADD CONSTRAINT ck_schedule_queue_later CHECK (later BETWEEN 0 AND 1000 AND later = CAST(later AS INTEGER));
ALTER TABLE schedule_task_running
    DROP CONSTRAINT ck_schedule_task_running_queue_total;
ALTER TABLE schedule_task_running
    ADD CONSTRAINT ck_schedule_task_running_queue_total CHECK (queue_total BETWEEN 0 AND 200000 AND queue_total = CAST(queue_total AS INTEGER));
CREATE INDEX idx_schedule_later ON schedule_queue (later, queue_id);
