-- A synthetic second migration: what a later version may do to the tables.
-- Oldest companion: version 1. It leaves the new column at its default.

-- +goose Up
CREATE TABLE schedule_later (id BIGINT NOT NULL PRIMARY KEY);
ALTER TABLE schedule_server ADD COLUMN later BIGINT NOT NULL DEFAULT 0;
ALTER TABLE schedule_queue ADD COLUMN later BIGINT NOT NULL DEFAULT 0;
